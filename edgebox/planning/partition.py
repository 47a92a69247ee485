"""Owns executors that are divided into groups, each of which has cameras and variants of its own.

Where all executors serve everybody, the tightest deadline bounds everybody's batches. Divided,
cameras with tight deadlines have executors of their own, and the batches of the others may be long
(Jellyfish has one variant per executor for that). A group runs full batches of a few variants in a
cycle, or has an executor for each of its cameras. No variant is in two groups: a camera's frames go
where its variant is. Pure. Limit: only executors that have the same variants are divided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Group
from edgebox.planning.allocation import Allocation, Violation
from edgebox.planning.capacity import BatchTimes, ExecutorPool
from edgebox.planning.cycle_allocation import CycleAllocation
from edgebox.planning.dedicated import DedicatedAllocation, best_dedicated
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.planner_parameters import PlanningParameters


@dataclass(frozen=True, slots=True)
class Part:
    """A group of executors, and what it does."""

    executors: tuple[ExecutorId, ...]
    members: tuple[int, ...]
    """The cameras, by their numbers."""
    allocation: CycleAllocation | DedicatedAllocation
    """What these get, in their order."""

    @property
    def variants(self) -> frozenset[VariantName]:
        """What it runs."""
        return frozenset(option.variant.name for option in self.allocation.chosen)


class PartitionedAllocation(Allocation):
    """Options that groups of executors serve, each by itself."""

    def __init__(
        self,
        cameras: Sequence[CameraOptions],
        dedicated: Sequence[CameraOptions],
        parts: Sequence[Part],
        pool: ExecutorPool,
    ) -> None:
        having, at = [*cameras], [0] * len(cameras)
        for part in parts:
            for camera, option in zip(part.members, part.allocation.chosen, strict=True):
                if option.dedicated:
                    having[camera] = dedicated[camera]
                at[camera] = having[camera].options.index(option)
        super().__init__(having, at)
        self.parts = tuple(parts)
        self._pool = pool

    @property
    def groups(self) -> tuple[Group, ...]:
        """The executors, what they run, and how far they may help each other out."""
        return tuple(
            Group(part.executors, tuple(sorted(part.variants)), part.allocation.steal_budget_ns)
            for part in self.parts
        )

    @property
    def utilisation(self) -> float:
        """Planned share of all executors' time."""
        busy = sum(part.allocation.utilisation * len(part.executors) for part in self.parts)
        return busy / len(self._pool.executors)

    def sharing(self, camera: int) -> tuple[int, tuple[ExecutorId, ...] | None]:
        """Return how many cameras share the executors of a camera's group, and these."""
        part = self._part(camera)
        return len(part.members), part.executors

    def needed_ns(self, camera: int) -> int:
        """Return what a camera's frames need in its group."""
        part = self._part(camera)
        return part.allocation.needed_ns(part.members.index(camera))

    def violation(
        self, camera: int, option: Option, parameters: PlanningParameters
    ) -> Violation | None:
        """Return what forbids a camera an option in the group that runs it, or else in its own."""
        name = option.variant.name
        part = next((p for p in self.parts if name in p.variants), self._part(camera))
        members = part.members if camera in part.members else (*part.members, camera)
        if option.dedicated and members == part.members:
            return part.allocation.violation(members.index(camera), option, parameters)
        allocation = self._cycle(part, members)
        found = allocation.violation(members.index(camera), option, parameters)
        if found is None or found.who is None:
            return found
        return replace(found, who=members[found.who])

    def _cycle(self, part: Part, members: tuple[int, ...]) -> CycleAllocation:
        """Return a group's cameras, and perhaps one more, as if they shared its executors."""
        if members == part.members and isinstance(part.allocation, CycleAllocation):
            return part.allocation
        return CycleAllocation(
            [self.cameras[each] for each in members],
            [self.at[each] for each in members],
            self._pool.timing(part.executors),
        )

    def _part(self, camera: int) -> Part:
        return next(part for part in self.parts if camera in part.members)


def kept_partition(
    cameras: Sequence[CameraOptions],
    dedicated: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
) -> Allocation | None:
    """Return what cameras have now, or the largest below it, in the groups in force.

    None: it is no longer feasible. A camera whose variant is in no group, as a new one, joins the
    group with the next smaller variant, or else that with the smallest.
    """
    groups = pool.groups
    if not groups:
        kept = CycleAllocation(cameras, [c.current for c in cameras], pool.together)
        return kept if kept.infeasible(parameters) is None else None
    if {executor for group in groups for executor in group.executors} != set(pool.executors):
        return None
    parts: list[Part] = []
    for group, members in zip(groups, _members(cameras, dedicated, groups), strict=True):
        if not members:
            return None  # its executors would have nothing to do
        excluded = {v for other in groups if other is not group for v in other.variants}
        excluded |= {v for part in parts for v in part.variants}
        part = group.executors, tuple(members)
        own = dedicated_part(dedicated, part[1], part[0], excluded, parameters)
        timing = pool.timing(group.executors)
        shared = _kept_part(cameras, part, excluded, timing, parameters)
        # Either may be what is in force, and the other one less.
        found = [each for each in (own, shared) if each is not None]
        if not found:
            return None
        parts.append(
            max(found, key=lambda each: each.allocation.value(parameters.hysteresis_ratio))
        )
    return PartitionedAllocation(cameras, dedicated, parts, pool) if len(parts) > 1 else None


