"""Owns options that executors can serve which run full batches of a few variants in a cycle. Pure.

The test is that of `batch_cycle`. Where batches gain much, as on a GPU, it admits far more than
`SharedAllocation`, which credits only batches that gather in half of the tightest budget.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from functools import cached_property

from edgebox.domain.model_family import VariantName
from edgebox.planning.allocation import Allocation, Violation
from edgebox.planning.batch_cycle import (
    NEVER_NS,
    BatchCycle,
    DeadlineMiss,
    VariantDemand,
    cycle_utilisation,
    demand_of,
    solve_cycle,
    steal_budget_ns,
)
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.planner_parameters import PlanningParameters


class CycleAllocation(Allocation):
    """Options that executors can serve in full batches, one variant after the other."""

    def __init__(
        self,
        cameras: Sequence[CameraOptions],
        at: Sequence[int],
        timing: Mapping[VariantName, BatchTimes],
    ) -> None:
        super().__init__(cameras, at)
        self._timing = timing

    def copy(self) -> "CycleAllocation":
        """Return the same options, to be changed apart from these."""
        return CycleAllocation(self.cameras, self.at, self._timing)

    def rise(self, camera: int, to: int) -> None:
        """Give a camera another of its options, larger than what it has. O(log n) for n cameras."""
        of, has = self.cameras[camera], self.chosen_of(camera)
        option = of.options[to]
        self.demand, old = self._demand_with(camera, option), has.variant.name
        self.__dict__.pop("_cycle", None)
        if of.served:
            there = self._by_variant[old]
            del there[bisect_left(there, (has.budget.compute_ns, camera))]
            entry = option.budget.compute_ns, camera
            insort(self._by_variant.setdefault(option.variant.name, []), entry)
        self._raised += of.is_upgrade(option) - of.is_upgrade(has)
        self.at[camera] = to

    @cached_property
    def demand(self) -> dict[VariantName, VariantDemand]:
        """What its cameras demand of each variant."""
        return demand_of(self.cameras, self.chosen)

    @property
    def utilisation(self) -> float:
        """Planned share of the executors' time, in the largest batches that deadlines allow."""
        return cycle_utilisation(self.demand, self._timing)

    @property
    def steal_budget_ns(self) -> int:
        """The longest batch of another group that these executors may run while they are idle."""
        return steal_budget_ns(self.demand, self._timing)

    def needed_ns(self, camera: int) -> int:
        """Return the wait for other batches, and its own batch; all it has: some cannot be met."""
        option, cycle = self.chosen_of(camera), self._cycle
        if cycle is None:
            return option.budget.compute_ns
        size = cycle.batch[option.variant.name]
        batches = self._timing[option.variant.name].batches
        return cycle.wait_ns + next(long_ns for each, long_ns, _ in batches if each == size)

    @cached_property
    def _cycle(self) -> BatchCycle | None:
        """The batches of its cycle; None: no cycle keeps all deadlines."""
        found = solve_cycle(self.demand, self._timing)
        return found if isinstance(found, BatchCycle) else None

    @cached_property
    def _by_variant(self) -> dict[VariantName, list[tuple[int, int]]]:
        """Compute budgets and numbers of the served cameras of each variant, the tightest first."""
        found: dict[VariantName, list[tuple[int, int]]] = {}
        for at, (c, option) in enumerate(zip(self.cameras, self.chosen, strict=True)):
            there = found.setdefault(option.variant.name, [])
            if c.served:
                there.append((option.budget.compute_ns, at))
        return {name: sorted(there) for name, there in found.items()}

    @cached_property
    def _raised(self) -> int:
        """How many cameras get a larger variant than they have."""
        return sum(c.is_upgrade(o) for c, o in zip(self.cameras, self.chosen, strict=True))

    def infeasible(self, parameters: PlanningParameters) -> Violation | None:
        """Return the constraint that these options violate; None: they are feasible."""
        return self._violation(self.demand, self._raised > 0, parameters, None)

    def violation(
        self, camera: int, option: Option, parameters: PlanningParameters
    ) -> Violation | None:
        """Return the constraint that forbids to give a camera an option; None: none does."""
        demand, upgrade = self._changed(camera, option)
        return self._violation(demand, upgrade, parameters, (camera, option))

    def allows(self, camera: int, option: Option, parameters: PlanningParameters) -> bool:
        """Say whether a camera may be given an option; what `violation` says, but sooner."""
        demand, upgrade = self._changed(camera, option)
        return cycle_feasible(demand, self._timing, parameters, upgrade)

    def _changed(
        self, camera: int, option: Option
    ) -> tuple[dict[VariantName, VariantDemand], bool]:
        """Return what is demanded if a camera has an option, and whether anybody is raised then."""
        of, has = self.cameras[camera], self.chosen_of(camera)
        raised = self._raised - of.is_upgrade(has) + of.is_upgrade(option)
        return self._demand_with(camera, option), raised > 0

    def _demand_with(self, camera: int, option: Option) -> dict[VariantName, VariantDemand]:
        """Return what the cameras demand if this one has that option."""
        of, has = self.cameras[camera], self.chosen_of(camera)
        demand = dict(self.demand)
        old, new = has.variant.name, option.variant.name
        left_hz = demand[old].rate_hz - has.rate_hz
        demand[old] = VariantDemand(left_hz, self._tightest(old, camera)[0])
        if left_hz < 1e-9:
            del demand[old]
        there = demand.get(new, VariantDemand())
        own_ns = option.budget.compute_ns if of.served else NEVER_NS
        rate_hz = there.rate_hz + option.rate_hz
        demand[new] = VariantDemand(rate_hz, min(there.tightest_ns, own_ns))
        return demand

    def _tightest(self, variant: VariantName, without: int | None) -> tuple[int, int | None]:
        """Return the least compute budget of a variant's cameras but for one, and whose it is."""
        there = self._by_variant.get(variant, [])
        return next((each for each in there[:2] if each[1] != without), (NEVER_NS, None))

    def _violation(
        self,
        demand: Mapping[VariantName, VariantDemand],
        upgrade: bool,
        parameters: PlanningParameters,
        changed: tuple[int, Option] | None,
    ) -> Violation | None:
        found = cycle_violation(demand, self._timing, parameters, upgrade)
        if not isinstance(found, DeadlineMiss):
            return None if found is None else Violation(missing_share=found)
        camera, option = changed or (None, None)
        tightest_ns, who = self._tightest(found.variant, camera)
        if (
            camera is not None
            and option is not None
            and option.variant.name == found.variant
            and self.cameras[camera].served
            and option.budget.compute_ns <= tightest_ns
        ):
            who = camera
        if who is None:
            return Violation(missing_share=found.overflow)  # best effort only: nobody is late
        return Violation(who=who, over_ns=found.over_ns)


def cycle_feasible(
    demand: Mapping[VariantName, VariantDemand],
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    upgrade: bool,
) -> bool:
    """Say whether a demand can be served in time; `cycle_violation` says why not.

    Args:
        demand: of each active variant.
        timing: what its batches take.
        parameters: the tunables.
        upgrade: some camera gets a larger variant than it has, which asks for a margin.
    """
    if cycle_utilisation(demand, timing) > _limit(parameters, upgrade):
        return False  # cheaper to see than a cycle
    return isinstance(solve_cycle(demand, timing), BatchCycle)


def cycle_violation(
    demand: Mapping[VariantName, VariantDemand],
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    upgrade: bool,
) -> DeadlineMiss | float | None:
    """Tell who misses a deadline, or else the share of time that is missing; None: feasible.

    Args: those of `cycle_feasible`.
    """
    found = solve_cycle(demand, timing)
    if isinstance(found, DeadlineMiss):
        return found
    missing = cycle_utilisation(demand, timing) - _limit(parameters, upgrade)
    return missing if missing > 0 else None


def _limit(parameters: PlanningParameters, upgrade: bool) -> float:
    return parameters.cycle_utilisation_max * (parameters.upgrade_share if upgrade else 1.0)
