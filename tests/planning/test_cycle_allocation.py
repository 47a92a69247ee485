"""Options in full batches: what a change would violate, and who is named for it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.planning.allocation import Violation
from edgebox.planning.batch_cycle import (
    BatchCycle,
    DeadlineMiss,
    VariantDemand,
    cycle_utilisation,
    demand_of,
    solve_cycle,
)
from edgebox.planning.capacity import BatchTimes, ExecutorPool
from edgebox.planning.cycle_allocation import CycleAllocation
from tests.planning.random_boxes import (
    Drawn,
    P,
    box,
    drawn_cameras,
    options_of,
    raised,
    runs_in_cycles,
)
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import MS, camera, name


def judge(violated: Violation | None, of: CycleAllocation, pool: ExecutorPool) -> None:
    """Write down a second time what options violate: where several variants are late, any one."""
    timing = pool.together
    chosen = of.chosen
    rising = raised(of.cameras, chosen)
    demand = demand_of(of.cameras, chosen)
    if violated is None:
        assert runs_in_cycles(of.cameras, chosen, timing)
        return
    served = {o.variant.name for c, o in zip(of.cameras, chosen, strict=True) if c.served}

    def missed_by(first: VariantName) -> BatchCycle | DeadlineMiss:
        order = sorted(demand, key=lambda each: each != first)
        return solve_cycle({each: demand[each] for each in order}, timing)

    if violated.who is not None:
        tightest = of.chosen_of(violated.who)
        assert of.cameras[violated.who].served
        assert tightest.budget.compute_ns == demand[tightest.variant.name].tightest_ns
        late = missed_by(tightest.variant.name)
        assert isinstance(late, DeadlineMiss)
        assert (late.variant, late.over_ns) == (tightest.variant.name, violated.over_ns)
    elif isinstance(solve_cycle(demand, timing), BatchCycle):
        limit = P.cycle_utilisation_max * (P.upgrade_share if rising else 1.0)
        assert violated.missing_share > 0
        missing = cycle_utilisation(demand, timing) - limit
        assert violated.missing_share == pytest.approx(missing)
    else:  # nobody with a deadline has the variant whose batches are too small
        first = [missed_by(each) for each in demand if each not in served]
        misses = [each for each in first if isinstance(each, DeadlineMiss)]
        assert any(each.variant not in served for each in misses)
        overflows = [each.overflow for each in misses if each.variant not in served]
        assert violated.missing_share > 0
        assert any(violated.missing_share == pytest.approx(each) for each in overflows)


def test_a_batch_that_overflows_says_how_much_more_time_would_do() -> None:
    """Twice as many requests as the largest batch holds: executors twice as fast would do."""
    timing = {name(128): BatchTimes(10 * MS, ((1, 10 * MS, 10 * MS), (2, 10 * MS, 10 * MS)))}
    demand = {name(128): VariantDemand(400.0)}
    missed = solve_cycle(demand, timing)
    assert isinstance(missed, DeadlineMiss)
    assert missed.overflow == pytest.approx(1.0)
    faster = {name(128): BatchTimes(5 * MS, ((1, 5 * MS, 5 * MS), (2, 5 * MS, 5 * MS)))}
    assert isinstance(solve_cycle(demand, faster), BatchCycle)


@settings(max_examples=150, deadline=None)
@given(
    drawn_cameras(6, in_force=True, demanding=True),
    st.sampled_from([1, 2]),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
    st.integers(0, 5),
)
def test_a_change_violates_what_the_changed_options_violate(
    drawn: list[Drawn], executors: int, gain: float, numbers: list[int], which: int
) -> None:
    cameras, pool = options_of(box(drawn, executors, gain))
    at = [number % len(c.options) for c, number in zip(cameras, numbers, strict=False)]
    before = CycleAllocation(cameras, at, pool.together)
    judge(before.infeasible(P), before, pool)
    camera_ = which % len(cameras)
    for to, option in enumerate(cameras[camera_].options):
        violated = before.violation(camera_, option, P)
        after = CycleAllocation(cameras, [*at[:camera_], to, *at[camera_ + 1 :]], pool.together)
        judge(violated, after, pool)
        scratch = after.infeasible(P)
        judge(scratch, after, pool)
        assert (violated is None) == (scratch is None)
        assert before.at == at


def test_who_would_be_late_is_named() -> None:
    # Single batches of 608 px take 60 ms, of 256 px 12: "near" would wait for 72, then run for 12.
    of = snapshot([seen(camera("far", 1000, 2)), seen(camera("near", 90, 2))])
    cameras, pool = options_of(of)
    sizes = [[o.variant.name for o in c.options] for c in cameras]
    at = [each.index(name(256)) for each in sizes]
    allocation = CycleAllocation(cameras, at, pool.together)
    assert allocation.infeasible(P) is None
    left_ns = allocation.chosen_of(1).budget.compute_ns
    refused = allocation.violation(0, cameras[0].options[sizes[0].index(name(608))], P)
    assert refused == Violation(who=1, over_ns=84 * MS - left_ns)
    # Who is too tight for the cycle of the others' batches is named itself.
    at = [sizes[0].index(name(608)), sizes[1].index(name(128))]
    other = CycleAllocation(cameras, at, pool.together)
    assert other.infeasible(P) is None
    left_ns = cameras[1].options[sizes[1].index(name(256))].budget.compute_ns
    refused = other.violation(1, cameras[1].options[sizes[1].index(name(256))], P)
    assert refused == Violation(who=1, over_ns=84 * MS - left_ns)


def test_the_share_of_time_that_is_missing_is_told() -> None:
    # 25 Hz at 18 ms are 45 % of the time, at 3 ms 7.5.
    of = snapshot([seen(camera(f"gate-{at}", 2000, 25)) for at in range(2)])
    cameras, pool = options_of(of)
    sizes = [o.variant.name for o in cameras[0].options]
    at = [sizes.index(name(px)) for px in (320, 320)]
    full = CycleAllocation(cameras, at, pool.together)
    assert full.utilisation == pytest.approx(0.9)
    at = [sizes.index(name(px)) for px in (320, 128)]
    allocation = CycleAllocation(cameras, at, pool.together)
    refused = allocation.violation(1, cameras[1].options[sizes.index(name(416))], P)
    assert refused is not None
    judge(refused, CycleAllocation(cameras, [at[0], sizes.index(name(416))], pool.together), pool)


def test_best_effort_takes_time_but_is_never_late() -> None:
    of = snapshot([seen(camera("a", 300, 20)), seen(camera("b", 300, 20), link(0.01))], gain=0.9)
    cameras, pool = options_of(of)
    assert [c.served for c in cameras] == [True, False]
    allocation = CycleAllocation(cameras, [0, 0], pool.together)
    assert allocation.infeasible(P) is None
    both = sum(option.rate_hz for option in allocation.chosen)
    assert allocation.demand[name(128)].rate_hz == pytest.approx(both)
    assert allocation.demand[name(128)].tightest_ns == cameras[0].options[0].budget.compute_ns
    only = CycleAllocation(cameras[1:], [0], pool.together)
    assert only.infeasible(P) is None


def test_a_raise_may_use_less_of_the_time() -> None:
    # 49 Hz at 18 ms are 88 % of the time, of which 90 may be planned and 84 raised to.
    [keeps], pool = options_of(snapshot([seen(camera("a", 2000, 49), has_px=320)]))
    at = [o.variant.name for o in keeps.options].index(name(320))
    assert CycleAllocation([keeps], [at], pool.together).infeasible(P) is None
    rises = keeps._replace(current_px=256 * 256)
    refused = CycleAllocation([rises], [at], pool.together).infeasible(P)
    assert refused is not None and refused.who is None
    assert refused.missing_share == pytest.approx(0.882 - 0.84)
