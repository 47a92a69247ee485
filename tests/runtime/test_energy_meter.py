"""Energy from counters that begin again, and from sensors of power."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.runtime.energy_meter import EnergyMeter, _Counter

SECOND_NS = 1_000_000_000


def rapl(root: Path, zone: str, name: str, energy_uj: object, range_uj: int = 1_000_000) -> Path:
    folder = root / "class/powercap" / zone
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    return folder / "energy_uj"


def sensor(root: Path, hwmon: str, name: str, **channels: tuple[int, int]) -> Path:
    folder = root / "class/hwmon" / hwmon
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{name}\n")
    for number, (label, (millivolt, milliampere)) in enumerate(channels.items(), 1):
        (folder / f"in{number}_label").write_text(f"{label}\n")
        (folder / f"in{number}_input").write_text(f"{millivolt}\n")
        (folder / f"curr{number}_input").write_text(f"{milliampere}\n")
    return folder


def test_a_machine_without_counters_has_none(tmp_path: Path) -> None:
    meter = EnergyMeter(tmp_path)
    assert meter.names == () and meter.read(0) == {}


def test_packages_are_counted_and_what_is_within_them_is_not(tmp_path: Path) -> None:
    file = rapl(tmp_path, "intel-rapl:0", "package-0", 400_000)
    rapl(tmp_path, "intel-rapl:0:0", "core", 1)
    meter = EnergyMeter(tmp_path)
    assert meter.names == ("package-0",)
    assert meter.read(SECOND_NS) == {"package-0": 0.0}
    file.write_text("900000\n")
    assert meter.read(2 * SECOND_NS) == {"package-0": pytest.approx(0.5)}
    file.write_text("100000\n")  # it began again
    assert meter.read(3 * SECOND_NS) == {"package-0": pytest.approx(0.700001)}


def test_power_is_added_up_over_time(tmp_path: Path) -> None:
    folder = sensor(tmp_path, "hwmon3", "ina3221", VDD_IN=(5000, 1000), VDD_SOC=(5000, 200))
    sensor(tmp_path, "hwmon1", "cpu_thermal", VDD_IN=(1, 1))
    meter = EnergyMeter(tmp_path)
    assert meter.names == ("VDD_IN", "VDD_SOC")
    assert meter.read(5 * SECOND_NS) == {"VDD_IN": 0.0, "VDD_SOC": 0.0}
    (folder / "curr1_input").write_text("3000\n")
    found = meter.read(7 * SECOND_NS)
    assert found == {"VDD_IN": pytest.approx(20.0), "VDD_SOC": pytest.approx(2.0)}


def test_sources_of_the_same_name_are_counted_apart(tmp_path: Path) -> None:
    sensor(tmp_path, "hwmon1", "ina3221", VDD_IN=(5000, 1000), NC=(5000, 200))
    sensor(tmp_path, "hwmon2", "ina3221", NC=(5000, 400))
    sensor(tmp_path, "hwmon3", "ina3221", NC=(5000, 600))
    meter = EnergyMeter(tmp_path)
    assert meter.names == ("VDD_IN", "NC", "NC (2)", "NC (3)")
    meter.read(0)
    assert meter.read(SECOND_NS) == {
        "VDD_IN": pytest.approx(5.0),
        "NC": pytest.approx(1.0),
        "NC (2)": pytest.approx(2.0),
        "NC (3)": pytest.approx(3.0),
    }


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", "no number")
    file = rapl(tmp_path, "intel-rapl:1", "package-1", 5)
    meter = EnergyMeter(tmp_path)
    assert meter.names == ("package-1",)
    file.unlink()
    assert meter.read(0) == {}
    file.write_text("1000005\n")
    assert meter.read(0) == {"package-1": pytest.approx(1.0)}


def test_names_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    folder = sensor(tmp_path, "hwmon3", "ina3221", VDD_IN=(5000, 1000), VDD_SOC=(5000, 200))
    (folder / "in2_label").write_bytes(b"VDD_\xb5\n")
    other = sensor(tmp_path, "hwmon1", "cpu_thermal", T=(1, 1))
    (other / "name").write_bytes(b"cpu_\xb0\n")
    assert EnergyMeter(tmp_path).names == ("VDD_IN",)


@given(st.lists(st.integers(0, 999), max_size=20), st.integers(0, 999))
def test_a_counter_that_begins_again_loses_nothing(steps: list[int], start: int) -> None:
    class File:
        value = start

        def read_text(self, encoding: str) -> str:
            return str(self.value % 1000)

    file = File()
    counter = _Counter("p", file, 999)  # type: ignore[arg-type]
    counter.read_j(0)
    for step in steps:
        file.value += step
        counter.read_j(0)
    assert counter.total_uj == sum(steps)
