"""The units of systemd: what they start, how far they are confined, and that systemd takes them."""

import re
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.app.service_units import (
    CONFIGURATION,
    Host,
    Unit,
    box_unit,
    camera_unit,
    context_of,
    quoted,
)
from edgebox.config.config_file import load
from edgebox.domain.errors import ConfigError, InvalidInputError, MissingRuntimeError, WedgedError

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path("/etc/edgebox/edgebox.toml")
PLAIN = Host(("/opt/edgebox/bin/edgebox",), Path("/opt/edgebox"), gpu=False, groups=("video",))
GPU = replace(PLAIN, gpu=True)
UNITS = {
    "box": box_unit(PLAIN, CONFIG, ("--host", "0.0.0.0"), system=True),
    "box with a GPU": box_unit(GPU, CONFIG, (), system=True),
    "camera": camera_unit(PLAIN, "gate-2", "rtsp://u:p%40$x@10.0.0.1/s", (), system=True),
    "USB camera": camera_unit(PLAIN, "desk", "webcam", (), system=True),
}
EXPOSURE_MAX = {"box": 2.0, "box with a GPU": 3.0, "camera": 2.0, "USB camera": 2.5}
"""systemd-analyze security: 0 is best, 10 is worst; a unit that confines nothing has 9.6."""


def lines(unit: Unit, key: str) -> list[str]:
    return [line.split("=", 1)[1] for line in unit.text.splitlines() if line.startswith(f"{key}=")]


def test_a_box_is_watched_and_limited() -> None:
    unit = UNITS["box"]
    assert unit.name == "edgebox.service"
    assert lines(unit, "Type") == ["notify"]
    assert lines(unit, "WatchdogSec") == ["30"]
    assert lines(unit, "MemoryMax") == ["80%"]
    assert int(lines(unit, "LimitNOFILE")[0]) >= 65536
    assert lines(unit, "ExecStart") == [
        "/opt/edgebox/bin/edgebox serve --config /etc/edgebox/edgebox.toml --host 0.0.0.0"
    ]


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_it_is_not_started_again_after_what_only_a_person_can_correct(unit: Unit) -> None:
    prevented = set(map(int, lines(unit, "RestartPreventExitStatus")[0].split()))
    assert prevented == {2, ConfigError.exit_code, MissingRuntimeError.exit_code}
    assert WedgedError.exit_code not in prevented
    assert lines(unit, "Restart") == ["always"]


def test_devices_are_those_that_the_work_needs() -> None:
    """A box fetches a webcam's pictures, and decodes others' where there is a device for it."""
    assert lines(UNITS["box"], "DevicePolicy") == ["closed"]
    assert lines(UNITS["box"], "DeviceAllow") == ["char-video4linux rw", "char-drm rw"]
    assert lines(UNITS["box"], "SupplementaryGroups") == ["video"]
    assert lines(UNITS["box with a GPU"], "DevicePolicy") == []
    assert lines(UNITS["box with a GPU"], "SupplementaryGroups") == ["video"]
    assert lines(UNITS["USB camera"], "DeviceAllow") == ["char-video4linux rw"]
    assert lines(UNITS["camera"], "PrivateDevices") == ["yes"]


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_kinds_of_devices_are_known_before_they_are_allowed(unit: Unit) -> None:
    """A webcam may be plugged in for the first time while the unit runs."""
    allowed = len(lines(unit, "DeviceAllow"))
    loaded = [word for line in lines(unit, "Wants") for word in line.split() if "modprobe@" in word]
    assert len(loaded) == allowed
    assert set(loaded) <= {word for line in lines(unit, "After") for word in line.split()}
    if "video4linux" in unit.text:
        assert "modprobe@videodev.service" in loaded


def test_the_documented_places_can_be_written() -> None:
    """The endpoint of ZeroMQ that the configuration shows is in the folder that systemd makes."""
    (folder,) = lines(UNITS["box"], "RuntimeDirectory")
    assert f'"ipc:///run/{folder}/' in (ROOT / "config.example.toml").read_text("utf-8")
    assert lines(UNITS["box"], "RuntimeDirectoryPreserve") == ["yes"]


@pytest.mark.parametrize("source", ["webcam", "webcam:0", "/dev/video0"])
def test_however_a_webcam_is_named_its_unit_may_use_it(source: str) -> None:
    unit = camera_unit(PLAIN, "desk", source, (), system=True)
    assert lines(unit, "DeviceAllow") == ["char-video4linux rw"]
    assert lines(unit, "PrivateDevices") == []


def test_a_program_in_a_home_folder_can_be_read_there() -> None:
    at_home = replace(PLAIN, prefix=Path("/home/anna/edgebox/.venv"))
    assert lines(box_unit(at_home, CONFIG, (), system=True), "ProtectHome") == ["read-only"]
    assert lines(UNITS["box"], "ProtectHome") == ["yes"]


def test_a_users_unit_asks_for_nothing_that_only_the_system_may() -> None:
    unit = box_unit(GPU, Path("/home/anna/.config/edgebox/edgebox.toml"), (), system=False)
    assert "User=" not in unit.text
    assert "Protect" not in unit.text
    assert "XDG_DATA_HOME" not in unit.text
    assert lines(unit, "WantedBy") == ["default.target"]


@given(st.lists(st.text(st.characters().filter(str.isprintable), min_size=1)))
def test_arguments_come_out_as_they_went_in(arguments: list[str]) -> None:
    unit = box_unit(PLAIN, CONFIG, tuple(arguments), system=True)
    assert context_of(unit.text).command[4:] == tuple(arguments)


def test_a_line_break_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="cannot be in a unit"):
        box_unit(PLAIN, CONFIG, ("--host", "a\nUser=root"), system=True)


def test_what_systemd_would_expand_is_escaped() -> None:
    assert quoted("rtsp://u:p%40$x@c/s") == "rtsp://u:p%%40$$x@c/s"
    assert quoted('a "b" \\') == '"a \\"b\\" \\\\"'


def test_the_doctor_learns_what_the_unit_sets() -> None:
    context = context_of(UNITS["box"].text)
    assert context.user == "edgebox"
    assert context.environment["XDG_DATA_HOME"] == "/var/lib"
    assert context.command[1:4] == ("serve", "--config", str(CONFIG))


def test_the_configuration_that_is_made_is_good(tmp_path: Path) -> None:
    (tmp_path / "edgebox.toml").write_text(CONFIGURATION)
    assert load(tmp_path / "edgebox.toml").server.host == "127.0.0.1"


def test_the_templates_are_in_the_package() -> None:
    names = {entry.name for entry in files("edgebox.app").joinpath("units").iterdir()}
    assert names == {"edgebox.service", "edgebox-camera.service"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_it_and_finds_little_exposed(name: str, tmp_path: Path) -> None:
    # What is to be started need not be installed here, but has to exist.
    unit = UNITS[name]
    file = tmp_path / unit.name
    file.write_text(unit.text.replace("/opt/edgebox/bin/edgebox", "/bin/true"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    ours = [line for line in checked.stderr.splitlines() if unit.name in line]
    # A machine that does not run systemd has no folder /run/systemd for it.
    assert [line for line in ours if "Failed" not in line] == []
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"exposure level for \S+: ([\d.]+)", rated.stdout)
    assert found is not None, rated.stderr
    assert float(found[1]) <= EXPOSURE_MAX[name]
