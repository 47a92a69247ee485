"""What is learnt while an executor is slow for moments is forgotten when it no longer is."""

import random
from typing import Any

import pytest

from edgebox.domain.requests import BatchId, RequestId
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from tests.scheduling.scene import CPU, MEDIAN_MS, MS, name, profile

EVERY_NS = 50 * MS
QUANTILES = (0.5, 0.9, 0.99)


class Bench:
    """Execution times on one executor, told of single requests."""

    def __init__(self) -> None:
        self.times = ExecutionTimes(SchedulerParameters())
        self.times.executor_started(CPU, [profile(px) for px in MEDIAN_MS], 0)
        self.rng = random.Random(1)
        self.now_ns = 0

    def run(self, px: int, app: str, longer: float = 1.0, batches: int = 1) -> None:
        for at in range(batches):
            took_ns = round(longer * self.rng.uniform(0.95, 1.05) * MEDIAN_MS[px] * MS)
            batch = Infer(CPU, BatchId(at), name(px), (RequestId(at),), 1)
            self.times.started(CPU, self.now_ns)
            running, self.now_ns = RunningBatch(batch, self.now_ns), self.now_ns + EVERY_NS
            self.times.batch_completed(running, [app], took_ns, self.now_ns)
            self.times.calibrate(CPU)

    def learned_ms(self, px: int, app: str) -> list[float]:
        learning = self.times.learning
        found = (learning.quantile_ns(CPU, name(px), [app], 1, q) for q in QUANTILES)
        return [ns / MS for ns in found if ns is not None]

    @property
    def slowdown(self) -> float:
        return self.times.latencies.slowdown(CPU)


def usual(px: int, longer: float = 1.0) -> Any:
    return pytest.approx([longer * MEDIAN_MS[px]] * len(QUANTILES), rel=0.1)


@pytest.mark.parametrize("busy", [8, 40, 150])
def test_a_busy_spell_leaves_nothing_behind(busy: int) -> None:
    bench = Bench()
    for _ in range(400):
        bench.run(256, "a")
        bench.run(608, "a")
    for at in range(busy):
        bench.run(256, "a", 2)
        if at % 8 == 0:
            bench.run(608, "a", 2)
    assert bench.slowdown == pytest.approx(2, rel=0.1)
    bench.run(256, "a", batches=128)
    assert bench.slowdown == 1
    assert bench.learned_ms(256, "a") == usual(256)
    assert bench.learned_ms(608, "a") == usual(608)


def test_an_application_that_nobody_knew_may_always_have_been_long() -> None:
    bench = Bench()
    bench.run(256, "a", 4, batches=15)
    assert bench.slowdown > 1, "it looks like a slow machine"
    bench.run(256, "b", batches=128)
    assert bench.slowdown == 1
    distribution = bench.times.learning.distribution(name(256), "a")
    assert distribution is not None
    assert distribution.samples == 15


def test_what_a_new_application_takes_is_kept_where_its_other_batches_agree_with_it() -> None:
    bench = Bench()
    bench.times.learning.app(name(256), "b")  # a request of it waits
    bench.run(256, "a", 4, batches=15)
    assert bench.slowdown > 1, "it looks like a slow machine"
    bench.run(256, "b", batches=64)
    bench.run(256, "a", 4)
    bench.run(256, "b", batches=64)
    assert bench.slowdown == 1
    distribution = bench.times.learning.distribution(name(256), "a")
    assert distribution is not None
    assert distribution.samples == 16


@pytest.mark.parametrize("waited", [0, 20])
def test_a_box_that_starts_on_a_busy_machine_learns_what_requests_take_afterwards(
    waited: int,
) -> None:
    bench = Bench()
    bench.run(608, "a", 2, batches=waited)  # the other variant's reference begins in the spell
    bench.run(256, "a", 2, batches=18)
    assert bench.slowdown == pytest.approx(2, rel=0.1)
    bench.run(256, "a", batches=96)
    assert bench.slowdown == 1
    assert bench.learned_ms(256, "a") == usual(256)


def test_the_next_spell_is_noticed_by_what_was_known_before_the_last() -> None:
    bench = Bench()
    for _ in range(100):
        bench.run(256, "a")
        bench.run(608, "a")
    for _ in range(60):
        bench.run(256, "a", 2)
        bench.run(608, "a", 2)
    bench.run(608, "new", 2)  # from here on its batches are held against what was learned so far
    bench.run(256, "a", batches=128)
    assert bench.slowdown == 1
    bench.run(608, "a", 2, batches=8)
    assert bench.slowdown == pytest.approx(2, rel=0.1)


def test_an_application_that_was_longer_meanwhile_is_so() -> None:
    bench = Bench()
    for _ in range(400):
        bench.run(256, "a")
        bench.run(256, "b")
    for _ in range(60):
        bench.run(256, "a")
        bench.run(256, "b", 2)
    assert bench.slowdown > 1, "it looks like a slow machine"
    bench.run(256, "a", batches=128)
    assert bench.slowdown == 1
    assert bench.learned_ms(256, "a") == usual(256)
    assert bench.learned_ms(256, "b")[-1] == pytest.approx(2 * MEDIAN_MS[256], rel=0.1)


def test_requests_of_a_known_kind_that_come_more_often_for_moments_are_kept() -> None:
    bench = Bench()
    for at in range(400):
        bench.run(256, "a", 3 if at % 5 == 0 else 1)
    for at in range(40):
        bench.run(256, "a", 3 if at % 5 < 3 else 1)
    assert bench.slowdown > 1, "it looks like a slow machine"
    for at in range(128):
        bench.run(256, "a", 3 if at % 5 == 0 else 1)
    assert bench.slowdown == 1
    distribution = bench.times.learning.distribution(name(256), "a")
    assert distribution is not None
    assert distribution.samples == 400 + 40 + 128


def test_new_applications_of_different_length_are_learned_and_are_no_drift() -> None:
    bench = Bench()
    for _ in range(200):
        bench.run(256, "short", 0.2, batches=5)
        bench.run(256, "long", 5, batches=2)
        assert bench.times.corrections.factors[CPU] == {}
    assert bench.learned_ms(256, "long") == usual(256, 5)
    assert bench.learned_ms(256, "short") == usual(256, 0.2)
    assert bench.slowdown == 1
