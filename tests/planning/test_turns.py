"""Executors that take turns: the test against enumeration, and what the search finds."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.models import ExecutorId, VariantName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.options import CameraOptions, Option, candidates
from edgebox.planning.capacity import BatchTimes, batch_times
from edgebox.planning.optimisation import choose
from edgebox.planning.minimum import on_the_ground
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.planner import plan
from edgebox.planning.steps import best_by_steps
from edgebox.planning.cycle_allocation import best_in_turns
from edgebox.planning.batch_cycle import VariantDemand, DeadlineMiss, BatchCycle, demand_of, cycle_utilisation, lends_ns, turn
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import CPU, MS, camera, name

P = PlanningParameters()
TWO = (CPU, ExecutorId("cpu/1"))
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
    asked = {name(256): VariantDemand(120, 30 * MS)}
    assert solve_cycle(asked, timing) == BatchCycle(15 * MS, {name(256): 2})
    assert solve_cycle({name(256): VariantDemand(120, 30 * MS - 1)}, timing) == DeadlineMiss(name(256), 1)
    assert solve_cycle(asked, timing, margin_ns=5) == DeadlineMiss(name(256), 5)
    assert isinstance(solve_cycle({name(256): VariantDemand(151, S)}, timing), DeadlineMiss)


def test_two_executors_take_half_of_a_variant_each() -> None:
    timing = {name(256): rows(10, 15, 20, executors=2)}
    assert solve_cycle({name(256): VariantDemand(200, 20 * MS)}, timing) == BatchCycle(10 * MS, {name(256): 1})
    assert solve_cycle({name(256): VariantDemand(240, 30 * MS)}, timing) == BatchCycle(15 * MS, {name(256): 2})


def test_every_active_variant_makes_the_others_wait() -> None:
    timing = {name(256): rows(10, 15), name(416): rows(30, 45)}
    asked = {name(256): VariantDemand(10, 50 * MS), name(416): VariantDemand(10, 70 * MS)}
    assert solve_cycle(asked, timing) == BatchCycle(40 * MS, {name(256): 1, name(416): 1})
    assert solve_cycle(asked | {name(256): VariantDemand(10, 49 * MS)}, timing) == DeadlineMiss(name(256), MS)


def test_who_is_best_effort_asks_for_time_but_not_for_haste() -> None:
    timing = {name(256): rows(10, 15)}
    assert isinstance(solve_cycle({name(256): VariantDemand(20)}, timing), BatchCycle)


@dataclass(frozen=True)
class Drawn:
    asked: dict[VariantName, VariantDemand]
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
    asked = {
        each: VariantDemand(draw(st.floats(0.5, 200)), draw(st.integers(5, 400)) * MS) for each in names
    }
    return Drawn(asked, timing)


@settings(max_examples=400, deadline=None)
@given(problems())
def test_a_turn_is_found_where_there_is_one_and_none_is_shorter(of: Drawn) -> None:
    """All batch sizes are tried, by the definition written down a second time."""
    names = list(of.asked)
    working = []
    for sizes in product(range(1, 5), repeat=len(names)):
        batches = [of.timing[n].batches[b - 1] for n, b in zip(names, sizes, strict=True)]
        turn_ns = math.fsum(pooled for _, _, pooled in batches)
        wait_ns = max(round(turn_ns), *(longest for _, longest, _ in batches))
        holds = all(
            of.asked[n].rate_hz * turn_ns / 1e9 <= b + 1e-9
            for n, b in zip(names, sizes, strict=True)
        )
        in_time = all(
            wait_ns + longest <= of.asked[n].tightest_ns
            for n, (_, longest, _) in zip(names, batches, strict=True)
        )
        if holds and in_time:
            working.append((wait_ns, sizes))
    found = solve_cycle(of.asked, of.timing)
    if isinstance(found, DeadlineMiss):
        assert working == []
        assert found.over_ns > 0
    else:
        assert found.wait_ns == min(working)[0]


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 1 << 32))
def test_whoever_runs_batches_in_turns_is_never_late(of: Drawn, seed: int) -> None:
    """One executor runs what has gathered of each variant, round and round; frames come evenly."""
    rng = random.Random(seed)
    one = {n: rows(*(longest / MS for _, longest, _ in t.batches)) for n, t in of.timing.items()}
    found = solve_cycle(of.asked, one)
    if isinstance(found, DeadlineMiss):
        return
    arrivals = {
        n: [(rng.random() + k) / asked.rate_hz * 1e9 for k in range(60)]
        for n, asked in of.asked.items()
    }
    now_ns = 0.0
    while any(arrivals.values()):
        idle = True
        for n, waiting in arrivals.items():
            gathered = [at for at in waiting if at <= now_ns][: len(one[n].batches)]
            if gathered:
                idle = False
                now_ns += one[n].batches[len(gathered) - 1][1]
                assert now_ns - gathered[0] <= of.asked[n].tightest_ns + found.wait_ns
                del waiting[: len(gathered)]
        if idle:
            now_ns = min(w[0] for w in arrivals.values() if w)


@settings(max_examples=200, deadline=None)
@given(problems(), st.integers(0, 1 << 32))
def test_what_is_lent_while_nobody_waits_makes_nobody_late(of: Drawn, seed: int) -> None:
    """Whenever the executor is idle it runs a foreign batch, as long as may be."""
    rng = random.Random(seed)
    one = {n: rows(*(longest / MS for _, longest, _ in t.batches)) for n, t in of.timing.items()}
    if isinstance(solve_cycle(of.asked, one), DeadlineMiss):
        return
    guest_ns = steal_budget_ns(of.asked, one)
    assert isinstance(solve_cycle(of.asked, one, guest_ns=guest_ns), BatchCycle)
    longer = solve_cycle(of.asked, one, guest_ns=guest_ns + MS)
    assert isinstance(longer, DeadlineMiss)
    periods = {n: 1e9 / asked.rate_hz for n, asked in of.asked.items()}
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
                assert now_ns - gathered[0] <= of.asked[n].tightest_ns + 1
                del waiting[: len(gathered)]
        if idle:
            now_ns = min(w[0] for w in arrivals.values() if w)
            if guest_ns and rng.random() < 0.9:  # it began just before somebody came
                now_ns += guest_ns - 1


def levels_of(of: PlanningSnapshot) -> tuple[list[CameraOptions], dict[VariantName, BatchTimes]]:
    timing = batch_times(of, P.quantile)
    found = (camera_options(each, of, timing, P) for each in of.cameras)
    return [each for each in found if each is not None], timing


def allowed(
    cameras: Sequence[CameraOptions], levels: Sequence[Option], timing: dict[VariantName, BatchTimes]
) -> bool:
    asked = demand_of(cameras, levels)
    busy = cycle_utilisation(asked, timing) <= P.turn_share * P.upgrade_share
    return busy and isinstance(solve_cycle(asked, timing, P.latency_upgrade_ns), BatchCycle)


boxes = st.builds(
    lambda drawn, executors, gain: snapshot(
        [
            seen(camera(f"gate-{at}", slo_ms, rate_hz), link(mbps))
            for at, (slo_ms, rate_hz, mbps) in enumerate(drawn)
        ],
        executors=TWO[:executors],
        gain=gain,
    ),
    st.lists(
        st.tuples(
            st.sampled_from([60, 100, 150, 300]),
            st.sampled_from([5, 15, 25, 60]),
            st.sampled_from([1.0, 3.0, 8.0, 100.0]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([1, 2]),
    st.sampled_from([0.5, 0.8, 0.95]),
)


@settings(max_examples=150, deadline=None)
@given(boxes)
def test_the_search_is_close_to_the_best_of_all_levels(of: PlanningSnapshot) -> None:
    cameras, timing = levels_of(of)
    found = best_in_turns(cameras, timing, P, 1000)
    choices = [c.levels for c in cameras]
    working = [chosen for chosen in product(*choices) if allowed(cameras, chosen, timing)]
    smallest = tuple(c.levels[0] for c in cameras)
    if found is None:
        assert smallest not in working
        return
    assert tuple(found.levels) in working
    best = max(sum(v.variant.accuracy * v.rate_hz for v in chosen) for chosen in working)
    assert found.accuracy_rate >= 0.9 * best


@settings(max_examples=100, deadline=None)
@given(boxes)
def test_a_plan_is_at_least_as_good_as_either_way(of: PlanningSnapshot) -> None:
    cameras, timing = levels_of(of)
    turning = best_in_turns(cameras, timing, P, 1000)
    chosen = choose(cameras, timing, P, 1000)
    if turning is not None:
        assert sum(c.served for c in chosen.cameras) >= sum(c.served for c in turning.cameras)
        assert chosen.accuracy_rate * P.better_by >= turning.accuracy_rate


def test_cameras_move_to_a_larger_size_together() -> None:
    """Where batches gain much, single steps stop where each would leave the others' batches."""
    of = snapshot([seen(camera(f"gate-{at}", 200, 25)) for at in range(8)], executors=TWO, gain=0.8)
    cameras, timing = levels_of(of)
    stepped = best_by_steps(on_the_ground(cameras, timing, P), timing, P, 1000)
    chosen = choose(cameras, timing, P, 1000)
    assert {level.variant.name for level in chosen.levels} == {name(320), name(416)}
    assert chosen.accuracy_rate > 1.02 * stepped.accuracy_rate
    assert chosen.utilisation <= P.turn_share


def test_all_are_served_in_full_batches_where_single_steps_could_not() -> None:
    cameras = [seen(camera(f"gate-{at}", 100, 60)) for at in range(10)]
    answer = plan(snapshot(cameras, gain=0.9), random.Random(1), 1000)
    assert all(a.served and a.rate_hz == 60 for a in answer.assignments.values())


@pytest.mark.parametrize("gain", [0.0, 0.15])
def test_where_batches_gain_little_nothing_is_planned_in_turns(gain: float) -> None:
    cameras = [seen(camera(f"gate-{at}", 1000, 10)) for at in range(6)]
    answer = plan(snapshot(cameras, gain=gain), random.Random(1), 1000)
    assert answer.utilisation <= P.utilisation_max
