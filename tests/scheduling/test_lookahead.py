"""Looking ahead: when it is worth it, and that it sees what a greedy choice does not."""

import random

import numpy as np
import pytest

from edgebox.scheduling import lookahead
from edgebox.scheduling.adaptive import DistributionAware
from edgebox.scheduling.batch_candidates import BatchCost, WaitingRequests
from edgebox.scheduling.distributions import EmpiricalDistribution
from edgebox.scheduling.work import tabulate
from edgebox.simulation.batching_simulator import BatchingSimulation
from edgebox.simulation.generation import make_workload

MS = 1e6
SIZES = (1, 2, 4)
TABLE = tabulate([EmpiricalDistribution([1.0]), EmpiricalDistribution([20.0])])
PRICING = BatchCost(5 * MS, np.array(SIZES) * 5 * MS, SIZES, 0.3, 0.3)
"""A short request takes 10 ms alone, a long one 105."""


def waiters(*each: tuple[float, int]) -> WaitingRequests:
    """Requests as (time to the deadline in ms, rank)."""
    slack_ms = np.array([slack for slack, _ in each])
    ranks = np.array([rank for _, rank in each], dtype=np.intp)
    return WaitingRequests(slack_ms * MS, np.full(len(each), 200 * MS), ranks)


def arrivals(every_ms: float, app: int, slo_ms: float) -> lookahead.RecentArrivals:
    recent = lookahead.RecentArrivals()
    for at in range(100):
        recent.add(round(at * every_ms * MS), app, round(slo_ms * MS))
    return recent


def chosen(
    batches: list[list[int]],
    queue: WaitingRequests,
    recent: lookahead.RecentArrivals,
    every_ms: float,
) -> int:
    return lookahead.choose(
        batches,
        queue,
        TABLE,
        PRICING,
        recent=recent,
        now_ns=round(100 * every_ms * MS),
        horizon_ns=200 * MS,
        rng=np.random.default_rng(1),
    )


def test_short_ones_go_before_a_long_one_that_can_wait() -> None:
    queue = waiters((20, 0), (20, 0), (180, 1))
    recent = arrivals(1000, 0, 200)
    assert chosen([[2], [0, 1]], queue, recent, 1000) == 1
    assert chosen([[0, 1], [2]], queue, recent, 1000) == 0


def test_where_nothing_comes_waiting_gains_nothing() -> None:
    assert chosen([[0]], waiters((190, 1)), arrivals(10_000, 0, 25), 10_000) == 0


def test_longer_batches_can_afford_to_look_ahead_sooner_than_long_queues() -> None:
    one, many = waiters((190, 1)), waiters(*[(190, 1)] * 90)
    assert lookahead.cost_ns(one, 50 * MS) < lookahead.cost_ns(many, 50 * MS)
    assert lookahead.horizon_ns(one, 10 * MS) == 50 * MS
    assert lookahead.horizon_ns(one, 100 * MS) == 200 * MS


@pytest.mark.parametrize("kind", ["modal-2", "rare-long"])
def test_looking_ahead_does_no_harm(kind: str) -> None:
    work = make_workload(kind, load=0.5, slo_multiple=2, requests=600, rng=random.Random(4))
    rates = [
        BatchingSimulation(
            work, DistributionAware(random.Random(1), look_ahead=ahead), rng=random.Random(1)
        )
        .run()
        .finish_rate
        for ahead in (False, True)
    ]
    assert rates[1] >= rates[0] - 0.01


def test_one_application_does_not_look_ahead() -> None:
    work = make_workload("lognormal", load=0.7, slo_multiple=2, requests=300, rng=random.Random(4))
    ends = [
        BatchingSimulation(
            work, DistributionAware(random.Random(1), look_ahead=ahead), rng=random.Random(1)
        )
        .run()
        .ends
        for ahead in (False, True)
    ]
    assert ends[0] == ends[1]
