"""`edgebox service`, and what a box tells the service manager that started it."""

import asyncio
import socket
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from edgebox.app.service_manager import ServiceManager
from edgebox.commands.service import service
from tests.conftest import PATIENCE_S
from tests.end_to_end.program import configured, finish, start
from tests.end_to_end.running import until


def run(*arguments: str) -> Result:
    return CliRunner().invoke(service, arguments)


def test_a_box_gets_a_configuration_and_a_unit(tmp_path: Path) -> None:
    result = run("install", "--system", "--root", str(tmp_path), "--", "--host", "0.0.0.0")
    assert result.exit_code == 0, result.output
    unit = (tmp_path / "etc/systemd/system/edgebox.service").read_text()
    assert "serve --config /etc/edgebox/edgebox.toml --host 0.0.0.0\n" in unit
    config = tmp_path / "etc/edgebox/edgebox.toml"
    assert "[server]" in config.read_text()
    config.write_text("# mine\n")
    assert run("install", "--system", "--root", str(tmp_path)).exit_code == 0
    assert config.read_text() == "# mine\n"


def test_a_dry_run_prints_and_writes_nothing(tmp_path: Path) -> None:
    result = run("install", "--system", "--root", str(tmp_path), "--dry-run")
    assert "# /etc/systemd/system/edgebox.service\n" in result.stdout
    assert "WatchdogSec=30" in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_program_is_told_what_was_written_and_what_comes_next(
    tmp_path: Path, dry: tuple[str, ...]
) -> None:
    result = run("install", "--system", "--root", str(tmp_path), "--json", *dry)
    assert result.stderr == ""
    document = orjson.loads(result.stdout)
    assert (document["unit"], document["written"]) == ("edgebox.service", not dry)
    files = {file["path"]: file["text"] for file in document["files"]}
    assert list(files) == ["/etc/edgebox/edgebox.toml", "/etc/systemd/system/edgebox.service"]
    for path, text in files.items():
        written = tmp_path / path.lstrip("/")
        assert (not written.exists()) if dry else (written.read_text() == text)
    assert "systemctl enable --now edgebox.service" in document["next"]


def test_a_users_service_goes_to_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert run("install", "--user").exit_code == 0
    unit = (tmp_path / "config/systemd/user/edgebox.service").read_text()
    assert f"--config {tmp_path}/config/edgebox/edgebox.toml" in unit
    assert (tmp_path / "config/edgebox/edgebox.toml").exists()


