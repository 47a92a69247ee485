"""Slowdown and fixed costs."""

import random
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import QUANTILES, ExecutorId
from edgebox.scheduling.calibration import (
    ALL_SLOWER,
    AT_ONCE_MAX,
    Calibration,
    RecentValues,
    SlowPeriod,
)
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from tests.scheduling.scene import CPU, MS, profile

PARAMETERS = SchedulerParameters()
S = 1000 * MS
HEAVY_TAIL = (0.9, 0.95, 1.0, 1.1, 1.4, 2.0, 3.0, 6.0, 8.0)
"""What batches take beside other programs, by quantile."""


@given(
    st.integers(1, 8),
    st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=40),
    st.floats(0, 1),
)
def test_recent_values_are_the_last_ones(size: int, steps: list[int | None], q: float) -> None:
    recent, brute = RecentValues(size, 4), [4.0] * size
    for step in steps:
        if step is None:
            recent.halve()
            brute = [value / 2 for value in brute]
        else:
            recent.add(step)
            brute = [*brute[1:], float(step)]
        assert recent.quantile(q) == sorted(brute)[round(q * (size - 1))]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=40), st.floats(0, 1), st.integers(0, 30))
def test_a_raised_quantile_is_reached_by_the_oldest_values(
    values: list[int], q: float, least: int
) -> None:
    recent = RecentValues(len(values), 0)
    for value in values:
        recent.add(value)
    recent.raise_quantile(q, least)
    assert recent.quantile(q) >= least
    raised = len(values) - round(q * (len(values) - 1))
    brute = [*(max(value, least) for value in values[:raised]), *values[raised:]]
    for newer in range(len(values) + 1):  # who is forgotten first is who was raised
        assert recent.quantile(q) == sorted(brute)[round(q * (len(values) - 1))]
        recent.add(newer)
        brute = [*brute[1:], newer]


def fed(factor: float, batches: int = 400, outliers: float = 0.0, seed: int = 1) -> Calibration:
    rng, of = random.Random(seed), profile(256)
    calibration = Calibration(PARAMETERS)
    calibration.executor_started(CPU, 0)
    expected_ns = of.quantile_ns(1, PARAMETERS.slowdown_quantile)
    for at in range(batches):
        took_ns = round(of.quantile_ns(1, rng.random()) * factor)
        if rng.random() < outliers:
            took_ns *= 20
        calibration.batch_completed(CPU, expected_ns, took_ns, at * MS)
        calibration.handed_over(CPU, MS)
    return calibration


@given(st.integers(0, 1000))
def test_a_profile_that_holds_is_left_alone(seed: int) -> None:
    assert fed(1.0, seed=seed).slowdown(CPU) == 1.0


@given(st.integers(0, 1000), st.sampled_from([1.5, 2.0, 3.0]))
def test_a_factor_is_found_whatever_the_spread(seed: int, factor: float) -> None:
    assert abs(fed(factor, seed=seed).slowdown(CPU) / factor - 1) < 0.1


@given(st.integers(0, 1000))
def test_a_heavy_tail_that_stays_hardly_moves_the_slowdown(seed: int) -> None:
    rng, calibration = np.random.default_rng(seed), fed(1.0, batches=0)
    seen = []
    for at, took in enumerate(np.interp(rng.random(2000), QUANTILES, HEAVY_TAIL)):
        calibration.batch_completed(CPU, 100 * MS, round(float(took) * 100 * MS), at * MS)
        seen.append(calibration.slowdown(CPU))
    # Its 0.75 quantile over 64 batches differs from what is known by 0.1 some 85 times.
    assert sum(before != after for before, after in pairwise(seen[200:])) <= 40
    assert all(1 < each < 3 for each in seen[200:])


def test_a_faster_machine_is_not_believed() -> None:
    assert fed(0.5).slowdown(CPU) == 1.0


def test_a_few_outliers_change_nothing() -> None:
    assert fed(1.0, outliers=0.05).slowdown(CPU) == 1.0


def test_one_terrible_batch_at_the_start_changes_nothing() -> None:
    calibration = fed(1.0, batches=0)
    calibration.batch_completed(CPU, MS, 1000 * MS, 0)
    assert calibration.slowdown(CPU) == 1.0


def run(calibration: Calibration, factors: list[float], from_ms: int = 1000) -> list[float]:
    """Return the slowdown after each of these batches."""
    seen = []
    for at, factor in enumerate(factors):
        took_ns = round(factor * 100 * MS)
        calibration.batch_completed(CPU, 100 * MS, took_ns, (from_ms + at) * MS)
        seen.append(calibration.slowdown(CPU))
    return seen


