"""Decides which options all cameras get: one maximisation over ways to share the executors. Pure.

An allocation is worth its service first: the share of the rate asked for that each camera gets,
best effort counted for less. Of equal service, accuracy times rate decides, and a camera that keeps
its variant counts a little more, so that nobody is moved for nothing. There are two disciplines
with an exact test each: full batches in cycles, on executors that may be divided
(`partition_search`), and any sizes side by side (`price_search`). The plan in force is a candidate
of each. Where a discipline cannot serve everybody, `minimum` says who gets what in it.
"""

from collections.abc import Sequence

from edgebox.planning.allocation import Allocation, SharedAllocation
from edgebox.planning.by_application import ByApplication
from edgebox.planning.capacity import ExecutorPool, batching_pays
from edgebox.planning.dedicated import best_dedicated
from edgebox.planning.minimum import Minimum, cycle_feasible, shared_feasible
from edgebox.planning.options import CameraOptions, all_options, dedicated_options
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.partition import kept_partition
from edgebox.planning.partition_search import best_partition
from edgebox.planning.price_search import shared_allocations


def optimise(
    told: ByApplication, iterations_max: int, parameters: PlanningParameters
) -> Allocation | None:
    """Plan a part of a box; None: there is no camera with a loaded variant.

    What planner, admission and explanation all call.

    Args:
        told: the part, by application.
        iterations_max: bound on the single steps of a search.
        parameters: the tunables.
    """
    found = None
    for divisible in (True, False):
        pool = ExecutorPool(told.snapshot, parameters.quantile, divisible=divisible)
        timing = pool.together
        cameras = all_options(told.snapshot, timing, parameters)
        if not cameras:
            return None
        dedicated = dedicated_options(
            told.snapshot, timing, parameters, cameras=len(cameras), executors=len(pool.executors)
        )
        found = allocate(cameras, dedicated, pool, parameters, iterations_max)
        if told.groups(found.groups) is not None:
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
        parameters: the tunables.
        iterations_max: bound on the single steps of a search.
    """
    found: list[Allocation] = []
    alone = best_dedicated(dedicated, len(pool.executors), parameters)
    if alone is not None:
        found.append(alone)
    if batching_pays(pool.together):
        found += _in_cycles(cameras, dedicated, pool, parameters)
    found += _side_by_side(cameras, pool, parameters, iterations_max)
    return max(found, key=lambda each: (round(each.service, 9), each.value(parameters.better_by)))


def _in_cycles(
    cameras: Sequence[CameraOptions],
    dedicated: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
) -> list[Allocation]:
    found = best_partition(cameras, dedicated, pool, parameters)
    if found is None:
        timing = pool.together
        feasible = cycle_feasible(timing, parameters)
        some = Minimum(cameras, parameters).best(feasible, feasible)
        if some is None:
            return []
        cameras, dedicated = some, ()
        found = best_partition(cameras, dedicated, pool, parameters)
    kept = kept_partition(cameras, dedicated, pool, parameters)
    return [each for each in (found, kept) if each is not None]


def _side_by_side(
    cameras: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
    iterations_max: int,
) -> list[Allocation]:
    timing = pool.together
    feasible = shared_feasible(timing, parameters)
    spare = shared_feasible(timing, parameters, parameters.upgrade_share)
    minimum = Minimum(cameras, parameters)
    some = minimum.best(feasible, spare)
    if some is None:  # overbooked even then
        some = minimum.least()
        return [SharedAllocation(some, [0] * len(some), timing)]
    found = shared_allocations(some, timing, parameters, iterations_max)
    return [*(found or [SharedAllocation(some, [0] * len(some), timing)])]