def _kept_part(
    cameras: Sequence[CameraOptions],
    part: tuple[tuple[ExecutorId, ...], tuple[int, ...]],
    excluded: set[VariantName],
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
) -> Part | None:
    executors, members = part
    having = _without([cameras[at] for at in members], excluded)
    if having is None:
        return None
    kept = CycleAllocation(having, [c.current for c in having], timing)
    return Part(executors, members, kept) if kept.infeasible(parameters) is None else None


def in_place(
    parts: Sequence[Part], pool: ExecutorPool, parameters: PlanningParameters
) -> Sequence[Part]:
    """Return groups on executors that have their variants now, as far as these can serve them.

    Nobody gains if groups change places. The executors would load each other's models, and what
    waits for them would be another group's.
    """
    placed = []
    for part, executors in zip(parts, _places(parts, pool), strict=True):
        allocation = part.allocation
        if isinstance(allocation, CycleAllocation):
            timing = pool.timing(executors)
            allocation = CycleAllocation(allocation.cameras, allocation.at, timing)
            if allocation.infeasible(parameters) is not None:
                return parts
        placed.append(Part(executors, part.members, allocation))
    return placed


def _places(parts: Sequence[Part], pool: ExecutorPool) -> list[tuple[ExecutorId, ...]]:
    """Return as many executors for each group as it has: those with its variants come first."""
    having = {e: {*group.variants} for group in pool.groups for e in group.executors}

    def preference(pair: tuple[int, ExecutorId]) -> tuple[int, bool]:
        at, executor = pair
        part = parts[at]
        return -len(part.variants & having.get(executor, set())), executor not in part.executors

    places: list[list[ExecutorId]] = [[] for _ in parts]
    free = {*pool.executors}
    for at, executor in sorted(product(range(len(parts)), pool.executors), key=preference):
        if executor in free and len(places[at]) < len(parts[at].executors):
            places[at].append(executor)
            free.remove(executor)
    return [tuple(e for e in pool.executors if e in place) for place in places]


def dedicated_part(
    dedicated: Sequence[CameraOptions],
    members: tuple[int, ...],
    executors: tuple[ExecutorId, ...],
    excluded: frozenset[VariantName] | set[VariantName],
    parameters: PlanningParameters,
) -> Part | None:
    """Return a group with an executor for each of its cameras; None: it cannot serve them."""
    if not dedicated or len(members) > len(executors):
        return None
    having = _without([dedicated[at] for at in members], excluded)
    if having is None:
        return None
    found = best_dedicated(having, len(executors), parameters)
    return None if found is None else Part(executors, members, found)


def _members(
    cameras: Sequence[CameraOptions], dedicated: Sequence[CameraOptions], groups: Sequence[Group]
) -> list[list[int]]:
    """Return the cameras of each group: that of a camera's variant, or of the next smaller one."""
    variants = {o.variant.name: o.variant for c in cameras for o in c.options}
    rising = sorted(
        (variants[name].pixels, number, variants[name].family)
        for number, group in enumerate(groups)
        for name in group.variants
        if name in variants
    )
    members: list[list[int]] = [[] for _ in groups]
    for group, there in zip(groups, members, strict=True):
        having = [at for at, of in enumerate(dedicated) if _current_variant(of) in group.variants]
        if len(having) <= len(group.executors):
            there.extend(having)  # what they have may be larger than what they could share
    placed = {at for there in members for at in there}
    for at, of in enumerate(cameras):
        if at not in placed:
            variant = of.options[of.current].variant
            own = [n for n, group in enumerate(groups) if variant.name in group.variants]
            family = [(px, n) for px, n, name in rising if name == variant.family]
            below = own or [n for px, n in family if px <= variant.pixels]
            members[(below or [n for _, n in family[:1]] or [0])[-1]].append(at)
    return [sorted(there) for there in members]


def _current_variant(of: CameraOptions) -> VariantName | None:
    return None if of.snapshot.current is None else of.snapshot.current.variant


def _without(
    cameras: Sequence[CameraOptions], excluded: frozenset[VariantName] | set[VariantName]
) -> list[CameraOptions] | None:
    """Return cameras with the options that are left to them; None: one has none left."""
    out = []
    for of in cameras:
        options = tuple(o for o in of.options if o.variant.name not in excluded)
        if not options:
            return None
        out.append(of if len(options) == len(of.options) else of._replace(options=options))
    return out
