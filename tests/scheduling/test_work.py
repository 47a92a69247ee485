"""The work of the longest member of a batch, judged by enumeration and by sampling."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.scheduling.distributions import EmpiricalDistribution
from edgebox.scheduling.work import cdfs_at, tabulate

few = st.lists(st.integers(0, 20).map(float), min_size=1, max_size=4)


@given(st.lists(st.tuples(few, st.integers(1, 2)), min_size=1, max_size=3))
def test_the_longest_of_a_mixed_batch_is_what_enumeration_finds(
    batch: list[tuple[list[float], int]],
) -> None:
    slots = [values for values, draws in batch for _ in range(draws)]
    maxima = [max(drawn) for drawn in product(*slots)]
    table = tabulate([EmpiricalDistribution(values) for values, _ in batch])
    longest = table.longest([app for app, (_, draws) in enumerate(batch) for _ in range(draws)])
    at = np.arange(-1.0, 22.0)
    expected = [sum(m <= x for m in maxima) / len(maxima) for x in at]
    assert cdfs_at([longest], at)[0] == pytest.approx(expected, abs=1e-4)
    assert longest.mean == pytest.approx(sum(maxima) / len(maxima), abs=1e-4)


def test_the_longest_of_a_mixed_batch_is_what_sampling_finds() -> None:
    rng = np.random.default_rng(3)
    short, long = rng.normal(10, 1, 2000), rng.lognormal(3, 0.5, 2000)
    draws = np.concatenate([rng.choice(short, (40_000, 5)), rng.choice(long, (40_000, 3))], axis=1)
    maxima = draws.max(axis=1)
    table = tabulate([EmpiricalDistribution(list(short)), EmpiricalDistribution(list(long))])
    longest = table.longest([0] * 5 + [1] * 3)
    quantiles = [0.05, 0.25, 0.5, 0.75]  # beyond, the table is coarse
    at = np.quantile(maxima, quantiles)
    assert cdfs_at([longest], at)[0] == pytest.approx(quantiles, abs=0.03)
    assert [longest.quantile(q) for q in quantiles] == pytest.approx(list(at), rel=0.03)
    assert longest.mean == pytest.approx(maxima.mean(), rel=0.02)
