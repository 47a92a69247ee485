"""The `edgebox` command as its users meet it: exit codes, one clear line, one JSON document."""

import asyncio
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from edgebox.camera.daemon import Camera
from edgebox.commands.root import _print_model, _urls_elsewhere
from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.media.sources import PictureSource
from edgebox.runtime.model_choice import served
from edgebox.storage.access_store import access_file
from edgebox.storage.database import Storage
from tests.conftest import BUNDLED_FOLDERS, PATIENCE_S
from tests.end_to_end.program import (
    beside_the_loop,
    configured,
    edgebox,
    finish,
    said,
    serving,
    start,
    within_this_process,
)
from tests.end_to_end.running import (
    PICTURE,
    SIZE_PX,
    SLO_MS,
    assert_adds_up,
    free_port,
    running,
    until,
)
from tests.inference.tiny_onnx import write_family

STREET = load_zoo(bundled_folders()).family("street")
TRAFFIC = Pipeline(PipelineName("traffic"), (PipelineStage(StageName("street"), STREET.name),))


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [("", "get street"), ("traffic", "get street, through the pipeline traffic")],
)
def test_a_start_says_what_cameras_get_that_name_nothing(pipeline: str, said: str) -> None:
    models, _ = served((STREET,), "street", {TRAFFIC.name: TRAFFIC}, pipeline)
    lines: list[str] = []
    _print_model(models, lines.append)
    assert lines[0] == f"  cameras that name no model {said}"


def test_the_hint_at_a_model_for_real_cameras_names_one_that_there_is() -> None:
    real = replace(STREET, name=FamilyName("yard"), synthetic=False)
    models, _ = served((STREET, real), "street")
    lines: list[str] = []
    _print_model(models, lines.append)
    assert lines[-1] == "  a model for real cameras: edgebox models default yard"


@pytest.mark.parametrize(
    ("host", "urls"),
    [
        ("127.0.0.1", []),
        ("0.0.0.0", ["http://192.168.1.5:8787", "http://10.0.0.2:8787"]),
        ("192.168.1.5", []),
    ],
)
def test_a_start_says_where_other_machines_reach_the_box(
    monkeypatch: pytest.MonkeyPatch, host: str, urls: list[str]
) -> None:
    there = {"0.0.0.0": ["192.168.1.5", "10.0.0.2"], "127.0.0.1": [], "192.168.1.5": [host]}
    monkeypatch.setattr("edgebox.web.addresses.reachable_at", there.__getitem__)
    shown = "127.0.0.1" if host == "0.0.0.0" else host
    config = SimpleNamespace(server=SimpleNamespace(host=host))
    assert _urls_elsewhere(SimpleNamespace(url=f"http://{shown}:8787", config=config)) == urls


@pytest.fixture
def config(tmp_path: Path, database: Path) -> Path:
    return configured(tmp_path, database)


def camera(url: str, name: str, remarks: list[str]) -> Camera:
    source = PictureSource(SIZE_PX, 15.0, lambda number: PICTURE)
    return Camera(source, url, name=name, rate_hz=15.0, slo_ms=SLO_MS, on_remark=remarks.append)


async def test_serve_says_what_a_user_needs_and_ends_in_order(tmp_path: Path, config: Path) -> None:
    async with serving(tmp_path, "--config", str(config)) as (process, url):
        executor = await said(process, "cpu/0")
        assert "CPUExecutionProvider" in executor
        assert url.replace("http", "ws") in await said(process, "a first camera")
        assert await said(process, "only this machine can connect; --host 0.0.0.0")
        assert await said(process, "Ctrl-C stops")
        process.send_signal(signal.SIGINT)
        ended = await finish(process)
    assert ended.code == 0
    assert "stopped: 0 frames captured" in ended.err
    assert "Traceback" not in ended.err


