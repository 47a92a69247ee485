"""Energy and power over time, read by a thread."""

from pathlib import Path

import pytest

from edgebox.runtime.energy_meter import EnergyMeter
from edgebox.runtime.machine_measurements import Energy, EnergySampler, MachineMeasurements
from edgebox.web.energy_metrics import energy_family
from tests.end_to_end.running import until
from tests.runtime.test_energy_meter import rapl, sensor

SECOND_NS = 1_000_000_000


def test_power_is_the_mean_of_the_last_minute(tmp_path: Path) -> None:
    file = rapl(tmp_path, "intel-rapl:0", "package-0", 0, range_uj=10**12)
    now_ns = [0]
    sampler = EnergySampler(EnergyMeter(tmp_path), lambda: now_ns[0])
    assert sampler.energy == []
    sampler.sample()
    [first] = sampler.energy
    assert first.total_j == 0 and first.power_w is None
    total_j = 0
    for second in range(1, 201):
        total_j += 10 if second <= 100 else 30
        file.write_text(f"{total_j * 1_000_000}\n")
        now_ns[0] = second * SECOND_NS
        sampler.sample()
        [each] = sampler.energy
        assert each.source == "package-0" and each.total_j == pytest.approx(total_j)
        assert each.power_w is not None
        if second <= 100:
            assert each.power_w == pytest.approx(10)
        else:
            assert each.power_w == pytest.approx(10 + 20 * min(60, second - 100) / 60)


def test_a_source_that_is_gone_keeps_what_it_measured(tmp_path: Path) -> None:
    file = rapl(tmp_path, "intel-rapl:0", "package-0", 0)
    now_ns = [0]
    sampler = EnergySampler(EnergyMeter(tmp_path), lambda: now_ns[0])
    sampler.sample()
    now_ns[0] = SECOND_NS
    file.write_text("500000\n")
    sampler.sample()
    file.unlink()
    sampler.sample()
    assert sampler.energy == [Energy("package-0", 0.5, 0.5)]
    now_ns[0] = 62 * SECOND_NS  # its power of late is not known any more
    sampler.sample()
    assert sampler.energy == [Energy("package-0", 0.5, None)]


async def test_a_thread_reads_and_ends(tmp_path: Path) -> None:
    sensor(tmp_path, "hwmon3", "ina3221", VDD_IN=(5000, 2000))
    machine = MachineMeasurements(meter=EnergyMeter(tmp_path))
    machine.start()
    await until(lambda: bool(machine.energy), "a reading")
    machine.stop()
    assert [each.source for each in machine.energy] == ["VDD_IN"]


async def test_a_machine_that_measures_nothing_has_no_thread(tmp_path: Path) -> None:
    machine = MachineMeasurements(meter=EnergyMeter(tmp_path))
    machine.start()
    machine.stop()
    assert machine.energy == []


def test_metrics_have_the_joules_of_each_source() -> None:
    family = energy_family([Energy("package-0", 12.5, None), Energy("VDD_IN", 3.0, 1.0)])
    found = {sample.labels["source"]: sample.value for sample in family.samples}
    assert found == {"package-0": 12.5, "VDD_IN": 3.0}
