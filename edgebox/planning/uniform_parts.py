"""Decides how executors are divided that run one variant each, for a box's cameras. Pure.

Cuts and grids of `partition_search` are coarse, and coarser the more executors there are. Groups of
one variant need neither: `uniform` finds them, the exact test of `cycle_allocation` judges them.
Executors of one variant are one group, because a camera's frames go where its variant is.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from edgebox.domain.model_family import VariantName
from edgebox.planning.capacity import BatchTimes, ExecutorPool
from edgebox.planning.cycle_allocation import CycleAllocation
from edgebox.planning.option_table import Floats, OptionTable
from edgebox.planning.options import CameraOptions
from edgebox.planning.partition import Part, dedicated_part
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.uniform import UniformGroup, UniformProblem, uniform_groups

_UNITS_PER_HZ = 1_000_000
_EVALUATIONS_MAX = 100


def directions(pool: ExecutorPool) -> tuple[bool, ...]:
    """Return whether the slowest executors come first: both, unless all are alike."""
    return (False, True) if len(set(pool.kinds(pool.executors))) > 1 else (False,)


def uniform_parts(
    cameras: Sequence[CameraOptions],
    dedicated: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
    *,
    table: OptionTable,
    orders: Sequence[Sequence[int]],
) -> list[tuple[Part, ...]]:
    """Return groups of one variant each that serve all cameras; none, one way or two.

    The smallest variants have the fastest executors, or the slowest.

    A group with no more cameras than executors may give each its own, with several variants.

    Args:
        cameras: what each could be given on executors that it shares.
        dedicated: what each could be given with an executor to itself; empty: none can have one.
        pool: the executors, at least two that may be divided.
        parameters: the tunables.
        table: the options of `cameras`.
        orders: of the cameras, the tightest first in the first one.
    """
    names = tuple(dict.fromkeys(table.names))
    problem = _problem(cameras, table, names, pool, parameters)
    groups = uniform_groups(problem, orders, _EVALUATIONS_MAX)
    if sum(len(group.cameras) for group in groups) < len(cameras):
        return []
    groups.reverse()  # the smallest first
    named = [(names[group.column], group) for group in groups]
    found = (
        _on_executors(cameras, dedicated, pool, parameters, named, slowest_first=slowest_first)
        for slowest_first in directions(pool)
    )
    return [parts for parts in found if parts is not None]


def _on_executors(
    cameras: Sequence[CameraOptions],
    dedicated: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
    groups: Sequence[tuple[VariantName, UniformGroup]],
    *,
    slowest_first: bool,
) -> tuple[Part, ...] | None:
    """Give groups their executors, one after the other; None: one cannot serve its cameras."""
    parts: list[Part] = []
    used = 0
    idle = len(pool.executors) - sum(group.executors for _, group in groups)
    for at, (name, group) in enumerate(groups):
        count = group.executors + (0 if parts else idle)
        first = len(pool.executors) - used - count if slowest_first else used
        executors = pool.executors[first : first + count]
        used += count
        others = {other for other, _ in groups[at + 1 :]}
        others |= {variant for part in parts for variant in part.variants}
        own = dedicated_part(dedicated, group.cameras, executors, others, parameters)
        allocation = _shared(cameras, group, name, pool.timing(executors))
        shared = None
        if allocation.infeasible(parameters) is None:  # it may be not, if executors differ
            shared = Part(executors, group.cameras, allocation)
        found = [part for part in (shared, own) if part is not None]
        if not found:
            return None
        parts.append(
            max(found, key=lambda part: part.allocation.value(parameters.hysteresis_ratio))
        )
    return tuple(parts)


def _shared(
    cameras: Sequence[CameraOptions],
    group: UniformGroup,
    name: VariantName,
    timing: Mapping[VariantName, BatchTimes],
) -> CycleAllocation:
    having = [cameras[at] for at in group.cameras]
    numbers = [[option.variant.name for option in of.options].index(name) for of in having]
    return CycleAllocation(having, numbers, timing)


def _problem(
    cameras: Sequence[CameraOptions],
    table: OptionTable,
    names: Sequence[VariantName],
    pool: ExecutorPool,
    parameters: PlanningParameters,
) -> UniformProblem:
    """Return cameras as those of executors that run one variant each."""
    rate_hz = np.array([max(option.rate_hz for option in of.options) for of in cameras])
    units = np.ceil(rate_hz * _UNITS_PER_HZ - 1e-6).astype(np.int64)
    # A variant has a column for cameras with a deadline, and perhaps one for best effort.
    columns = [[at for at, each in enumerate(table.names) if each == name] for name in names]
    value = np.stack([table.value[:, of].max(axis=1) for of in columns], axis=1)
    compute_ns = np.stack([table.compute_ns[:, of].max(axis=1) for of in columns], axis=1)
    share = parameters.cycle_utilisation_max
    if table.raises.any():  # it may be less: not every camera gets more
        share *= parameters.upgrade_share
    limits = np.zeros(value.shape, np.int64)
    for at, name in enumerate(names):
        per_ns = _capacity(pool.together[name], compute_ns[:, at], share)
        limits[:, at] = per_ns * 1e9 * _UNITS_PER_HZ / len(pool.executors) + 1e-6
    limits[limits < units[:, None] / len(pool.executors)] = 0
    return UniformProblem(len(pool.executors), True, units, limits, value)


def _capacity(of: BatchTimes, compute_ns: Floats, share: float) -> Floats:
    """Return what all executors can serve in a nanosecond where cameras have so much time.

    In the largest batch that may wait for one of its length, as far as the part of the time that
    may be planned suffices in the largest that may not.
    """
    sizes, longest_ns, pooled_ns = (
        np.array(each, np.float64) for each in zip(*of.batches, strict=True)
    )
    best = np.concatenate([[0.0], np.maximum.accumulate(sizes / pooled_ns)])
    waits = best[np.searchsorted(2 * longest_ns, compute_ns, side="right")]
    at_once = best[np.searchsorted(longest_ns, compute_ns, side="right")]
    return np.asarray(np.minimum(waits, share * at_once))
