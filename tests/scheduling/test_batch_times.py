"""Batch times: what a profile says, and what served batches make of it."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import QUANTILES, ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling.batch_times import MEMORY_NS, PACE_LIMITS, BatchTimes

SIZES = (1, 2, 4, 8, 16)
MS = 1_000_000


def linear(
    c0_ms: float, c1: float, exec_ms: list[float], sizes: tuple[int, ...] = SIZES
) -> LatencyProfile:
    """A profile of batches of equal requests: c0 + c1 * k * exec."""
    rows = {k: tuple(round((c0_ms + c1 * k * e) * MS) for e in exec_ms) for k in sizes}
    return LatencyProfile(VariantName("model"), ExecutorId("cpu/0"), rows)


@given(
    st.floats(0, 50),
    st.floats(0.05, 1),
    st.lists(st.floats(1, 200), min_size=len(QUANTILES), max_size=len(QUANTILES)),
    st.sampled_from(SIZES),
    st.floats(1, 200),
)
def test_dynamic_work_is_told_from_what_is_fixed(
    c0_ms: float, c1: float, drawn: list[float], size: int, exec_ms: float
) -> None:
    times = BatchTimes(linear(c0_ms, c1, sorted(drawn)))
    work = times.work_of((c0_ms + c1 * exec_ms) * MS)
    expected_ns = (c0_ms + c1 * size * exec_ms) * MS
    assert times.batch_ns(SIZES.index(size), work) == pytest.approx(expected_ns, rel=0.02)


@given(st.floats(0, 50), st.floats(0, 1), st.floats(0, 300))
def test_whatever_one_takes_is_what_it_is_expected_to_take(
    c0_ms: float, c1: float, took_ms: float
) -> None:
    times = BatchTimes(linear(1 + c0_ms, c1, [100.0] * len(QUANTILES)))
    work = times.work_of(took_ms * MS)
    assert times.profiled_ns(1, work) == pytest.approx(took_ms * MS, abs=1)
    each_ns = times.profiled_each_ns(np.full((len(SIZES), 1), work))
    assert each_ns[:, 0].tolist() == [times.profiled_ns(size, work) for size in SIZES]
    assert sorted(each_ns[:, 0]) == each_ns[:, 0].tolist(), "a larger batch takes no less"


def test_noise_on_the_whole_time_is_not_taken_for_work() -> None:
    spread = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0)
    rows = {k: tuple(round((40 + k) * s * MS) for s in spread) for k in SIZES}
    times = BatchTimes(LatencyProfile(VariantName("model"), ExecutorId("cpu/0"), rows))
    slow = times.work_of(41 * 1.5 * MS)
    assert times.batch_ns(4, slow) == pytest.approx(56 * 1.5 * MS, rel=0.02)


def test_one_profiled_size_is_enough() -> None:
    times = BatchTimes(linear(5, 1, [10] * len(QUANTILES), (4,)))
    assert times.batch_ns(0, 1.0) == pytest.approx(45 * MS)
    times.served(4, 1.0, 90 * MS, 0)
    assert math.isfinite(times.fixed_ns)


def test_served_batches_correct_a_wrong_profile() -> None:
    rng = random.Random(1)
    times = BatchTimes(linear(10, 0.25, [20] * len(QUANTILES)))
    for at in range(400):
        k, exec_ms = rng.choice(SIZES), rng.uniform(5, 40)
        # Really c0 is 25 and everything else takes twice as long.
        took_ms = 25 + 0.5 * k * exec_ms * rng.uniform(0.95, 1.05)
        times.served(k, exec_ms / 20, round(took_ms * MS), at * 20 * MS)
    for at, k in enumerate(SIZES):
        assert times.batch_ns(at, 1.5) == pytest.approx((25 + 0.5 * k * 30) * MS, rel=0.07)


def test_what_was_learnt_fades() -> None:
    profile = linear(10, 0.25, [20] * len(QUANTILES))
    times, fresh = BatchTimes(profile), BatchTimes(profile)
    for at in range(200):
        times.served(4, 1.0, 150 * MS, at * MS)
    assert times.batch_ns(2, 1.0) > 100 * MS
    times.served(4, 1.0, round(fresh.batch_ns(2, 1.0)), 10 * MEMORY_NS)
    assert times.batch_ns(2, 1.0) == pytest.approx(fresh.batch_ns(2, 1.0), rel=0.05)


@given(st.lists(st.tuples(st.sampled_from(SIZES), st.floats(0, 50), st.floats(-1, 1e15))))
def test_no_measurement_makes_times_absurd(served: list[tuple[int, float, float]]) -> None:
    times = BatchTimes(linear(10, 0.25, [20] * len(QUANTILES)))
    for at, (size, work, took_ns) in enumerate(served):
        times.served(size, work, took_ns, at)
    times.served(1, math.nan, 1.0, 0)
    times.served(1, 1.0, math.inf, 0)
    assert math.isfinite(times.fixed_ns)
    assert times.fixed_ns >= 0
    assert PACE_LIMITS[0] <= times.pace <= PACE_LIMITS[1]
    assert np.isfinite(times.slope_ns).all()


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=6).map(sorted))
def test_what_was_learnt_fades_without_batches_too(asked_ms: list[int]) -> None:
    once, often = (BatchTimes(linear(10, 0.25, [20] * len(QUANTILES))) for _ in range(2))
    for times in (once, often):
        for at in range(10):
            times.served(4, 1.0, 1_500 * MS, at * MS)
    paced_ns = once.batch_ns(2, 1.0)
    for at_ms in asked_ms:
        often.relax(at_ms * MS)
    once.relax(asked_ms[-1] * MS)
    assert often.batch_ns(2, 1.0) == pytest.approx(once.batch_ns(2, 1.0))
    once.relax(20 * MEMORY_NS)
    assert paced_ns > 200 * MS
    assert once.batch_ns(2, 1.0) == pytest.approx(30 * MS, rel=0.05)
