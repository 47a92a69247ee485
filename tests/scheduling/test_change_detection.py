"""When newer samples overthrow older ones: hardly ever by chance, soon after a real change."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.scheduling.change_detection import KEPT_MIN, NEWEST_MIN, newest_that_hold
from edgebox.scheduling.distributions import EmpiricalDistribution

Draw = Callable[[np.random.Generator, int], np.ndarray]

SHAPES: dict[str, Draw] = {
    "static": lambda rng, n: np.full(n, 1.0),
    "narrow": lambda rng, n: rng.normal(1, 0.05, n),
    "uniform": lambda rng, n: rng.uniform(0.5, 1.5, n),
    "rare-long": lambda rng, n: rng.choice([1.0, 10.0], n, p=[0.95, 0.05]),
    "modal": lambda rng, n: rng.choice([1.0, 2.0, 4.0], n) * rng.normal(1, 0.05, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 0.5, n),
    "broad": lambda rng, n: rng.lognormal(0, 1, n),
    "exponential": lambda rng, n: rng.exponential(1, n),
}
NOTICED_WITHIN = {
    "static": 48, "narrow": 48, "uniform": 128, "rare-long": 64, "modal": 1024, "lognormal": 384,
    "broad": 1536, "exponential": 1536,
}  # fmt: skip
"""Samples after a change by 1.5: the broader the shape, the less a single one tells."""


def filled(values: np.ndarray) -> EmpiricalDistribution:
    distribution = EmpiricalDistribution([1.0])
    for value in values:
        distribution.add(float(abs(value)))
    return distribution


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_samples_of_one_distribution_stay(shape: str, seed: int) -> None:
    # 300 tests per example at one in a million each.
    assert filled(SHAPES[shape](np.random.default_rng(seed), 2500)).resets == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
def test_a_change_by_half_is_noticed(shape: str, factor: float) -> None:
    needed = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        distribution = filled(SHAPES[shape](rng, 1500))
        after = 0
        while not distribution.resets and after < 3000:
            distribution.add(float(abs(SHAPES[shape](rng, 1)[0]) * factor))
            after += 1
        needed.append(after)
        # What stays is nearly all from after the change.
        assert distribution.samples <= 1.5 * after + KEPT_MIN
    assert sorted(needed)[len(needed) // 2] <= NOTICED_WITHIN[shape]


def test_nothing_is_left_of_what_a_clear_change_contradicts() -> None:
    distribution = filled(np.concatenate([np.full(1000, 1.0), np.full(64, 1.5)]))
    assert distribution.resets == 1
    assert distribution.values[-1] == 1.5
    assert np.mean(distribution.values == 1.5) > 0.9


numbers = st.integers(0, 5).map(float)


@settings(deadline=None)
@given(
    st.lists(numbers, min_size=2 * NEWEST_MIN, max_size=150),
    st.sampled_from([16, 32, 64]),
    st.floats(0, 3),
)
def test_the_distance_is_what_enumeration_finds(old: list[float], new: int, shifted: float) -> None:
    """Ours against the definition, with the same bound on what chance allows."""
    recent = [*old, *(value + shifted for value in old[:new])]
    count = len(recent)
    held = newest_that_hold(recent, sorted(recent), NEWEST_MIN)
    due = [n for n in (32, 64) if 2 * n <= count and n <= 2 * NEWEST_MIN]
    counts = any(distance(recent[-n:], recent[:-n]) > allowed(n, count - n) for n in due)
    assert (held < count) == counts
    if counts:
        assert held >= KEPT_MIN


def distance(some: list[float], others: list[float]) -> float:
    def cdf(of: list[float], at: float) -> float:
        return sum(value <= at for value in of) / len(of)

    return max(abs(cdf(some, at) - cdf(others, at)) for at in {*some, *others})


def allowed(n: int, m: int) -> float:
    """Smirnov's bound for one in a million."""
    return float(np.sqrt(np.log(2e6) / 2 * (n + m) / (n * m)))