async def test_serve_says_which_model_cameras_get_and_that_it_is_a_demos(
    tmp_path: Path, config: Path
) -> None:
    async with serving(tmp_path, "--config", str(config), "--family", "street") as (process, _):
        assert await said(process, "cameras that name no model get street")
        assert await said(process, "trained on synthetic drawings and is not for real cameras")
        assert await said(process, "edgebox models get deimv2-atto --default")
        process.send_signal(signal.SIGINT)
        await finish(process)
    wrong = await edgebox(tmp_path, "serve", "--config", str(config), "--family", "cats")
    assert wrong.code == 78
    assert "--family: there is no model family 'cats'" in wrong.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_box_and_cameras_come_back_to_the_next_one(
    tmp_path: Path, config: Path, database: Path, number: signal.Signals
) -> None:
    remarks: list[str] = []
    port = str(free_port())
    async with serving(tmp_path, "--config", str(config), "--port", port) as (process, url):
        streaming = camera(url, "gate", remarks)
        run = asyncio.create_task(streaming.run())
        await until(lambda: streaming.summary().on_time >= 5, "five answers")
        process.send_signal(number)
        ended = await finish(process)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    last = ended.err.strip().splitlines()[-1]
    captured, on_time, late, dropped = (int(word) for word in last.split() if word.isdecimal())
    assert captured == on_time + late + dropped
    assert on_time >= 5
    assert any("bye: shutdown" in remark for remark in remarks), remarks
    before = streaming.summary().on_time
    async with running(database, server__port=int(port)):
        await until(lambda: streaming.summary().on_time >= before + 5, "five more answers")
        streaming.stop()
        summary = await run
    assert summary.reconnects == 1
    assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)


async def test_a_signal_while_it_measures_ends_it_soon(tmp_path: Path) -> None:
    config = configured(tmp_path, tmp_path / "new.sqlite3")
    config.write_text(config.read_text().replace("profile_s = 1", "profile_s = 600"))
    process = await start(tmp_path, "serve", "--config", str(config))
    await said(process, "measuring street on cpu/0: 0 %")
    process.send_signal(signal.SIGTERM)
    ended = await finish(process)  # which does not wait for ten minutes
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err


async def test_serve_json_is_one_document(tmp_path: Path, config: Path) -> None:
    process = await start(tmp_path, "serve", "--config", str(config), "--json")
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        document = await process.stdout.readuntil(b"\n}\n")
    process.send_signal(signal.SIGTERM)
    ended = await finish(process)
    assert ended.code == 0
    assert ended.out == ended.err == ""
    assert b'"profiled": false' in document
    assert b'"url": "http://127.0.0.1:' in document


async def test_a_port_in_use_is_one_clear_line(tmp_path: Path, config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ended = await edgebox(tmp_path, "serve", "--config", str(config), "--port", port)
    assert ended.code == 1
    assert ended.out == ""
    assert f"edgebox serve: cannot listen on 127.0.0.1:{port}" in " ".join(ended.err.split())
    assert "choose another one with --port" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


async def test_a_file_of_tokens_that_cannot_be_written_ends_the_box(
    tmp_path: Path, config: Path, database: Path
) -> None:
    tokens = tmp_path / Path(access_file(str(database))).name
    tokens.symlink_to(tmp_path / "missing" / "tokens.sqlite3")
    ended = await edgebox(tmp_path, "serve", "--config", str(config))
    assert ended.code == 1
    assert "the file of tokens cannot be used" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


async def test_a_certificate_that_cannot_be_used_is_a_wrong_configuration(
    tmp_path: Path, database: Path
) -> None:
    (tmp_path / "junk.pem").write_text("no certificate")
    config = configured(tmp_path, database)
    config.write_text(
        config.read_text().replace(
            "[server]\n",
            '[server]\ntls = "files"\ntls_certificate = "junk.pem"\ntls_key = "junk.pem"\n',
        )
    )
    ended = await edgebox(tmp_path, "serve", "--config", str(config))
    assert ended.code == 78
    assert "junk.pem cannot be used" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["serve", "demo", "doctor", "profile"])
