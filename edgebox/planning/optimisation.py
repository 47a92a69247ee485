"""Decides which options all cameras get: one maximisation over ways to share the executors. Pure.

An allocation is worth its service first: the share of the rate asked for that each camera gets,
best effort counted for less. Of equal service, accuracy times rate decides. A camera that keeps its
variant counts a little more, and what is in force gives way only to something better, so that
nobody is moved for nothing. There are two disciplines of sharing with an exact test each: full
batches in cycles, on executors that may be divided (`partition_search`), and any sizes side by side
(`price_search`). Where a discipline cannot serve everybody, `minimum` says who gets what in it.
"""

from collections.abc import Sequence

from edgebox.planning.allocation import Allocation, SharedAllocation
from edgebox.planning.by_application import ByApplication
from edgebox.planning.capacity import ExecutorPool, batching_pays
from edgebox.planning.dedicated import best_dedicated
from edgebox.planning.later_work import left_to_first_stages
from edgebox.planning.minimum import Minimum, cycle_feasibility, shared_feasibility
from edgebox.planning.option_table import OptionTable, option_table
from edgebox.planning.options import CameraOptions, all_options, dedicated_options
from edgebox.planning.partition import kept_partition
from edgebox.planning.partition_search import best_partition
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.price_search import (
    kept_side_by_side,
    shared_allocations,
    shared_value_bound,
)


def optimise(
    by_app: ByApplication, iterations_max: int, parameters: PlanningParameters
) -> Allocation | None:
    """Plan a part of a box; None: there is no camera with a loaded variant.

    Called by `optimised_part`.

    Args:
        by_app: the part, by application.
        iterations_max: bound on the single steps of a search.
        parameters: the tunables.
    """
    found = None
    for divisible in (True, False):
        pool = ExecutorPool(by_app.snapshot, parameters.quantile, divisible=divisible)
        timing = pool.together
        cameras = all_options(by_app.snapshot, timing, parameters)
        if not cameras:
            return None
        dedicated = dedicated_options(
            by_app.snapshot, timing, parameters, cameras=len(cameras), executors=len(pool.executors)
        )
        found = allocate(cameras, dedicated, pool, parameters, iterations_max)
        if by_app.groups(found.groups) is not None:
            break  # else executors cannot work apart: they are known by their variants
    return found


def allocate(
    cameras: Sequence[CameraOptions],
    dedicated: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
    iterations_max: int,
) -> Allocation:
    """Choose an option for every camera.

    Args:
        cameras: what each could be given; at least one camera.
        dedicated: what each could be given with an executor to itself, in the same order; empty:
            none can have one.
        pool: the executors.
        parameters: the tunables, with limits for first and later stages together.
        iterations_max: bound on the single steps of a search.
    """
    table = option_table(cameras, parameters.hysteresis_ratio)
    new: list[Allocation] = []
    in_force: list[Allocation] = []
    left = left_to_first_stages(parameters, dedicated)
    own = best_dedicated(dedicated, len(pool.executors), left)
    if own is not None:
        in_force.append(own)  # nobody's option depends on the others'
    if batching_pays(pool.together):
        some, kept = _in_cycles(cameras, dedicated, pool, parameters, table)
        new += some
        in_force += [kept] if kept is not None else []
    new += in_force
    anything_in_force = any(of.snapshot.current is not None for of in cameras)
    if not anything_in_force:
        in_force = []
    left = left_to_first_stages(parameters, cameras)
    bound = shared_value_bound(cameras, table, pool.together, left)
    if not _outdone(bound, new, in_force, parameters, anything_in_force=anything_in_force):
        found, kept = _side_by_side(cameras, pool, parameters, iterations_max, table)
        kept_too = [kept] if kept is not None else []
        new += [found, *kept_too]
        in_force += kept_too if anything_in_force else []
    return _better(new, in_force, parameters)


