"""`edgebox demo`: what a newcomer runs first."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.commands.demo import Demo, reasons_explained
from edgebox.domain.errors import EdgeboxError
from tests.conftest import PATIENCE_S
from tests.end_to_end.program import configured, edgebox, finish, said, start
from tests.end_to_end.running import assert_adds_up, running

NAMES = ["north-gate", "main-street", "bus-stop", "car-park"]
SLOW_BPS = 600_000


@pytest.fixture
def config(tmp_path: Path, database: Path) -> Path:
    # The demo has a database of its own, beside the default one.
    demo = tmp_path / "edgebox" / "demo.sqlite3"
    demo.parent.mkdir()
    demo.write_bytes(database.read_bytes())
    return configured(tmp_path, database)


def with_tls(config: Path) -> Path:
    config.write_text(config.read_text().replace("[server]", '[server]\ntls = "self-signed"'))
    return config


async def test_json_is_one_document_whose_sums_are_exact(tmp_path: Path, config: Path) -> None:
    # Its cameras get along with any box of a file, also one that signs its own certificate.
    config = with_tls(config)
    ended = await edgebox(
        tmp_path, "demo", "--config", str(config), "--port", "0", "--duration", "3",
        "--rate-hz", "4", "--json",
    )  # fmt: skip
    document = ended.json()
    assert ended.err == ""
    assert [camera["camera"] for camera in document["cameras"]] == NAMES
    for camera in document["cameras"]:
        assert camera["captured"] > 0
        assert camera["pending"] == 0
        check_sums(camera)
    check_sums(document["all"])
    for key in ("captured", "sent", "accepted", "on_time", "late"):
        assert document["all"][key] == sum(camera[key] for camera in document["cameras"])
    box = document["box"]["counts"]
    check_sums(box)
    assert box["pending"] == 0
    assert box["captured"] == document["all"]["captured"]
    assert box["accepted"] == document["all"]["accepted"]
    # How many are in time is the machine's affair; what a link carries is not.
    slow = document["cameras"][3]
    assert 0 < slow["bytes_sent"] * 8 <= SLOW_BPS * slow["duration_s"]
    assert document["all"]["on_time"] > 0
    found = document["all"]["detections"]
    assert found.get("car", 0) + found.get("person", 0) > 0, "four streets, and nothing was seen"


def test_the_reasons_that_occurred_are_explained() -> None:
    assert reasons_explained(
        [{"dropped": {"queue": 3}}, {"dropped": {"sender": 1, "queue": 1}}]
    ) == [
        "sender: not sent: a newer one came first, or its camera's link was too slow",
        "queue: waiting behind other work, it could no longer be answered by its deadline",
    ]
    assert reasons_explained([{"dropped": {}}]) == []


def check_sums(counts: dict[str, Any]) -> None:
    assert_adds_up(counts["captured"], counts["on_time"], counts["late"], counts["dropped"])


async def test_a_signal_ends_it_before_its_cameras_could_begin(
    tmp_path: Path, config: Path
) -> None:
    process = await start(tmp_path, "demo", "--config", str(config), "--port", "0")
    await said(process, "four cameras start")
    process.send_signal(signal.SIGINT)
    ended = await finish(process)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err


async def test_a_person_gets_the_address_and_a_signal_ends_it_with_a_table(
    tmp_path: Path, config: Path
) -> None:
    process = await start(
        tmp_path, "demo", "--config", str(config), "--port", "0", "--rate-hz", "4"
    )
    line = await said(process, "edgebox demo: open http://127.0.0.1:")
    url = line.split("open ")[1].split()[0]
    await said(process, "four cameras start")
    async with aiohttp.ClientSession() as client, asyncio.timeout(PATIENCE_S):
        streaming = 0
        while streaming < len(NAMES):
            await asyncio.sleep(0.1)
            async with client.get(f"{url}/v1/state") as response:
                cameras = (await response.json())["cameras"]
            streaming = sum(camera["counts"]["on_time"] > 0 for camera in cameras)
    process.send_signal(signal.SIGINT)
    ended = await finish(process)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    for name in [*NAMES, "all"]:
        assert name in ended.out
    assert "slow link, 0.6 Mbit/s" in ended.out


async def test_cameras_that_run_are_stopped_where_a_later_one_cannot_be_started(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_process = asyncio.create_subprocess_exec
    started: list[asyncio.subprocess.Process] = []

    async def two_at_most(*arguments: str, **options: Any) -> asyncio.subprocess.Process:
        if len(started) == 2:
            raise OSError(12, "Cannot allocate memory")
        started.append(await start_process("sleep", "1000", **options))
        return started[-1]

    async with running(database) as app:
        demo = Demo(app.config, rate_hz=8.0, duration_s=None, quiet=True)
        stop = asyncio.create_task(asyncio.Event().wait())
        monkeypatch.setattr(asyncio, "create_subprocess_exec", two_at_most)
        with pytest.raises(EdgeboxError, match="bus-stop cannot be started: Cannot allocate"):
            await demo._stream(app, stop)
        stop.cancel()
    assert [process.returncode for process in started] == [-signal.SIGTERM] * 2
