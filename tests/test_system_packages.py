"""What `make test` does on machines that lack something, each made up of a PATH of its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.programs import RTSP_PACKAGES, program

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "tests" / "system_packages.sh"
SHELL_TOOLS = ("sh", "env", "mktemp", "rm", "cat", "chmod", "true")
PROGRAMS = ("chromium", "mosquitto", "mosquitto_passwd", "openssl")
GSTREAMER_PYTHON = "python-with-gstreamer"
"""Stands for the system's Python, which has GStreamer's RTSP server if it runs at all."""
USER, ROOT_USER = 1000, 0
PYTHON = """
case "$*" in
    "-m ensurepip --version") exit {ensurepip} ;;
    --version) echo Python {version} ;;
    *version_info\\ \\<*) exit {old} ;;
    *) echo 3.11 ;;
esac
"""


class Machine:
    """A machine that has what a test says, and nothing else."""

    def __init__(self, folder: Path, *, user: int = USER) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.apt_log = folder / "apt.log"
        for tool in SHELL_TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        for name in ("make", *PROGRAMS, GSTREAMER_PYTHON):
            self.put(name, "exit 0")
        self.put("id", f"echo {user}")
        self.python()

    def put(self, name: str, script: str) -> None:
        """Put a program on the machine."""
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def lose(self, *names: str) -> None:
        """Take programs from the machine."""
        for name in names:
            (self.bin / name).unlink()

    def python(self, version: str = "3.11.2", *, ensurepip: bool = True, old: bool = False) -> None:
        """Give the machine this Python."""
        text = PYTHON.format(version=version, ensurepip=int(not ensurepip), old=int(old))
        self.put("python3", text)

    def apt(self, *brings: str) -> None:
        """Give the machine an apt-get that notes its arguments and installs these programs."""
        made = (f"echo exit 0 >{self.bin / name}; chmod +x {self.bin / name}" for name in brings)
        lines = [f'echo "$*" >>{self.apt_log}', '[ "$1" = install ] || exit 0', *made]
        self.put("apt-get", "\n".join(lines))

    def sudo(self, *, allowed: bool) -> None:
        """Give the machine a sudo that asks nothing: it is allowed or not."""
        allow = f'[ "$1" = -n ] || exit 2; shift; echo sudo >>{self.apt_log}; exec "$@"'
        self.put("sudo", allow if allowed else "exit 1")

    def installed(self) -> list[str]:
        """Return what apt was asked to install, last."""
        command = (
            self.apt_log.read_text(encoding="utf-8").splitlines() if self.apt_log.exists() else []
        )
        installs = [line for line in command if line.startswith("install ")]
        options = {"install", "-y", "--no-install-recommends"}
        return [word for word in installs[-1].split() if word not in options] if installs else []

    def prepare(
        self, purpose: str = "test", **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run the script on this machine."""
        return subprocess.run(
            [str(self.bin / "sh"), str(SCRIPT), purpose],
            env={
                "PATH": str(self.bin),
                "SBIN": "",
                "TMPDIR": str(self.bin.parent),
                "SYSTEM_PYTHON": GSTREAMER_PYTHON,
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )


def test_a_machine_with_everything_is_left_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.apt()
    done = machine.prepare()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not machine.apt_log.exists()


def test_root_installs_exactly_what_is_missing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.lose("chromium", "mosquitto", "mosquitto_passwd")
    machine.apt("chromium", "mosquitto", "mosquitto_passwd")
    done = machine.prepare()
    assert done.returncode == 0, done.stderr
    assert done.stdout == "installing with apt: chromium mosquitto\n"
    assert machine.installed() == ["chromium", "mosquitto"]


def test_a_user_installs_through_sudo_that_asks_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.lose("openssl")
    machine.apt("openssl")
    machine.sudo(allowed=True)
    assert machine.prepare().returncode == 0
    assert machine.installed() == ["openssl"]
    assert (
        machine.apt_log.read_text(encoding="utf-8").count("sudo\n") == 3
    )  # asked; update; install


def test_without_rights_the_first_line_says_what_to_install(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.lose("chromium", "openssl")
    machine.apt("chromium", "openssl")
    machine.sudo(allowed=False)
    done = machine.prepare()
    assert done.returncode == 1
    first = done.stderr.splitlines()[0]
    assert first == "error: make test needs what pip and npm cannot bring: chromium openssl"
    assert "apt-get install chromium openssl\n" in done.stderr
    assert 'make test WITHOUT="' in done.stderr
    assert not machine.apt_log.exists()


def test_without_apt_it_says_so(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.lose("mosquitto")
    done = machine.prepare()
    assert done.returncode == 1
    assert done.stderr.startswith("error: make test needs")
    assert "no apt-get here" in done.stderr


def test_what_apt_said_is_shown_when_it_fails(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.lose("mosquitto")
    machine.put("apt-get", "echo E: no such package; exit 100")
    done = machine.prepare()
    assert done.returncode == 1
    assert "E: no such package" in done.stderr
    assert "error: make test needs what pip and npm cannot bring: mosquitto\n" in done.stderr


def test_a_browser_that_only_asks_for_a_snap_is_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.lose("chromium")
    machine.put("chromium-browser", "echo 'snap install chromium' >&2; exit 1")
    machine.apt()
    done = machine.prepare()
    assert done.returncode == 1
    assert machine.installed() == ["chromium"]
    assert "it does not work here" in done.stderr


@pytest.mark.parametrize("name", ["chromium-headless-shell", "google-chrome"])
def test_another_chrome_will_do(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path)
    machine.lose("chromium")
    machine.put(name, "exit 0")
    assert machine.prepare().returncode == 0


def test_where_apt_has_a_chromium_without_a_user_interface_that_is_installed(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.lose("chromium")
    machine.apt("chromium-headless-shell")
    # As on a new machine, whose lists are empty until they are fetched.
    machine.put("apt-cache", f"read -r line <{machine.apt_log}")
    done = machine.prepare()
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.installed() == ["chromium-headless-shell"]


def test_the_rtsp_server_is_four_packages_and_one_thing_to_do_without(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.lose(GSTREAMER_PYTHON)
    machine.apt(GSTREAMER_PYTHON)
    assert machine.prepare(WITHOUT="gstreamer").returncode == 0
    assert machine.installed() == []
    assert machine.prepare().returncode == 0
    assert machine.installed() == list(RTSP_PACKAGES)


@pytest.mark.parametrize("purpose", ["demo", "test"])
def test_python_without_venv_gets_it(tmp_path: Path, purpose: str) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.python(ensurepip=False)
    machine.apt()
    done = machine.prepare(purpose)
    assert machine.installed() == ["python3.11-venv"]
    assert done.returncode == 1  # this apt has brought nothing
    machine.python()
    assert machine.prepare(purpose).returncode == 0


def test_the_demo_needs_no_program_of_the_tests(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.lose(*PROGRAMS)
    done = machine.prepare("demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_old_python_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.python("3.9.2", old=True)
    done = machine.prepare()
    assert done.returncode == 1
    assert "needs Python 3.11 or newer, and python3 is Python 3.9.2" in done.stderr
    assert "make test PYTHON=python3.11" in done.stderr


def test_no_python_and_no_make_are_packages_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=ROOT_USER)
    machine.lose("python3", "make")
    machine.apt("make", "python3")
    assert machine.prepare().returncode == 0
    assert machine.installed() == ["make", "python3-venv"]


def test_what_is_done_without_is_neither_wanted_nor_hidden(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.lose("chromium", "openssl")
    done = machine.prepare(WITHOUT="chromium openssl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "without chromium: the tests that need it are skipped",
        "without openssl: the tests that need it are skipped",
    ]


def test_a_slip_in_what_to_do_without_is_an_error(tmp_path: Path) -> None:
    done = Machine(tmp_path).prepare(WITHOUT="chrome")
    assert done.returncode == 1
    assert "WITHOUT may name chromium, gstreamer, mosquitto and openssl, not chrome" in done.stderr


@pytest.mark.parametrize("target", ["test", "demo"])
def test_make_looks_before_it_builds_anything(target: str) -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "--always-make", "--directory", str(ROOT), target],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    ).stdout
    commands = [line for line in planned.splitlines() if not line.startswith("make")]
    assert commands[0] == f"sh tests/system_packages.sh {target}"


def test_a_test_whose_program_is_missing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WITHOUT", raising=False)
    with pytest.raises(pytest.fail.Exception, match="apt-get install no-such-program"):
        program("no-such-program")


def test_a_test_whose_program_is_done_without_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHOUT", "sh")
    with pytest.raises(pytest.skip.Exception, match="WITHOUT names sh"):
        program("sh")