async def test_a_wrong_configuration_lists_all_its_errors(tmp_path: Path, command: str) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(
        '[server]\nhots = "x"\n[limits]\ncameras_max = 0\nsilent_s = "no"\n[nothing]\n'
    )
    flags = (command, "--config", str(wrong))
    if command in ("demo", "serve"):  # they use a real standard error, and may end the process
        ended = await edgebox(tmp_path, *flags)
    else:
        ended = await beside_the_loop(tmp_path, *flags)
    assert ended.code == 78
    for message in (
        'limits.silent_s: must be a number from 1 to 3600, not "no"',
        "server.hots: there is no such key; did you mean host?",
        "limits.cameras_max: must be a whole number from 1 to 10000",
        "nothing: there is no such section",
    ):
        assert message in ended.err
    assert "Traceback" not in ended.err


async def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    ended = await edgebox(tmp_path, "serve", "--config", str(tmp_path / "none.toml"))
    assert ended.code == 78
    assert "there is no such file" in " ".join(ended.err.split())


async def test_a_user_without_a_home_folder_is_told_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    # As for a user that the system does not know, whom a container may well run as.
    unknown = "import pwd, sys; pwd.getpwuid = {}.__getitem__; sys.argv[1:] = ['doctor']; "
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", f"{unknown}from edgebox.__main__ import main; main()",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, message = await program.communicate()
    assert program.returncode == 78
    assert b"this user has no home folder: set HOME" in message
    assert b"Traceback" not in message


async def test_the_only_family_corrupt_ends_with_a_clear_error(
    tmp_path: Path, database: Path
) -> None:
    folder = write_family(tmp_path / "broken", b"this is no model")
    config = configured(tmp_path, database, f'families = ["{folder}"]', 'family = "tiny"')
    ended = await edgebox(tmp_path, "serve", "--config", str(config))
    assert ended.code == 78
    assert "there is no model family 'tiny' (families: street)" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


async def test_a_file_that_is_no_database_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear reader, " * 1000)
    box = await start(tmp_path, "serve", "--config", str(configured(tmp_path, letter)))
    await said(box, "letter.txt")
    box.terminate()
    ended = await finish(box)
    assert ended.code == 0
    assert "Traceback" not in ended.err
    assert letter.read_text() == "Dear reader, " * 1000


async def test_doctor_tells_people_and_programs(tmp_path: Path, config: Path) -> None:
    document = (await edgebox(tmp_path, "doctor", "--config", str(config), "--json")).json()
    assert document["healthy"] is True
    checks = {finding["check"]: finding for finding in document["findings"]}
    assert len(checks) >= 5
    assert all(finding["health"] in ("ok", "warn", "fail") for finding in document["findings"])
    assert all(f["mend"] for f in document["findings"] if f["health"] != "ok")
    flags = ("doctor", "--config", str(config))
    result = await beside_the_loop(tmp_path, *flags)
    assert result.code == 0
    for check in checks:
        assert check in result.out


def test_doctor_warns_of_a_family_that_is_left_out(tmp_path: Path, database: Path) -> None:
    folder = write_family(tmp_path / "broken", b"this is no model")
    config = configured(tmp_path, database, f'families = ["{folder}"]')
    flags = ("--config", str(config), "--json")
    document = within_this_process(tmp_path, "doctor", *flags).json()
    warnings = [finding for finding in document["findings"] if finding["health"] == "warn"]
    assert any("tiny.onnx" in finding["found"] for finding in warnings)


def test_doctor_fails_when_the_box_could_not_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = configured(tmp_path, tmp_path / "file" / "edgebox.sqlite3")
    ended = within_this_process(tmp_path, "doctor", "--config", str(config))
    assert ended.code == 1
    assert "is no folder" in " ".join(ended.out.split())
    assert "mend:" in ended.out


