"""Executors that work apart: what is kept of a division, who joins, and what it says."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.plans import Group, PlanningSnapshot
from edgebox.planning.cycle_allocation import CycleAllocation
from edgebox.planning.dedicated import DedicatedAllocation
from edgebox.planning.explain import explanation
from edgebox.planning.optimisation import allocate
from edgebox.planning.partition import PartitionedAllocation, kept_partition
from edgebox.planning.partition_search import best_partition
from edgebox.planning.planner import plan
from tests.planning.random_boxes import (
    GPUS,
    MIXED,
    P,
    box,
    dedicated_of,
    divided,
    drawn_cameras,
    in_force,
    judge_groups,
    mixed,
    options_of,
)
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import camera, name

boxes = st.builds(
    box,
    drawn_cameras(9, in_force=True, demanding=True),
    st.sampled_from([1, 2, 3, 4]),
    st.sampled_from([0.5, 0.8, 0.95]),
)


@settings(max_examples=50, deadline=None)
@given(boxes, st.integers(0, 3))
def test_what_is_in_force_is_kept_as_long_as_it_holds(of: PlanningSnapshot, gone: int) -> None:
    cameras, pool = options_of(of)
    found = best_partition(cameras, (), pool, P)
    if found is None:
        return
    now = in_force(of, found)
    cameras, pool = options_of(now)
    kept = kept_partition(cameras, (), pool, P)
    if all(c.served for c in cameras):  # best effort may be in another group than the smallest
        assert kept is not None
        assert [o.variant for o in kept.chosen] == [o.variant for o in found.chosen]
        assert kept.groups == found.groups
    if kept is not None:
        judge_groups(kept, pool)
    # One that is gone leaves the others where they are.
    fewer = replace(now, cameras=tuple(c for at, c in enumerate(now.cameras) if at != gone))
    if not fewer.cameras:
        return
    cameras, pool = options_of(fewer)
    kept = kept_partition(cameras, (), pool, P)
    if kept is not None and len(kept.groups) == len(found.groups):
        judge_groups(kept, pool)


def test_a_plan_says_who_works_apart_and_reasons_name_them() -> None:
    answer = plan(mixed(), 1000)
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
    found = divided()
    cameras, pool = options_of(mixed(found))
    kept = kept_partition(cameras, (), pool, P)
    assert isinstance(kept, PartitionedAllocation)
    assert [part.members for part in kept.parts] == [part.members for part in found.parts]
    assert kept.accuracy_rate >= found.accuracy_rate
    chosen = allocate(cameras, (), pool, P, 1000)
    assert isinstance(chosen, PartitionedAllocation)
    names = [option.variant.name for option in kept.chosen]
    assert [option.variant.name for option in chosen.chosen] == names


def test_what_is_in_force_is_not_kept_where_it_no_longer_holds() -> None:
    found = divided()
    slower = replace(mixed(found), slowdown=dict.fromkeys(GPUS[:2], 1.6))
    cameras, pool = options_of(slower)
    assert kept_partition(cameras, (), pool, P) is None
    # Undivided, the same.
    whole = CycleAllocation(cameras, [0] * 4, pool.together)
    assert whole.infeasible(P) is None
    at = [len(c.options) - 1 for c in cameras]
    largest = CycleAllocation(cameras, at, pool.together)
    assert largest.infeasible(P) is not None
    full = replace(in_force(slower, largest), groups=())
    cameras, pool = options_of(full)
    assert kept_partition(cameras, (), pool, P) is None
    small = replace(in_force(slower, whole), groups=())
    cameras, pool = options_of(small)
    kept = kept_partition(cameras, (), pool, P)
    assert isinstance(kept, CycleAllocation)
    assert kept.at == [c.current for c in cameras]


def test_groups_in_force_end_with_their_executors() -> None:
    found = divided()
    one = replace(mixed(found), profiles={GPUS[0]: mixed().profiles[GPUS[0]]})
    cameras, pool = options_of(one)
    assert kept_partition(cameras, (), pool, P) is None
    assert plan(one, 1000).groups == ()
    # So they do where one more comes, which would be in no group.
    three = replace(mixed(found), profiles=box(MIXED, 3, 0.8).profiles)
    cameras, pool = options_of(three)
    assert kept_partition(cameras, (), pool, P) is None
    used = {e for group in plan(three, 1000).groups for e in group.executors}
    assert used in (set(), set(GPUS[:3]))


def test_who_comes_new_joins_a_group_that_is_there() -> None:
    before = mixed(divided())
    for slo_ms in (100, 400):
        new = seen(camera("new", slo_ms, 5), link(100.0, throughput_stability=0.9))
        joined = replace(before, cameras=(*before.cameras, new))
        cameras, pool = options_of(joined)
        kept = kept_partition(cameras, (), pool, P)
        assert isinstance(kept, PartitionedAllocation)
        judge_groups(kept, pool)
        assert [part.members for part in kept.parts] == [(0, 1, 4), (2, 3)]
        answer = plan(joined, 1000)
        assert all(a.served for a in answer.assignments.values())


def test_the_last_camera_of_a_group_ends_the_division() -> None:
    before = mixed(divided())
    cameras, pool = options_of(replace(before, cameras=before.cameras[2:]))
    assert kept_partition(cameras, (), pool, P) is None


def test_executors_of_a_group_without_cameras_are_not_lost() -> None:
    groups = tuple(Group(GPUS[n : n + 1], (name(px),), 0) for n, px in enumerate((128, 256, 320)))
    cameras = [
        seen(camera(f"gate-{px}", 300, 5), link(100.0, throughput_stability=0.9), px)
        for px in (128, 320)
    ]
    of = replace(snapshot(cameras, executors=GPUS[:3], gain=0.8), groups=groups)
    options, pool = options_of(of)
    kept = kept_partition(options, (), pool, P)
    assert kept is None or sorted(e for g in kept.groups for e in g.executors) == list(GPUS[:3])


def test_a_group_may_have_an_executor_for_each_of_its_cameras() -> None:
    of = snapshot(
        [
            seen(camera(f"gate-{at}", slo_ms, 25), link(throughput_stability=1.0))
            for at, slo_ms in enumerate((45, 400, 400, 400))
        ],
        executors=GPUS[:2],
        gain=0.8,
    )
    cameras, pool = options_of(of)
    found = best_partition(cameras, dedicated_of(of, pool), pool, P)
    assert isinstance(found, PartitionedAllocation)
    judge_groups(found, pool)
    own, shared = found.parts
    assert (own.members, shared.members) == ((0,), (1, 2, 3))
    assert isinstance(own.allocation, DedicatedAllocation)
    assert found.cameras[0].options == dedicated_of(of, pool)[0].options
    now = in_force(of, found)
    cameras, pool = options_of(now)
    kept = kept_partition(cameras, dedicated_of(now, pool), pool, P)
    assert isinstance(kept, PartitionedAllocation)
    assert kept.groups == found.groups


def test_what_an_option_would_violate_is_told_in_the_group_that_runs_it() -> None:
    found = divided()
    cameras, _ = options_of(mixed())
    for part in found.parts:
        for at in part.members:
            for option in cameras[at].options:
                runs = [p for p in found.parts if option.variant.name in p.variants]
                refused = found.violation(at, option, P)
                if refused is not None and refused.who is not None:
                    there = (runs or [part])[0]
                    assert refused.who in {at, *there.members}
    # A tight camera would wait too long in the loose cameras' group.
    [large] = [o for o in cameras[0].ladder if o.variant.name in found.parts[1].variants][-1:]
    refused = found.violation(0, large, P)
    assert refused is not None
    assert refused.who == 0


def test_executors_that_differ_in_what_they_have_do_not_work_apart() -> None:
    of = mixed()
    fewer = dict(list(of.profiles[GPUS[1]].items())[:3])
    of = replace(of, profiles={**of.profiles, GPUS[1]: fewer}, groups=(Group(GPUS[:1], (), 0),))
    assert plan(of, 1000).groups == ()
