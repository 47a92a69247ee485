"""Executors that work apart: the search against all ways to part them, and what is kept."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.models import ExecutorId
from edgebox.domain.plans import Assignment, Group, PlanningSnapshot
from edgebox.planning.partition import PartitionedAllocation, best_apart, kept_apart
from edgebox.planning.options import CameraOptions, Option, all_options
from edgebox.planning.capacity import ExecutorPool, batch_times
from edgebox.planning.optimisation import choose
from edgebox.planning.explain import explanation
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.planner import plan
from edgebox.planning.allocation import Allocation
from edgebox.planning.batch_cycle import BatchCycle, demand_of, cycle_utilisation, lends_ns, turn
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import camera

P = PlanningParameters()
GPUS = tuple(ExecutorId(f"gpu/{at}") for at in range(4))


def box(drawn: Sequence[tuple[int, int, float]], executors: int, gain: float) -> PlanningSnapshot:
    return snapshot(
        [
            seen(camera(f"gate-{at}", slo_ms, rate_hz), link(mbps))
            for at, (slo_ms, rate_hz, mbps) in enumerate(drawn)
        ],
        executors=GPUS[:executors],
        gain=gain,
    )


def drawn_cameras(most: int) -> st.SearchStrategy[list[tuple[int, int, float]]]:
    return st.lists(
        st.tuples(
            st.sampled_from([60, 100, 150, 300, 600]),
            st.sampled_from([5, 15, 25, 60]),
            st.sampled_from([3.0, 8.0, 100.0]),
        ),
        min_size=2,
        max_size=most,
    )


def prepared(of: PlanningSnapshot) -> tuple[list[CameraOptions], ExecutorPool]:
    pool = ExecutorPool(of, P.quantile)
    return all_options(of, pool.timing(pool.executors), P), pool


def holds(
    cameras: Sequence[CameraOptions],
    levels: Sequence[Option],
    pool: ExecutorPool,
    executors: tuple[ExecutorId, ...],
) -> bool:
    """Write down a second time what a group must hold."""
    timing = pool.timing(executors)
    asked = demand_of(cameras, levels)
    busy = cycle_utilisation(asked, timing) <= P.turn_share * P.upgrade_share
    return busy and isinstance(solve_cycle(asked, timing, P.latency_upgrade_ns), BatchCycle)


def worth(levels: Sequence[Option]) -> float:
    return sum(level.variant.accuracy * level.rate_hz for level in levels)


def best_of_all(cameras: Sequence[CameraOptions], pool: ExecutorPool) -> float | None:
    """Return the most that two groups can bring, over all ways to divide everything."""
    best: float | None = None
    executors = pool.executors
    for homes in product((0, 1), repeat=len(cameras)):
        if len(set(homes)) < 2:
            continue
        for levels in product(*(c.levels for c in cameras)):
            names = [
                {v.variant.name for v, h in zip(levels, homes, strict=True) if h == k}
                for k in (0, 1)
            ]
            if names[0] & names[1] or (best is not None and worth(levels) <= best):
                continue
            for first in range(1, len(executors)):
                if all(
                    holds(
                        [c for c, h in zip(cameras, homes, strict=True) if h == k],
                        [v for v, h in zip(levels, homes, strict=True) if h == k],
                        pool,
                        part,
                    )
                    for k, part in ((0, executors[:first]), (1, executors[first:]))
                ):
                    best = worth(levels)
                    break
    return best


@settings(max_examples=60, deadline=None)
@given(drawn_cameras(3), st.sampled_from([2, 3]), st.sampled_from([0.5, 0.8, 0.95]))
def test_the_search_is_close_to_the_best_of_all_ways_to_part(
    drawn: list[tuple[int, int, float]], executors: int, gain: float
) -> None:
    cameras, pool = prepared(box(drawn, executors, gain))
    if not all(c.served for c in cameras):
        return
    found = best_apart(cameras, pool, P, 1000)
    best = best_of_all(cameras, pool)
    if found is None:
        assert best is None
        return
    assert best is not None or len(found.parts) > 2
    assert found.accuracy_rate >= 0.9 * (best or 0)


@settings(max_examples=80, deadline=None)
@given(drawn_cameras(8), st.sampled_from([2, 3, 4]), st.sampled_from([0.5, 0.8, 0.95]))
def test_what_is_found_holds_group_by_group(
    drawn: list[tuple[int, int, float]], executors: int, gain: float
) -> None:
    cameras, pool = prepared(box(drawn, executors, gain))
    found = best_apart(cameras, pool, P, 1000)
    if found is None:
        return
    used = [e for group in found.groups for e in group.executors]
    assert sorted(used) == sorted(pool.executors)
    names = [name for group in found.groups for name in group.variants]
    assert len(set(names)) == len(names)
    served = [at for part in found.parts for at in part.members]
    assert sorted(served) == list(range(len(cameras)))
    for part, group in zip(found.parts, found.groups, strict=True):
        of = [cameras[at] for at in part.members]
        levels = [found.levels[at] for at in part.members]
        assert {level.variant.name for level in levels} == set(group.variants)
        assert holds(of, levels, pool, group.executors)
        assert group.lends_ns == steal_budget_ns(demand_of(of, levels), pool.timing(group.executors))


@settings(max_examples=80, deadline=None)
@given(drawn_cameras(6), st.sampled_from([1, 2, 3]), st.sampled_from([0.0, 0.5, 0.9]))
def test_apart_only_where_it_is_better(
    drawn: list[tuple[int, int, float]], executors: int, gain: float
) -> None:
    of = box(drawn, executors, gain)
    cameras, pool = prepared(of)
    timing = batch_times(of, P.quantile)
    together = choose(cameras, timing, P, 1000)
    chosen = choose(cameras, timing, P, 1000, pool)
    assert chosen.served >= together.served
    if chosen.served == together.served:
        assert chosen.accuracy_rate >= together.accuracy_rate
    if not isinstance(chosen, PartitionedAllocation):
        assert chosen.groups == ()
        assert type(chosen) is type(together)


MIXED = [(80, 25, 100.0), (80, 25, 100.0), (400, 25, 100.0), (400, 25, 100.0)]


def mixed(has: Allocation | None = None) -> PlanningSnapshot:
    """Two with a tight deadline, two with a loose one; in force is what they have, if anything."""
    of = box(MIXED, 2, 0.8)
    if has is None:
        return of
    cameras = tuple(
        replace(
            each,
            current=Assignment(each.camera.id, level.variant.name, level.rate_hz, 85, True, ""),
        )
        for each, level in zip(of.cameras, has.levels, strict=True)
    )
    return replace(of, cameras=cameras, groups=has.groups)


def test_a_tight_deadline_no_longer_bounds_the_others_batches() -> None:
    cameras, pool = prepared(mixed())
    timing = pool.timing(pool.executors)
    together = choose(cameras, timing, P, 1000)
    chosen = choose(cameras, timing, P, 1000, pool)
    assert isinstance(chosen, PartitionedAllocation)
    assert [part.members for part in chosen.parts] == [(0, 1), (2, 3)]
    assert chosen.accuracy_rate > 1.01 * together.accuracy_rate
    assert chosen.utilisation <= P.turn_share


def test_a_plan_says_who_works_apart_and_reasons_name_them() -> None:
    answer = plan(mixed(), random.Random(1), 1000)
    tight, loose = answer.groups
    assert (tight.executors, loose.executors) == (GPUS[:1], GPUS[1:2])
    for at, group in enumerate((tight, tight, loose, loose)):
        assert list(answer.assignments.values())[at].variant in group.variants
    reasons = " ".join(each.reason for each in answer.assignments.values())
    assert "four cameras" not in reasons
    weighed = explanation(mixed(), mixed().cameras[0].camera.id, P, 1000)
    assert weighed is not None
    assert [each.verdict for each in weighed.options].count("chosen") == 1


def test_what_is_in_force_stays_unless_another_is_better_by_the_margin() -> None:
    cameras, pool = prepared(mixed())
    found = best_apart(cameras, pool, P, 1000)
    assert found is not None
    cameras, pool = prepared(mixed(found))
    kept = kept_apart(cameras, pool, P, 1000)
    assert kept is not None
    assert [part.members for part in kept.parts] == [part.members for part in found.parts]
    assert kept.accuracy_rate >= found.accuracy_rate
    chosen = choose(cameras, pool.timing(pool.executors), P, 1000, pool)
    assert isinstance(chosen, PartitionedAllocation)
    assert [level.variant.name for level in chosen.levels] == [
        level.variant.name for level in kept.levels
    ]


def test_groups_in_force_end_with_their_executors() -> None:
    cameras, pool = prepared(mixed())
    found = best_apart(cameras, pool, P, 1000)
    assert found is not None
    one = replace(mixed(found), profiles={GPUS[0]: mixed().profiles[GPUS[0]]})
    answer = plan(one, random.Random(1), 1000)
    assert answer.groups == ()


def test_who_comes_new_joins_a_group_that_is_there() -> None:
    cameras, pool = prepared(mixed())
    found = best_apart(cameras, pool, P, 1000)
    assert found is not None
    before = mixed(found)
    joined = replace(before, cameras=(*before.cameras, seen(camera("new", 400, 5))))
    cameras, pool = prepared(joined)
    kept = kept_apart(cameras, pool, P, 1000)
    assert kept is None or sorted(at for p in kept.parts for at in p.members) == [0, 1, 2, 3, 4]


def test_executors_that_differ_in_what_they_have_do_not_work_apart() -> None:
    of = mixed()
    fewer = dict(list(of.profiles[GPUS[1]].items())[:3])
    of = replace(of, profiles={**of.profiles, GPUS[1]: fewer}, groups=(Group(GPUS[:1], (), 0),))
    assert plan(of, random.Random(1), 1000).groups == ()