async def test_profile_measures_and_keeps(
    tmp_path: Path, small_families: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BUNDLED_FOLDERS, lambda: small_families)
    database = tmp_path / "new.sqlite3"
    flags = ("--config", str(configured(tmp_path, database)), "--seconds", "1", "--json")
    ended = await beside_the_loop(tmp_path, "profile", *flags)
    rows = ended.json()["profiles"]
    assert {row["family"] for row in rows} == {"street"}
    street = load_zoo(small_families).family("street")
    assert {row["variant"] for row in rows} == {each.name for each in street.variants}
    assert all(0 < row["p50_ms"] <= row["p99_ms"] for row in rows)
    assert ended.err == ""
    async with running(database) as app:
        assert not app.profiled
    storage = await Storage.open(database)
    await storage.close()
    assert storage.last_error == ""


def test_profile_prints_a_table(
    tmp_path: Path, small_families: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BUNDLED_FOLDERS, lambda: small_families)
    config = configured(tmp_path, tmp_path / "new.sqlite3")
    flags = ("--config", str(config), "--seconds", "1")
    ended = within_this_process(tmp_path, "profile", *flags)
    assert ended.code == 0
    assert "street-192" in ended.out
    assert "pictures/s" in ended.out
    assert "measuring street on cpu/0: 100 %" in ended.err


async def test_camera_streams_to_a_real_box(tmp_path: Path, database: Path) -> None:
    async with running(database) as app:
        ended = await edgebox(
            tmp_path, "camera", "scene:1", "--size", "320x180", "--name", "gate",
            "--server", app.url, "--slo-ms", "30000", "--duration", "2", "--json",
        )  # fmt: skip
    summary = ended.json()
    assert summary["camera"] == "gate"
    assert summary["late"] == 0
    assert summary["on_time"] > summary["sent"] / 2 > 0
    assert summary["pending"] == 0
    assert_adds_up(summary["captured"], summary["on_time"], summary["late"], summary["dropped"])


async def test_camera_that_the_box_refuses_says_why(tmp_path: Path, database: Path) -> None:
    async with running(database) as app:
        ended = await edgebox(
            tmp_path, "camera", "scene:1", "--size", "320x180", "--server", app.url,
            "--family", "cats", "--json",
        )  # fmt: skip
    assert ended.code == 1
    assert "no model family cats; it has street" in ended.err


async def test_help_names_the_commands(tmp_path: Path) -> None:
    ended = await edgebox(tmp_path, "--help")
    assert ended.code == 0
    for command in ("serve", "demo", "camera", "doctor", "profile"):
        assert command in ended.out
    assert (await edgebox(tmp_path, "--version")).out.startswith("edgebox, version ")


async def test_a_long_message_is_one_line_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "edgebox.toml").write_text("[foo]\nport = 1\n")
    ended = await edgebox(tmp_path, "serve", "--config", str(tmp_path / "edgebox.toml"))
    assert ended.code == 78
    _, line = ended.err.splitlines()
    assert line.startswith("  foo: there is no such section (there are: server, ")
    assert line.endswith("zmq_detector, fleet)")


async def test_a_box_runs_on_asyncios_own_loop_where_uvloop_is_missing(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "uvloop.py").write_text("raise ImportError('not here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    async with serving(tmp_path, "--config", str(config)) as (process, url):
        with await asyncio.to_thread(urlopen, f"{url}/readyz", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        ended = await finish(process)
    assert ended.code == 0, ended.err


async def test_a_command_loads_what_it_needs_when_it_runs() -> None:
    check = (
        "import sys; from edgebox.commands.root import main; "
        "print([name for name in ('aiohttp', 'numpy', 'onnxruntime') if name in sys.modules], "
        "*main.list_commands(None))"
    )
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", check, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await program.communicate()
    assert out.startswith(b"[] ")
    assert b"backup" in out
    assert b"replay" in out


def test_a_program_whose_standard_streams_are_closed_runs() -> None:
    closed = 'exec "$0" -m edgebox --version 0<&- 1>&- 2>&-'
    assert subprocess.run(["sh", "-c", closed, sys.executable], check=False).returncode == 0
