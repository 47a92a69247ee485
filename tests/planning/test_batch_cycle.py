"""Full batches in cycles: the test against enumeration, and by playing it out."""

import math
import random
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.planning.batch_cycle import (
    BatchCycle,
    DeadlineMiss,
    VariantDemand,
    cycle_utilisation,
    solve_cycle,
    steal_budget_ns,
)
from edgebox.planning.capacity import BatchTimes
from tests.scheduling.scene import MS, name

S = 1000 * MS


def rows(*times_ms: float, executors: int = 1) -> BatchTimes:
    """Batches of 1, 2, ... on executors that are alike."""
    return BatchTimes(
        round(times_ms[0] * MS),
        tuple((n, round(t * MS), t * MS / executors) for n, t in enumerate(times_ms, 1)),
    )


def test_one_variant_on_one_executor_is_jellyfishs_test() -> None:
    timing = {name(256): rows(10, 15, 20)}
    # 120 requests/s are 1.2 in 10 ms and 1.8 in 15 ms: batches of two, and 2 x 15 ms fit.
    demand = {name(256): VariantDemand(120, 30 * MS)}
    assert solve_cycle(demand, timing) == BatchCycle(15 * MS, {name(256): 2})
    assert solve_cycle({name(256): VariantDemand(120, 30 * MS - 1)}, timing) == DeadlineMiss(
        name(256), 1
    )
    assert isinstance(solve_cycle({name(256): VariantDemand(151, S)}, timing), DeadlineMiss)


def test_two_executors_take_half_of_a_variant_each() -> None:
    timing = {name(256): rows(10, 15, 20, executors=2)}
    assert solve_cycle({name(256): VariantDemand(200, 20 * MS)}, timing) == BatchCycle(
        10 * MS, {name(256): 1}
    )
    assert solve_cycle({name(256): VariantDemand(240, 30 * MS)}, timing) == BatchCycle(
        15 * MS, {name(256): 2}
    )


def test_every_active_variant_makes_the_others_wait() -> None:
    timing = {name(256): rows(10, 15), name(416): rows(30, 45)}
    demand = {name(256): VariantDemand(10, 50 * MS), name(416): VariantDemand(10, 70 * MS)}
    assert solve_cycle(demand, timing) == BatchCycle(40 * MS, {name(256): 1, name(416): 1})
    assert solve_cycle(demand | {name(256): VariantDemand(10, 49 * MS)}, timing) == DeadlineMiss(
        name(256), MS
    )


def test_who_is_best_effort_asks_for_time_but_not_for_haste() -> None:
    timing = {name(256): rows(10, 15)}
    assert isinstance(solve_cycle({name(256): VariantDemand(20)}, timing), BatchCycle)


@dataclass(frozen=True)
class Drawn:
    demand: dict[VariantName, VariantDemand]
    timing: dict[VariantName, BatchTimes]


@st.composite
def problems(draw: st.DrawFn) -> Drawn:
    names = [VariantName(f"v{at}") for at in range(draw(st.integers(1, 3)))]
    executors = draw(st.integers(1, 3))
    timing = {}
    for each in names:
        first = draw(st.floats(1, 40))
        gain = draw(st.floats(0, 1))
        times = [first * (1 + n * (1 - gain)) for n in range(4)]
        timing[each] = rows(*times, executors=executors)
    demand = {
        each: VariantDemand(draw(st.floats(0.5, 200)), draw(st.integers(5, 400)) * MS)
        for each in names
    }
    return Drawn(demand, timing)


