"""Candidate batches and their scores, judged by forming and scoring them one by one."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.scheduling.batch_candidates import (
    BatchCost,
    WaitingRequests,
    answered_after,
    most_likely_on_time,
    propose,
)
from edgebox.scheduling.distributions import EmpiricalDistribution, Floats
from edgebox.scheduling.work import MEMBERSHIP, tabulate

SIZES = (1, 2, 4)
FIXED_NS = 5.0
SLOPE_NS = np.array([1.0, 2.0, 4.0])
VALUES = st.lists(st.integers(1, 30).map(float), min_size=1, max_size=5)
SLO_NS = 100.0


def cdf_of_max(members: Sequence[tuple[EmpiricalDistribution, int]], at: Floats) -> Floats:
    """Return the CDF of the maximum of independent draws, `(distribution, draws)` each."""
    cdfs: list[Floats] = [distribution.cdf(at) ** draws for distribution, draws in members]
    product: Floats = np.prod(cdfs, axis=0)
    return product


def mean_of_max(members: Sequence[tuple[EmpiricalDistribution, int]]) -> float:
    """Return the mean of the maximum of independent draws: the integral of 1 - CDF."""
    points = np.unique(np.concatenate([d.values for d, _ in members]))
    below = cdf_of_max(members, points[:-1])
    return float(points[0] + np.dot(1 - below, np.diff(points)))


def cost(urgency: float) -> BatchCost:
    return BatchCost(FIXED_NS, SLOPE_NS, SIZES, urgency, 0.3)


@given(
    st.lists(VALUES, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 150), st.integers(0, 2)), min_size=1, max_size=9),
    st.sampled_from([0.0, 0.3]),
)
def test_every_candidate_is_formed_and_scored_as_by_hand(
    apps: list[list[float]], drawn: list[tuple[int, int]], urgency: float
) -> None:
    distributions = [EmpiricalDistribution(values) for values in apps]
    table = tabulate(distributions)
    slack = np.array(sorted(float(at) for at, _ in drawn))
    rank = table.rank[np.array([app % len(apps) for _, app in drawn])]
    ranked = sorted(distributions, key=lambda d: d.mean)
    waiting = WaitingRequests(slack, np.full(len(slack), SLO_NS), rank)
    found = propose(waiting, table, cost(urgency))
    by_hand = formed(slack, rank, ranked)
    if found is None:
        assert not by_hand
        return
    batches = {tuple(found.batch(at)) for at in range(len(found.score))}
    assert batches == by_hand
    for at in range(len(found.score)):
        places = found.batch(at)
        assert SIZES[int(found.size[at])] == min(s for s in SIZES if s >= len(places))
        expected_ns, score = scored(places, slack, rank, ranked, urgency)
        assert found.expected_ns[at] == pytest.approx(expected_ns, rel=1e-4)
        assert found.score[at] == pytest.approx(score, rel=1e-3, abs=1e-6)


@given(
    st.lists(VALUES, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 150), st.integers(0, 2)), min_size=1, max_size=6),
    st.lists(st.integers(0, 100).map(float), min_size=1, max_size=3),
)
def test_what_a_batch_answers_later_is_what_it_would_answer_with_less_time(
    apps: list[list[float]], drawn: list[tuple[int, int]], delays: list[float]
) -> None:
    distributions = [EmpiricalDistribution(values) for values in apps]
    table = tabulate(distributions)
    slack = np.array(sorted(float(at) for at, _ in drawn))
    rank = table.rank[np.array([app % len(apps) for _, app in drawn])]
    ranked = sorted(distributions, key=lambda d: d.mean)
    waiting = WaitingRequests(slack, np.full(len(slack), SLO_NS), rank)
    found = propose(waiting, table, cost(0))
    if found is None:
        return
    at = int(np.argmax(found.score))
    answered = answered_after(
        found, at, np.array(delays), waiting=waiting, table=table, cost=cost(0.3)
    )
    for delay, value in zip(delays, answered, strict=True):
        expected_ns, score = scored(found.batch(at), slack - delay, rank, ranked, 0)
        assert value == pytest.approx(expected_ns * score, rel=1e-3, abs=1e-4)


def formed(
    slack: "np.ndarray", rank: "np.ndarray", ranked: list[EmpiricalDistribution]
) -> set[tuple[int, ...]]:
    batches = set()
    useful = [s for at, s in enumerate(SIZES) if at == 0 or SIZES[at - 1] < len(slack)]
    for top in set(rank.tolist()):
        for size in useful:
            for q in MEMBERSHIP:
                work = ranked[top].quantile_of_max(size, q)
                need = FIXED_NS + size * work
                fit = [p for p in range(len(slack)) if rank[p] <= top and slack[p] >= need - 1]
                batches.add(tuple(fit[:size]))
                batches.add(tuple(sorted(fit, key=lambda p: (rank[p] != top, p))[:size]))
    return batches - {()}


def scored(
    places: list[int],
    slack: "np.ndarray",
    rank: "np.ndarray",
    ranked: list[EmpiricalDistribution],
    urgency: float,
) -> tuple[float, float]:
    members = [(ranked[r], n) for r, n in Counter(rank[places].tolist()).items()]
    slope = min(s for s in SIZES if s >= len(places))
    expected_ns = FIXED_NS + slope * mean_of_max(members)
    utility = 0.0
    for place in places:
        # A hair more, as an amount of work exactly at the limit is in time.
        limit = (slack[place] - FIXED_NS) / slope * (1 + 1e-9)
        utility += float(cdf_of_max(members, np.array([limit]))[0])
        spare = slack[place] - expected_ns
        if spare >= 0:
            utility += urgency * math.exp(-spare / (0.3 * SLO_NS))
    return expected_ns, utility / expected_ns


def test_who_can_only_just_make_it_is_tried_when_nobody_likely_does() -> None:
    table = tabulate([EmpiricalDistribution([10.0, 20.0, 20.0, 20.0])])
    waiting = WaitingRequests(
        np.array([5.0, 16.0, 17.0]), np.full(3, SLO_NS), np.zeros(3, dtype=np.intp)
    )
    assert propose(waiting, table, cost(0)) is None
    single = most_likely_on_time(waiting, table, cost(0))
    assert single is not None
    assert single[0] in (1, 2)
    lost = WaitingRequests(np.array([5.0, 14.0]), np.full(2, SLO_NS), np.zeros(2, dtype=np.intp))
    assert most_likely_on_time(lost, table, cost(0)) is None


def test_exactly_at_the_deadline_is_in_time() -> None:
    table = tabulate([EmpiricalDistribution([10.0])])
    waiting = WaitingRequests(np.array([15.0]), np.array([15.0]), np.zeros(1, dtype=np.intp))
    found = propose(waiting, table, cost(0))
    assert found is not None
    assert found.score[0] == pytest.approx(1 / 15)
