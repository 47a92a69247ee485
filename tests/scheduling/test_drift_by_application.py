"""Drift and applications: how long requests are is never taken for an executor's speed."""

import random
from collections.abc import Mapping

import pytest

from edgebox.domain.requests import BatchId, RequestId
from edgebox.scheduling.actions import Infer, ReportDrift
from edgebox.scheduling.drift import HORIZON_NS
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from tests.scheduling.scene import CPU, MEDIAN_MS, MS, name, profile

EVERY_NS = 40 * MS
SHORT, LONG = 0.3, 4.0
APART = {"long": (LONG, (128, 256)), "short": (SHORT, (416, 608))}
TOGETHER = {"long": (LONG, (256,)), "short": (SHORT, (256,))}
Scene = Mapping[str, tuple[float, tuple[int, ...]]]
"""By application, how much work its requests are and which variants it runs on, in turns."""


class Bench:
    """What one executor's batches of one request teach."""

    def __init__(self, seed: int) -> None:
        self.times = ExecutionTimes(SchedulerParameters())
        self.times.executor_started(CPU, [profile(px) for px in MEDIAN_MS], 0)
        self.now_ns = 0
        self._rng = random.Random(seed)

    def run(self, scene: Scene, seconds: float, slower: float = 1.0) -> list[ReportDrift]:
        """Run batches of the applications in turns, on their variants in turns."""
        found = []
        for at in range(round(seconds * 1e9 / EVERY_NS / len(scene))):
            for app, (work, variants) in scene.items():
                px = variants[at % len(variants)]
                took_ns = slower * work * MEDIAN_MS[px] * MS * self._rng.uniform(0.93, 1.07)
                batch = Infer(CPU, BatchId(at), name(px), (RequestId(at),), 1)
                self.times.started(CPU, self.now_ns)
                running = RunningBatch(batch, self.now_ns)
                self.now_ns += EVERY_NS
                _, drifts = self.times.batch_completed(running, [app], round(took_ns), self.now_ns)
                self.times.calibrate(CPU)
                found += drifts
        return found

    def factor(self, px: int) -> float:
        return self.times.corrections.factors[CPU].get(name(px), 1.0)

    def work(self, app: str, px: int) -> float:
        of = self.times.learning.distribution(name(px), app)
        assert of is not None
        return of.quantile(0.5)

    def expects(self, scene: Scene, slower: float = 1.0) -> None:
        """Expect that what batches take is known."""
        for app, (work, variants) in scene.items():
            for px in variants:
                expected_ns = self.times.learning.expected_ns(CPU, name(px), [app], 1)
                took_ns = slower * work * MEDIAN_MS[px] * MS
                assert expected_ns == pytest.approx(took_ns, rel=0.1), (app, px)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("scene", [APART, TOGETHER], ids=["apart", "together"])
def test_applications_of_different_length_are_no_drift(scene: Scene, seed: int) -> None:
    """Neither is known beforehand, and the profile fits neither."""
    bench = Bench(seed)
    for _ in range(60):
        assert bench.run(scene, 1) == []
    for app, (work, variants) in scene.items():
        for px in variants:
            assert bench.factor(px) == pytest.approx(1, rel=0.1)
            assert bench.work(app, px) == pytest.approx(work, rel=0.1)
    bench.expects(scene)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("scene", [APART, TOGETHER], ids=["apart", "together"])
def test_a_slower_machine_is_told_whatever_the_length_of_its_applications(
    scene: Scene, seed: int
) -> None:
    bench = Bench(seed)
    bench.run(scene, 60)
    drifts = bench.run(scene, 60, slower=1.5)
    assert drifts
    for each in drifts:
        assert 1.4 < each.ratio < 1.6
        assert each.apps == ("long", "short")
    for app, (work, variants) in scene.items():
        for px in variants:
            assert bench.factor(px) == pytest.approx(1.5, rel=0.07)
            assert bench.work(app, px) == pytest.approx(work, rel=0.1)
    bench.expects(scene, slower=1.5)


@pytest.mark.parametrize("longer", [0.5, 2.0])
def test_one_application_that_changes_on_its_own_variants_is_no_drift(longer: float) -> None:
    bench = Bench(1)
    bench.run(APART, 60)
    changed = APART | {"long": (longer * LONG, APART["long"][1])}
    assert bench.run(changed, 60) == []
    bench.expects(changed)
    assert bench.times.corrections.factors[CPU] == {}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("variants", [(416,), (608,)], ids=["together", "apart"])
def test_an_unknown_application_does_not_say_how_slow_the_machine_is(
    variants: tuple[int, ...], seed: int
) -> None:
    """It comes with the slowness, and its batches are by far the most."""
    bench = Bench(seed)
    known: Scene = {"known": (SHORT, (416,))}
    bench.run({**known, "other": (1.0, (256,))}, 60)
    news = {f"new {at}": (LONG, variants) for at in range(2)}
    scene = {**known, **news}
    drifts = bench.run(scene, 90, slower=1.5)
    assert drifts
    for each in drifts:
        assert 1.4 < each.ratio < 1.6
    assert bench.factor(416) == pytest.approx(1.5, rel=0.07)
    bench.expects(scene, slower=1.5)


def test_applications_that_ran_long_ago_are_forgotten_whatever_their_names() -> None:
    bench = Bench(1)
    for number in range(100):
        bench.run({f"run-{number}": (1.0, (256,))}, EVERY_NS / 1e9)
        bench.now_ns += HORIZON_NS // 10
    assert len(bench.times.corrections._ratios[CPU]) <= 11