def test_cameras_have_a_unit_each(tmp_path: Path) -> None:
    where = ("--system", "--root", str(tmp_path))
    for name in ("gate-1", "gate-2"):
        result = run("install", *where, "--camera", "scene:1", "--", "--name", name)
        assert result.exit_code == 0, result.output
    assert run("install", *where, "--camera", "scene:1").exit_code == 0  # by this host's name
    units = {file.name for file in (tmp_path / "etc/systemd/system").iterdir()}
    assert {"edgebox-camera-gate-1.service", "edgebox-camera-gate-2.service"} < units
    assert len(units) == 3
    assert not (tmp_path / "etc/edgebox").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--", "--hots", "x"), "--hots"),
        (("--", "--config", "x"), "before --"),
        (("--camera", "scene:", "--", "--servr", "x"), "--servr"),
        (("--camera", "scene:", "--", "--config", "x"), "no configuration"),
        (("--camera", "webcam", "--", "--slo-ms", "fast"), "--slo-ms must be"),
        (("--camera", "webcam", "--", "--link", "nofile"), "--link nofile: no such file"),
        (("--camera", "webcam", "--", "--server", "x://y"), "must be an address"),
        (("--camera", "webcam", "--", "--name", "a b"), "--name must be"),
    ],
)
def test_arguments_that_the_command_would_refuse_are_refused_now(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run("install", "--system", "--root", str(tmp_path), *arguments)
    assert result.exit_code != 0
    assert message in result.output
    assert list(tmp_path.iterdir()) == []


def test_files_of_an_image_are_below_its_root(tmp_path: Path) -> None:
    arguments = ("--camera", "scene:1", "--", "--link", "/etc/edgebox/trace.txt")
    result = run("install", "--system", "--root", str(tmp_path), *arguments)
    assert result.exit_code == 1
    assert "no such file; give a rate" in " ".join(result.output.split())
    trace = tmp_path / "etc/edgebox/trace.txt"
    trace.parent.mkdir(parents=True)
    trace.write_text("1\n2\n")
    result = run("install", "--system", "--root", str(tmp_path), *arguments)
    assert result.exit_code == 0, result.output
    (unit,) = (tmp_path / "etc/systemd/system").iterdir()
    assert " --link /etc/edgebox/trace.txt " in unit.read_text()


@pytest.mark.parametrize(
    ("source", "options", "named"),
    [
        ("street.mp4", (), "SOURCE street.mp4"),
        ("scene:", ("--link", "trace.txt"), "--link trace.txt"),
        ("scene:", ("--frames", "frames.jsonl"), "--frames frames.jsonl"),
        ("scene:", ("--token-file", "gate.token"), "--token-file gate.token"),
    ],
)
def test_a_service_is_given_whole_paths(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    options: tuple[str, ...],
    named: str,
) -> None:
    """It starts in a folder of its own, not where it was installed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.txt").write_text("1\n2\n")
    result = run("install", "--system", "--root", "image", "--camera", source, "--", *options)
    assert result.exit_code == 1
    assert f"{named}: a service starts in another folder" in " ".join(result.output.split())
    assert not (tmp_path / "image").exists()


def test_doctor_says_what_is_missing(tmp_path: Path) -> None:
    result = run("doctor", "--system", "--root", str(tmp_path))
    assert result.exit_code == 1
    assert "edgebox service install writes it" in " ".join(result.output.split())


async def test_doctor_looks_where_the_box_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The environment of the unit counts, not that of the person who asks."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert run("install", "--user", "--", "--json").exit_code == 0
    unit = tmp_path / "config/systemd/user/edgebox.service"
    moved = unit.read_text().replace("Environment=", f"Environment=XDG_DATA_HOME={tmp_path}/data ")
    unit.write_text(moved)
    (tmp_path / "config/edgebox/edgebox.toml").write_text("[server]\nport = 0\n")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    result = await asyncio.to_thread(run, "doctor", "--user")
    said = "".join(capfd.readouterr().out.split())
    assert result.exit_code == 0, said
    assert f"{tmp_path}/data/edgebox/edgebox.sqlite3" in said
    assert "elsewhere" not in said
    assert not said.startswith("{"), "the box prints JSON, the person who asks wants none"


async def test_doctor_looks_at_what_the_unit_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What stands behind -- counts more than the configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ("--port", port, "--family", "mine", "--open-to", "loopback")
        assert run("install", "--user", "--", *options).exit_code == 0
        result = await asyncio.to_thread(run, "doctor", "--user", "--json")
    findings = orjson.loads(capfd.readouterr().out)["findings"]
    assert result.exit_code == 1
    failed = {each["check"]: each["found"] for each in findings if each["health"] == "fail"}
    assert failed.keys() == {"Port", "Default model"}
    assert failed["Port"] == f"127.0.0.1:{port} is taken"
    assert "--family: there is no model family 'mine'" in failed["Default model"]


class Listener:
    """The socket of a service manager."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(address)
        self.fields: list[tuple[str, str]] = []

    def read(self) -> list[tuple[str, str]]:
        """Return all fields that came until now."""
        while True:
            try:
                message = self.socket.recv(65536).decode()
            except BlockingIOError:
                return self.fields
            for line in message.splitlines():
                name, _, value = line.partition("=")
                self.fields.append((name, value))

    def has(self, name: str) -> bool:
        return any(field == name for field, _ in self.read())


async def test_a_box_tells_its_service_manager_how_it_is(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "600000")
    process = await start(tmp_path, "serve", "--config", str(configured(tmp_path, database)))
    try:
        await until(lambda: listener.has("READY"), "READY")
        before = [name for name, _ in listener.read()].index("READY")
        assert "EXTEND_TIMEOUT_USEC" in [name for name, _ in listener.fields[:before]]
        assert ("STATUS", "0 cameras connected") in listener.fields
        fed = sum(name == "WATCHDOG" for name, _ in listener.fields)
        await until(
            lambda: sum(name == "WATCHDOG" for name, _ in listener.read()) >= fed + 3,
            "the watchdog",
        )
        assert not listener.has("STOPPING")
    finally:
        process.terminate()
        ended = await finish(process)
    assert ended.code == 0, ended.err
    assert ("STOPPING", "1") in listener.read()
    assert sum(name == "READY" for name, _ in listener.fields) == 1


async def test_an_abstract_socket_and_none(tmp_path: Path) -> None:
    name = f"edgebox-{tmp_path.name}-{id(tmp_path)}"
    listener = Listener(f"\0{name}")
    ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).notify(STATUS="hello")
    assert listener.read() == [("STATUS", "hello")]
    listener.socket.close()
    ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).notify(STATUS="nobody listens")
    async with asyncio.timeout(PATIENCE_S):
        await ServiceManager({}).run(lambda: (True, ""))


def test_the_watchdog_of_another_process_is_not_fed_faster() -> None:
    assert ServiceManager({"WATCHDOG_USEC": "3000000"}).period_s == 1.0
    assert ServiceManager({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}).period_s == 10.0
    assert ServiceManager({"WATCHDOG_USEC": "nonsense"}).period_s == 10.0
