"""Empirical distributions: windows, quantiles and maxima of several draws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import QUANTILES
from edgebox.scheduling.distributions import (
    SAMPLES_ENOUGH,
    SAMPLES_MIN,
    EmpiricalDistribution,
    values_from_quantiles,
)

times = st.floats(0, 1e12, allow_nan=False)
few = st.lists(st.integers(0, 20).map(float), min_size=1, max_size=4)
garbage = st.sampled_from([math.nan, math.inf, -math.inf, -1.0, -1e-300])


def of(values: list[float]) -> EmpiricalDistribution:
    """A distribution with exactly these values, however few."""
    return EmpiricalDistribution(values)


@given(st.lists(times | garbage, max_size=60), st.integers(1, 30))
def test_the_window_holds_the_last_usable_samples(samples: list[float], window: int) -> None:
    distribution = EmpiricalDistribution([1.0], window)
    taken = [sample for sample in samples if distribution.add(sample)]
    assert taken == [s for s in samples if math.isfinite(s) and s >= -1]
    assert distribution.samples == min(len(taken), window)
    kept = sorted(max(0.0, sample) for sample in taken[-window:])
    if len(kept) < SAMPLES_MIN:
        kept = sorted([1.0, *kept])
    assert distribution.values.tolist() == kept
    assert np.isfinite(distribution.values).all()


@given(st.lists(times, min_size=1, max_size=40), st.lists(times, min_size=1, max_size=5))
def test_another_prior_leaves_the_samples(samples: list[float], prior: list[float]) -> None:
    distribution, alike = EmpiricalDistribution([7.0]), EmpiricalDistribution(prior)
    for sample in samples:
        distribution.add(sample)
        alike.add(sample)
    distribution.set_prior([*prior, math.nan])
    assert distribution.samples == alike.samples
    assert distribution.values.tolist() == alike.values.tolist()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=400), st.integers(1, 2000))
def test_old_samples_leave_while_enough_newer_remain(pauses: list[int], horizon: int) -> None:
    distribution = EmpiricalDistribution([1.0], horizon_ns=horizon)
    taken: list[tuple[int, float]] = []
    now = 0
    for number, pause in enumerate(pauses):
        now += pause
        # Scattered evenly, so that there is no change to be noticed.
        taken.append((now, float(number * 0.618 % 1)))
        distribution.add(taken[-1][1], now)
        while len(taken) > SAMPLES_ENOUGH and taken[0][0] < now - horizon:
            taken.pop(0)
    assert distribution.resets == 0
    assert distribution.samples == len(taken)
    assert distribution.newest_ns == now
    if len(taken) >= SAMPLES_MIN:
        assert distribution.values.tolist() == sorted(value for _, value in taken)


@given(few, st.floats(0.0, 1.0))
def test_a_quantile_is_the_least_value_that_enough_do_not_exceed(
    values: list[float], q: float
) -> None:
    at = of(values).quantile(q)
    assert at in values
    share = sum(value <= at for value in values) / len(values)
    below = sum(value < at for value in values) / len(values)
    assert share >= q - 1e-6
    assert below <= q + 1e-6


@pytest.mark.parametrize("q", [0.05, 0.5, 0.9, 0.99])
def test_the_quantile_of_a_maximum_is_what_sampling_finds(q: float) -> None:
    rng = np.random.default_rng(3)
    long = rng.lognormal(3, 0.5, 2000)
    maxima = rng.choice(long, (40_000, 16)).max(axis=1)
    assert of(list(long)).quantile_of_max(16, q) == pytest.approx(np.quantile(maxima, q), rel=0.02)


def test_what_is_less_than_any_work_counts_as_none_and_is_told_apart() -> None:
    learnt = EmpiricalDistribution()
    for sample in [-0.8] * 10 + [0.0] * 10 + [2.0] * 10:
        learnt.add(sample, 0, "slow")
    assert learnt.values.tolist() == learnt.sampled_values.tolist() == [0.0] * 20 + [2.0] * 10
    assert (learnt.quantile(0.1), learnt.signed_quantile(0.1), learnt.signed_least) == (
        0,
        -0.8,
        -0.8,
    )
    learnt.rescale("slow", 0, 2.0)
    assert learnt.signed.tolist() == pytest.approx([-0.6] * 10 + [0.0] * 10 + [4.0] * 10)


def test_values_from_quantiles_have_those_quantiles() -> None:
    wanted = [float(q * q * 100) for q in QUANTILES]
    values = values_from_quantiles(wanted, 2000)
    assert values == sorted(values)
    assert np.quantile(values, QUANTILES) == pytest.approx(wanted, abs=0.05)


def test_what_a_source_told_is_undone_and_what_others_told_stays() -> None:
    distribution = EmpiricalDistribution()
    for at in range(40):
        distribution.add(1.0, at, "a" if at % 2 else "b")
    for at in range(40, 60):
        distribution.add(3.0 if at % 2 else 1.5, at, "a" if at % 2 else "b")
    distribution.undo("a", 40, [1.0] * 8)
    assert distribution.sampled_values.tolist() == [1.0] * 40 + [1.5] * 10
    distribution.undo("b", 0, [1.0] * 64)
    assert distribution.sampled_values.tolist() == [1.0] * (64 + 20)
