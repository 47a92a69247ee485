"""Attribution: another speed is told from other requests, by what all applications say together."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.scheduling.attribution import (
    Attribution,
    ObservedBatch,
    VariantBatches,
    attribute,
    attribute_together,
)
from edgebox.scheduling.distributions import EmpiricalDistribution
from edgebox.scheduling.work import tabulate

FIXED_NS = 3e7
SLOPE_NS = np.array([1e7, 2e7, 4e7, 8e7])
SIZES = (1, 2, 4, 8)
QUICK, LONG = 1.0, 8.0


def ran(
    seed: int,
    known: list[list[float]],
    served: list[list[float]],
    slower: float = 1.0,
    batches: int = 128,
) -> VariantBatches:
    """Run batches of applications whose requests are drawn from these modes."""
    rng = random.Random(seed)

    def draw(modes: list[float]) -> float:
        return rng.choice(modes) * rng.uniform(0.95, 1.05)

    table = tabulate([EmpiricalDistribution([draw(of) for _ in range(300)]) for of in known])
    seen = []
    for _ in range(batches):
        size = rng.randrange(4)
        apps = [rng.randrange(len(served)) for _ in range(SIZES[size])]
        work = max(draw(served[app]) for app in apps)
        took_ns = slower * (FIXED_NS + SLOPE_NS[size] * work)
        owner = max(apps, key=lambda app: int(table.rank[app]))
        seen.append(ObservedBatch(owner, table.longest(apps), size, took_ns))
    return VariantBatches(seen, FIXED_NS, SLOPE_NS)


def found(
    seed: int,
    known: list[list[float]],
    served: list[list[float]],
    slower: float = 1.0,
    batches: int = 128,
) -> Attribution:
    """Attribute such batches."""
    return attribute(ran(seed, known, served, slower, batches))


def mixed(short: int, long: int) -> list[float]:
    return [QUICK] * short + [LONG] * long


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(1, 19), (3, 17), (10, 10), (17, 3), (19, 1)]))
def test_another_mix_is_no_other_speed(seed: int, mix: tuple[int, int]) -> None:
    assert found(seed, [mixed(1, 1)], [mixed(*mix)]).factor == 1


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([(3, 17), (10, 10), (17, 3)]),
    st.sampled_from([0.5, 0.67, 1.5, 2.0]),
)
def test_another_speed_is_found_whatever_the_mix(
    seed: int, mix: tuple[int, int], slower: float
) -> None:
    result = found(seed, [mixed(1, 1)], [mixed(*mix)], slower)
    assert result.factor == pytest.approx(slower, rel=0.07)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1.5, 2.0, 3.0]))
def test_one_application_of_two_that_changes_is_no_other_speed(seed: int, longer: float) -> None:
    known = [[QUICK], [LONG]]
    assert found(seed, known, [[QUICK], [LONG * longer]]).factor == 1
    both = found(seed, known, [[QUICK], [LONG]], longer)
    assert both.factor == pytest.approx(longer, rel=0.07)
    assert both.agreeing == {0, 1}


def test_a_little_slower_is_no_news_but_not_as_before() -> None:
    result = found(1, [[QUICK], [LONG]], [[QUICK], [LONG]], 1.12)
    assert result.factor == 1
    assert result.shifted


def test_a_variant_that_hardly_ran_does_not_say_alone_how_fast_the_executor_is() -> None:
    both = [[QUICK], [LONG]]
    few = ran(2, both, both, 2.0, batches=1)
    assert attribute(few).factor == pytest.approx(2, rel=0.07)
    beside_slow = attribute_together([ran(1, both, both, 2.0), few])
    assert [of.factor for of in beside_slow] == [pytest.approx(2, rel=0.07)] * 2
    assert [of.agreeing for of in beside_slow] == [{0, 1}, {few.batches[0].app}]
    beside_usual = attribute_together([few, ran(1, both, both)])
    assert [of.factor for of in beside_usual] == [1, 1]
