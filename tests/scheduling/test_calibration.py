"""Slowdown and fixed costs."""

import random

from hypothesis import given
from hypothesis import strategies as st

from edgebox.scheduling.calibration import Calibration, RecentValues
from edgebox.scheduling.parameters import SchedulerParameters
from tests.scheduling.scene import CPU, MS, profile

PARAMETERS = SchedulerParameters()
S = 1000 * MS


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


def fed(factor: float, batches: int = 400, outliers: float = 0.0, seed: int = 1) -> Calibration:
    rng, of = random.Random(seed), profile(256)
    calibration = Calibration(PARAMETERS)
    calibration.executor_started(CPU, 0)
    expected_ns = of.quantile_ns(1, PARAMETERS.slowdown_quantile)
    for at in range(batches):
        took_ns = round(of.quantile_ns(1, rng.random()) * factor)
        if rng.random() < outliers:
            took_ns *= 20
        calibration.batch_completed(CPU, expected_ns, took_ns, took_ns + MS, at * MS)
    return calibration


@given(st.integers(0, 1000))
def test_a_profile_that_holds_is_left_alone(seed: int) -> None:
    assert fed(1.0, seed=seed).slowdown(CPU) == 1.0


@given(st.integers(0, 1000), st.sampled_from([1.5, 2.0, 3.0]))
def test_a_factor_is_found_whatever_the_spread(seed: int, factor: float) -> None:
    assert abs(fed(factor, seed=seed).slowdown(CPU) / factor - 1) < 0.1


def test_a_faster_machine_is_not_believed() -> None:
    assert fed(0.5).slowdown(CPU) == 1.0


def test_a_few_outliers_change_nothing() -> None:
    assert fed(1.0, outliers=0.05).slowdown(CPU) == 1.0


def test_one_terrible_batch_at_the_start_changes_nothing() -> None:
    calibration = fed(1.0, batches=0)
    calibration.batch_completed(CPU, MS, 1000 * MS, 1000 * MS, 0)
    assert calibration.slowdown(CPU) == 1.0


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
    assert calibration.overhead_ns == MS
    assert calibration.fixed_ns == calibration.overhead_ns + 9 * MS
    assert 4 * MS <= calibration.prepare_ns <= 5 * MS
