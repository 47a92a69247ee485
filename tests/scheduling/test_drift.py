"""Drift: no false alarm while profiles hold, detection within a stated number of batches."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.learned import FACTOR_LIMITS
from edgebox.domain.model_family import ExecutorId, LatencyProfile
from edgebox.domain.requests import BatchId, RequestId
from edgebox.scheduling.actions import Infer, ReportDrift
from edgebox.scheduling.calibration import Calibration
from edgebox.scheduling.corrections import Corrections
from edgebox.scheduling.drift import NEEDED, SLOW, WINDOW, DriftDetector, Drifted
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from tests.scheduling.scene import CPU, MEDIAN_MS, MS, name, profile

S = 1000 * MS
EVERY_NS = 100 * MS
SUSTAINED_NS = SchedulerParameters().drift_after_ns


def fed(watch: DriftDetector, ratios: list[float], from_ns: int = 0) -> list[tuple[int, Drifted]]:
    """Return after how many batches which drifts were found."""
    found = []
    for at, ratio in enumerate(ratios):
        drifted = watch.add(ratio, from_ns + at * EVERY_NS)
        if drifted is not None:
            found.append((at, drifted))
    return found


def test_the_stated_probability_of_a_false_alarm_is_the_binomial_tail() -> None:
    # A profile's median has half of the batches on each side at most: 96 of 128 coins.
    tail = sum(math.comb(WINDOW, k) for k in range(NEEDED, WINDOW + 1)) / 2**WINDOW
    assert tail < 1e-8
    seen = sum(math.comb(WINDOW, k) * 0.95**k * 0.05 ** (WINDOW - k) for k in range(NEEDED))
    assert seen < 1e-12


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), spread=st.floats(0.0, 1.5), modes=st.integers(1, 3))
def test_batches_that_keep_to_their_profile_never_alarm(
    seed: int, spread: float, modes: int
) -> None:
    rng = random.Random(seed)
    draws = [rng.choice(range(1, modes + 1)) * math.exp(rng.gauss(0, spread)) for _ in range(4000)]
    median = sorted(draws)[2000]
    assert fed(DriftDetector(SUSTAINED_NS), [each / median for each in draws]) == []


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    factor=st.sampled_from([0.25, 0.5, 0.6, 1.6, 2.0, 5.0]),
    before=st.integers(0, 300),
)
def test_what_lasts_is_found_within_a_window_and_the_time_it_must_last(
    seed: int, factor: float, before: int
) -> None:
    rng = random.Random(seed)
    ratios = [math.exp(rng.gauss(0, 0.08)) for _ in range(before + 2 * WINDOW)]
    ratios[before:] = [factor * each for each in ratios[before:]]
    (at, drifted), *more = fed(DriftDetector(SUSTAINED_NS), ratios)
    assert not more
    assert before <= at <= before + WINDOW + SUSTAINED_NS // EVERY_NS
    assert drifted.ratio == pytest.approx(factor, rel=0.1)
    assert drifted.since_ns <= (before + WINDOW - NEEDED) * EVERY_NS or before == 0


def test_a_busy_spell_is_no_drift() -> None:
    slow_period = round(0.9 * SUSTAINED_NS / EVERY_NS)
    calm, busy = [1.0] * 200, [3.0] * (2 * NEEDED - WINDOW + slow_period)
    assert fed(DriftDetector(SUSTAINED_NS), calm + busy + calm) == []


def test_a_little_slower_is_left_to_the_slowdown() -> None:
    assert fed(DriftDetector(SUSTAINED_NS), [SLOW] * 1000) == []


class Bench:
    """Corrections on one executor, told of single batches."""

    def __init__(self) -> None:
        parameters = SchedulerParameters()
        self.latencies, self.calibration = Latencies(parameters), Calibration(parameters)
        self.learning = Learning(self.latencies)
        self.corrections = Corrections(parameters, self.latencies, self.learning, self.calibration)
        self.profiles = {px: profile(px) for px in MEDIAN_MS}
        self.latencies.executor_started(CPU, list(self.profiles.values()))
        self.calibration.executor_started(CPU, 0)
        self.corrections.executor_started(CPU, list(self.profiles.values()))
        self.now_ns = 0

    def run(self, px: int, slower: float, batches: int) -> list[ReportDrift]:
        drifts = []
        for at in range(batches):
            took_ns = round(slower * MEDIAN_MS[px] * MS)
            batch = Infer(CPU, BatchId(at), name(px), (RequestId(at),), 1)
            started_ns, self.now_ns = self.now_ns, self.now_ns + EVERY_NS
            drifts += self.corrections.batch_completed(
                RunningBatch(batch, started_ns), ["a"], took_ns, self.now_ns
            )
        return drifts

    def known(self, px: int) -> LatencyProfile:
        return self.latencies.known(CPU)[name(px)]


def test_a_hot_chip_slows_every_variant_and_a_cool_one_is_as_measured() -> None:
    bench = Bench()
    (hot,) = bench.run(416, 2.0, 300)
    assert (hot.executor, hot.variant) == (CPU, name(416))
    assert hot.ratio == hot.factor == pytest.approx(2.0, rel=0.01)
    for px, measured in bench.profiles.items():
        assert bench.known(px) == measured.scaled(hot.factor)
    assert bench.calibration.slowdown(CPU) == 1.0  # it is in the profiles now, not twice
    (cool,) = bench.run(608, 1.0, 300)
    assert cool.ratio == pytest.approx(0.5, rel=0.01)
    assert cool.factor == 1.0
    assert {px: bench.known(px) for px in bench.profiles} == bench.profiles
    assert bench.corrections.factors[CPU] == {}


def test_a_variant_that_runs_as_profiled_keeps_its_profile_while_another_drifts() -> None:
    bench = Bench()
    drifts = []
    for _ in range(300):
        drifts += bench.run(128, 1.0, 1) + bench.run(608, 1.6, 1)
    (drift,) = drifts
    assert drift.variant == name(608)
    assert drift.factor == pytest.approx(1.6, rel=0.01)
    assert bench.known(128) == bench.profiles[128]
    assert bench.known(608) == bench.profiles[608].scaled(drift.factor)


@pytest.mark.parametrize("known_before", [False, True])
def test_what_other_variants_seemed_to_take_meanwhile_is_not_counted_twice(
    known_before: bool,
) -> None:
    """They were sampled a little while one of them showed that all are slow."""
    bench = Bench()
    if known_before:
        for px in (416, 608):
            for _ in range(300):
                bench.learning.sampled(CPU, name(px), "a", MEDIAN_MS[px] * MS, bench.now_ns)
            bench.run(px, 1.0, 1)  # from now on batches are held against it
        bench.run(416, 1.0, 1)
    drifts = []
    for at in range(300):
        drifts += bench.run(416, 2.0, 1)
        for px in (416, 608):
            took_ns = 2 * MEDIAN_MS[px] * MS
            if px == 416 or at % 5 == 0:
                bench.learning.sampled(CPU, name(px), "a", took_ns, bench.now_ns)
        if drifts:
            break
    assert [each.variant for each in drifts] == [name(416)]
    for px in (416, 608):
        expected_ns = bench.learning.expected_ns(CPU, name(px), ["a"], 1)
        assert expected_ns == pytest.approx(2 * MEDIAN_MS[px] * MS, rel=0.12), px


def test_factors_are_bounded_however_long_it_gets_worse() -> None:
    bench = Bench()
    for slower in (4.0, 16.0, 64.0, 256.0):
        bench.run(128, slower, 400)
    assert bench.corrections.factors[CPU][name(128)] == FACTOR_LIMITS[1]


def test_what_another_executor_told_meanwhile_is_not_undone() -> None:
    """One is twice as slow for a while; requests that only the other ran really are longer."""
    bench = Bench()
    two = ExecutorId("cpu/1")
    bench.latencies.executor_started(two, [profile(416, two)])
    for _ in range(300):
        bench.learning.sampled(CPU, name(416), "a", MEDIAN_MS[416] * MS, bench.now_ns)
    drifts = bench.run(416, 1.0, 2 * WINDOW)
    assert drifts == []
    while not drifts:
        drifts = bench.run(416, 2.0, 1)
        longer_ns = round(1.2 * MEDIAN_MS[416] * MS)
        bench.learning.sampled(two, name(416), "a", longer_ns, bench.now_ns)
        bench.learning.sampled(CPU, name(416), "a", 2 * MEDIAN_MS[416] * MS, bench.now_ns)
    distribution = bench.learning.distribution(name(416), "a")
    assert distribution is not None
    others = [work for work in distribution.sampled_values if 1.1 < work < 1.3]
    assert len(others) >= NEEDED
    assert distribution.greatest < 1.3