@settings(max_examples=400, deadline=None)
@given(problems())
def test_a_cycle_is_found_where_there_is_one_and_none_is_shorter(of: Drawn) -> None:
    """All batch sizes are tried, by the definition written down a second time."""
    names = list(of.demand)
    working = []
    for sizes in product(range(1, 5), repeat=len(names)):
        batches = [of.timing[n].batches[b - 1] for n, b in zip(names, sizes, strict=True)]
        cycle_ns = math.fsum(pooled for _, _, pooled in batches)
        wait_ns = max(round(cycle_ns), *(longest for _, longest, _ in batches))
        holds = all(
            of.demand[n].rate_hz * cycle_ns / 1e9 <= b + 1e-9
            for n, b in zip(names, sizes, strict=True)
        )
        in_time = all(
            wait_ns + longest <= of.demand[n].tightest_ns
            for n, (_, longest, _) in zip(names, batches, strict=True)
        )
        if holds and in_time:
            working.append((wait_ns, sizes))
    found = solve_cycle(of.demand, of.timing)
    if isinstance(found, DeadlineMiss):
        assert working == []
        assert found.over_ns > 0
    else:
        assert found.wait_ns == min(working)[0]


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 1 << 32))
def test_whoever_runs_batches_in_cycles_is_never_late(of: Drawn, seed: int) -> None:
    """One executor runs what has gathered of each variant, round and round; frames come evenly."""
    rng = random.Random(seed)
    one = {n: rows(*(longest / MS for _, longest, _ in t.batches)) for n, t in of.timing.items()}
    found = solve_cycle(of.demand, one)
    if isinstance(found, DeadlineMiss):
        return
    arrivals = {
        n: [(rng.random() + k) / each.rate_hz * 1e9 for k in range(60)]
        for n, each in of.demand.items()
    }
    now_ns = 0.0
    while any(arrivals.values()):
        idle = True
        for n, waiting in arrivals.items():
            gathered = [at for at in waiting if at <= now_ns][: len(one[n].batches)]
            if gathered:
                idle = False
                now_ns += one[n].batches[len(gathered) - 1][1]
                assert now_ns - gathered[0] <= of.demand[n].tightest_ns + found.wait_ns
                del waiting[: len(gathered)]
        if idle:
            now_ns = min(w[0] for w in arrivals.values() if w)


@settings(max_examples=200, deadline=None)
@given(problems(), st.integers(0, 1 << 32))
def test_what_is_lent_while_nobody_waits_makes_nobody_late(of: Drawn, seed: int) -> None:
    """Whenever the executor is idle it runs a foreign batch, as long as may be."""
    rng = random.Random(seed)
    one = {n: rows(*(longest / MS for _, longest, _ in t.batches)) for n, t in of.timing.items()}
    if isinstance(solve_cycle(of.demand, one), DeadlineMiss):
        return
    foreign_ns = steal_budget_ns(of.demand, one)
    assert isinstance(solve_cycle(of.demand, one, stolen_ns=foreign_ns), BatchCycle)
    longer = solve_cycle(of.demand, one, stolen_ns=foreign_ns + MS)
    assert isinstance(longer, DeadlineMiss)
    periods = {n: 1e9 / each.rate_hz for n, each in of.demand.items()}
    firsts = {n: rng.random() * period for n, period in periods.items()}
    arrivals = {n: [firsts[n] + k * p for k in range(60)] for n, p in periods.items()}
    now_ns = 0.0
    while all(arrivals.values()):
        idle = True
        for n, waiting in arrivals.items():
            gathered = [at for at in waiting if at <= now_ns]
            if gathered:
                idle = False
                now_ns += one[n].batches[len(gathered) - 1][1]
                assert now_ns - gathered[0] <= of.demand[n].tightest_ns + 1
                del waiting[: len(gathered)]
        if idle:
            now_ns = min(w[0] for w in arrivals.values() if w)
            if foreign_ns and rng.random() < 0.9:  # it began just before somebody came
                now_ns += foreign_ns - 1


def test_utilisation_is_reckoned_in_the_largest_batches_that_can_be_in_time() -> None:
    timing = {name(256): rows(10, 15), name(416): rows(30, 45, executors=2)}
    demand = {name(256): VariantDemand(20, 15 * MS), name(416): VariantDemand(10, S)}
    # 20 frames/s at half of 15 ms, 10 at half of 45 ms on two executors.
    assert cycle_utilisation(demand, timing) == pytest.approx(0.15 + 0.1125)
    tighter = demand | {name(256): VariantDemand(20, 15 * MS - 1)}
    assert cycle_utilisation(tighter, timing) == pytest.approx(0.2 + 0.1125)
    best_effort = demand | {name(256): VariantDemand(20)}
    assert cycle_utilisation(best_effort, timing) == pytest.approx(0.15 + 0.1125)
