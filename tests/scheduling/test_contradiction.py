"""Batches that are too fast for what is known of their members, and batches that only seem so."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId
from edgebox.scheduling.applications import (
    CONTRADICTION_SPACING_NS,
    CONTRADICTION_WINDOW,
    Applications,
)
from edgebox.scheduling.censored import MultiRequestBatch
from edgebox.scheduling.change_detection import FALSE_ALARM
from edgebox.scheduling.contradiction import CHANCE_LEAST, chance_as_fast, is_slow, too_fast
from edgebox.scheduling.distributions import EmpiricalDistribution

CPU = ExecutorId("cpu")

Draw = Callable[[random.Random], float]


def modes(short: float) -> Draw:
    """Return what draws the work of requests of which this share is short."""
    return lambda rng: (1.0 if rng.random() < short else 8.0) * rng.uniform(0.95, 1.05)


def lognormal(rng: random.Random) -> float:
    return rng.lognormvariate(0.0, 1.0)


class Served:
    """An application of which samples are known, and batches of it that an executor runs."""

    def __init__(self, known: Draw, samples: int, seed: int) -> None:
        self._rng = random.Random(seed)
        self.of = Applications([1.0], profiled=True)
        distribution = EmpiricalDistribution([1.0])
        for _ in range(samples):
            distribution.add(known(self._rng))
        self.of.assign_slot(0, "app", distribution)
        self.now_ns = 0

    def batch(self, draw: Draw, size: int, took_ns: Callable[[float], float]) -> None:
        """Run a batch at once after the last."""
        work = max(draw(self._rng) for _ in range(size))
        started_ns, self.now_ns = self.now_ns, self.now_ns + round(took_ns(work))
        self.of.compare(MultiRequestBatch((0,) * size, work, self.now_ns, CPU), started_ns)

    def until_contradicted(self, draw: Draw, size: int, batches: int) -> int | None:
        """Return how many batches contradict the samples; None: not even all."""
        for number in range(1, batches + 1):
            self.now_ns += CONTRADICTION_SPACING_NS
            self.batch(draw, size, lambda work: 1e6 * work)
            if self.of.contradicted_since(0) is not None:
                return number
        return None


@pytest.mark.parametrize(("size", "within"), [(2, 64), (4, 24), (8, 16), (16, 16)])
def test_requests_that_are_mostly_short_now_are_noticed_at_any_batch_size(
    size: int, within: int
) -> None:
    for seed in range(10):
        assert Served(modes(0.5), 500, seed).until_contradicted(modes(0.95), size, within)


@pytest.mark.parametrize("draw", [modes(0.5), modes(0.95), lognormal], ids=["half", "few", "wide"])
@pytest.mark.parametrize("samples", [20, 40, 500])
def test_the_same_requests_are_no_contradiction(draw: Draw, samples: int) -> None:
    found = [Served(draw, samples, seed).until_contradicted(draw, 4, 100) for seed in range(20)]
    assert sum(each is not None for each in found) <= 1


def test_long_batches_are_not_looked_at_more_often_than_others() -> None:
    """Of batches that run one after the other, the one that ends next is a long one more often."""
    served = Served(modes(0.5), 500, seed=1)
    looked_at = []
    for _ in range(4_000):
        before = list(served.of.tested.get(0, {}).get((True, CPU), ()))
        served.batch(modes(0.5), 1, lambda work: 1e8 * work)
        row = list(served.of.tested[0][True, CPU])
        if row != before:
            looked_at.append(row[-1].chance_as_fast > 0.55)
    assert len(looked_at) > 500
    assert sum(looked_at) / len(looked_at) == pytest.approx(0.5, abs=0.07)


def test_one_batch_alone_contradicts_nothing() -> None:
    assert too_fast([CHANCE_LEAST]) == 0.0
    assert too_fast([]) == 0.0


def test_forgetting_begins_with_the_first_batch_that_contradicts() -> None:
    served = Served(modes(0.5), 500, seed=2)
    for _ in range(20):
        served.now_ns += CONTRADICTION_SPACING_NS
        served.batch(modes(0.0), 8, lambda work: 1e6 * work)
    began_ns = served.now_ns
    assert served.until_contradicted(modes(1.0), 8, CONTRADICTION_WINDOW)
    since_ns = served.of.contradicted_since(0)
    assert since_ns is not None
    assert since_ns > began_ns
    served.of.forget_contradicted(0, since_ns)
    assert served.of.distributions[0].samples == 0
    assert served.of.contradicted_since(0) is None


@given(st.lists(st.floats(CHANCE_LEAST, 1.0), max_size=CONTRADICTION_WINDOW))
def test_batches_are_too_fast_together_only_where_chance_makes_so_many_hardly_ever(
    chances: list[float],
) -> None:
    def tail(limit: float) -> float:
        """Return the probability that at least so many are that fast (binomial)."""
        n, many = len(chances), sum(chance <= limit for chance in chances)
        return math.fsum(
            math.comb(n, k) * limit**k * (1 - limit) ** (n - k) for k in range(many, n + 1)
        )

    found = too_fast(chances)
    if found:
        assert found in chances
        assert tail(found) < FALSE_ALARM
    else:
        assert all(tail(chance) > FALSE_ALARM / 100 for chance in chances)


@given(
    st.lists(st.floats(0.1, 10.0), min_size=20, max_size=60),
    st.integers(1, 16),
    st.floats(0.01, 20.0),
)
def test_a_longer_batch_of_fewer_requests_is_less_surprising(
    samples: list[float], owned: int, work: float
) -> None:
    values = np.array(sorted(samples))
    chance = chance_as_fast(values, owned, work)
    assert CHANCE_LEAST <= chance <= 1.0
    assert chance_as_fast(values, owned, work * 1.5) >= chance
    assert chance_as_fast(values, owned + 1, work) <= chance
    assert 0.0 <= is_slow(values, owned, work)[1] <= 1.0