def _outdone(
    bound: float,
    new: Sequence[Allocation],
    in_force: Sequence[Allocation],
    parameters: PlanningParameters,
    *,
    anything_in_force: bool,
) -> bool:
    """Say whether an allocation that is worth so much at most would not be taken in any case.

    Args:
        bound: what it is worth at most.
        new: those that were found already.
        in_force: those among them that change nothing.
        parameters: the tunables.
        anything_in_force: what it is compared with may be in force itself.
    """

    def best_of(those: Sequence[Allocation]) -> Allocation | None:
        full = (of for of in those if of.service > len(of.cameras) - 1e-10)
        return max(full, key=lambda of: of.value(parameters.hysteresis_ratio), default=None)

    best, kept = best_of(new), best_of(in_force)
    if best is None or best.value(parameters.hysteresis_ratio) < bound:
        return False
    if (
        not anything_in_force
        or best.value(parameters.hysteresis_ratio) > parameters.hysteresis_ratio * bound
    ):
        return True
    return kept is not None and kept.value(parameters.hysteresis_ratio) >= bound


def _better(
    new: Sequence[Allocation], in_force: Sequence[Allocation], parameters: PlanningParameters
) -> Allocation:
    """Return the best, unless what is in force serves as much and is about as good."""

    def value_of(of: Allocation) -> tuple[float, float]:
        return round(of.service, 9), of.value(parameters.hysteresis_ratio)

    best = max(new, key=value_of)
    if in_force:
        kept = max(in_force, key=value_of)
        # By value as well: what keeps more variants than the plan in force does is better.
        gain = max(
            best.accuracy_rate / max(kept.accuracy_rate, 1e-9),
            value_of(best)[1] / max(value_of(kept)[1], 1e-9),
        )
        if value_of(best)[0] <= value_of(kept)[0] and gain <= parameters.hysteresis_ratio:
            return kept
    return best


def _in_cycles(
    cameras: Sequence[CameraOptions],
    dedicated: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
    table: OptionTable,
) -> tuple[list[Allocation], Allocation | None]:
    """Return the best new allocations, and that in force; None: it is infeasible."""
    left = left_to_first_stages(parameters, cameras, dedicated)
    found = [best_partition(cameras, dedicated, pool, left, table)]
    if found[0] is None or found[0].groups:
        # What serves all only if the executors are divided may be worse than to give somebody up.
        feasible = cycle_feasibility(pool.together, parameters)
        some = Minimum(cameras, parameters, len(pool.all_executors)).best(feasible, feasible)
        if some is not None and some != list(cameras):
            left_to_some = left_to_first_stages(parameters, some)
            found.append(best_partition(some, (), pool, left_to_some))
            if found[0] is None:
                cameras, dedicated, left = some, (), left_to_some
    new = [each for each in found if each is not None]
    return new, kept_partition(cameras, dedicated, pool, left) if new else None


def _side_by_side(
    cameras: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
    iterations_max: int,
    table: OptionTable,
) -> tuple[Allocation, Allocation | None]:
    """Return the best new allocation, and that in force, repaired; None: none is feasible."""
    timing = pool.together
    feasible = shared_feasibility(timing, parameters)
    spare = shared_feasibility(timing, parameters, parameters.upgrade_share)
    minimum = Minimum(cameras, parameters, len(pool.all_executors))
    some = minimum.best(feasible, spare)
    if some is None:  # overbooked even then
        some = minimum.least()
        return SharedAllocation(some, [0] * len(some), timing), None
    known = table if some == list(cameras) else None
    left = left_to_first_stages(parameters, some)
    found = shared_allocations(some, timing, left, iterations_max, known)
    if not found:
        return SharedAllocation(some, [0] * len(some), timing), None
    kept = [found[-1]]
    if not pool.groups and (as_it_is := kept_side_by_side(some, timing, left)) is not None:
        kept.append(as_it_is)  # by price and repaired, it may be worth less
    return found[0], max(kept, key=lambda of: of.value(parameters.hysteresis_ratio))