@given(st.sampled_from([1.25, 1.5, 2.0]))
def test_a_machine_that_is_suddenly_slow_is_believed_after_a_few_batches(factor: float) -> None:
    seen = run(fed(1.0), [factor] * ALL_SLOWER)
    assert seen[:-1] == [1.0] * (ALL_SLOWER - 1)
    assert seen[-1] == factor


def test_one_that_is_far_slower_is_believed_by_and_by() -> None:
    seen = run(fed(1.0), [5.0] * 3 * ALL_SLOWER)
    assert seen[ALL_SLOWER - 1 :: ALL_SLOWER] == [AT_ONCE_MAX, AT_ONCE_MAX**2, 5.0]


def test_it_is_forgotten_as_soon_as_batches_are_quick_again() -> None:
    calibration = fed(1.0)
    run(calibration, [2.0] * ALL_SLOWER)
    seen = run(calibration, [1.0] * 32)
    assert seen[0] == 2.0  # a single quick one proves nothing
    assert seen[-1] == 1.0


def test_a_spell_is_told_once_when_it_is_over_from_its_first_batch_to_its_last() -> None:
    calibration = fed(1.0, batches=0)
    run(calibration, [1.0] * 10 + [2.0] * 20)
    assert calibration.slow_period_ended(CPU) is None
    run(calibration, [1.0] * 64, from_ms=1030)
    assert calibration.slow_period_ended(CPU) == SlowPeriod(1010 * MS, 1029 * MS)
    assert calibration.slow_period_ended(CPU) is None


def test_what_the_profile_is_corrected_for_is_no_spell() -> None:
    calibration = fed(1.0)
    run(calibration, [2.0] * 20)
    calibration.profiles_corrected(CPU)
    run(calibration, [1.0] * 64, from_ms=1020)
    assert calibration.slow_period_ended(CPU) is None


def test_a_spell_is_over_where_an_executor_rests_so_long_that_it_is_trusted() -> None:
    calibration = fed(1.0, batches=0)
    run(calibration, [1.0] * 10 + [2.0, 2.0, 1.0, 2.0] * 8)
    calibration.relax(CPU, 60 * S)
    assert calibration.slow_period_ended(CPU) == SlowPeriod(1010 * MS, 1041 * MS)


def test_slow_batches_among_others_are_outliers() -> None:
    slow = [20.0] * (ALL_SLOWER - 1)
    assert set(run(fed(1.0), [*slow, *[1.0] * 20] * 10)) == {1.0}


def test_an_idle_executor_is_trusted_again() -> None:
    calibration = fed(3.0)
    idle_ns = 400 * MS
    seen = []
    for seconds in range(2, 21, 2):
        calibration.relax(CPU, idle_ns + seconds * S)
        seen.append(calibration.slowdown(CPU))
    assert seen == sorted(seen, reverse=True)
    assert seen[0] < 2.2
    assert seen[-1] == 1.0


seconds = st.integers(0, 20).map(lambda second: second * S)


@given(st.lists(seconds, max_size=10), seconds)
def test_relaxing_often_or_once_is_the_same(instants: list[int], end_ns: int) -> None:
    often, once = fed(2.0), fed(2.0)
    start_ns = 400 * MS
    for at_ns in sorted(instants):
        often.relax(CPU, start_ns + min(at_ns, end_ns))
    often.relax(CPU, start_ns + end_ns)
    once.relax(CPU, start_ns + end_ns)
    assert often.slowdown(CPU) == once.slowdown(CPU)
    assert often.relax_at_ns(CPU) == once.relax_at_ns(CPU) > start_ns + end_ns


def test_fixed_costs_are_decoding_and_hand_over() -> None:
    calibration = fed(1.0)
    for took_ms in range(100):
        calibration.prepared((took_ms % 10) * MS)
    assert calibration.overhead_ns(CPU) == MS
    assert calibration.fixed_ns == MS + 9 * MS
    assert 4 * MS <= calibration.prepare_ns <= 5 * MS


GPU = ExecutorId("cuda:0/0")


def test_each_executor_has_its_own_hand_over() -> None:
    calibration = fed(1.0)
    calibration.executor_started(GPU, 0)
    for _ in range(100):
        calibration.handed_over(GPU, 20 * MS)
    assert (calibration.overhead_ns(CPU), calibration.overhead_ns(GPU)) == (MS, 20 * MS)
    # A frame may run on any of them, so planning takes the worst.
    assert calibration.fixed_ns - 20 * MS == fed(1.0).fixed_ns - MS
    calibration.executor_stopped(GPU)
    assert calibration.fixed_ns == fed(1.0).fixed_ns
