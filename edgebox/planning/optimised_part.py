"""Plans the parts of a box: the one function that planner, explanation and admission call. Pure.

Cameras of a site divide their uplink first (`uplinks`). What has no executor in common is planned
by itself (`disjoint`). Applications that take longer or shorter than the profiles say get variants
of their own (`by_application`). Then all cameras of a part are optimised together (`optimisation`),
for the quantile of the batches' times that brings most (`on_time`).
"""

from dataclasses import dataclass
from functools import cached_property

from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import CameraId
from edgebox.planning.allocation import Allocation
from edgebox.planning.by_application import ByApplication, by_application
from edgebox.planning.disjoint import part_of, parts
from edgebox.planning.on_time import Expected, expected, lower_quantiles, slowest_profiles
from edgebox.planning.optimisation import optimise
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.reasons import Reasons
from edgebox.planning.uplinks import with_uplink_shares


@dataclass(frozen=True)
class OptimisedPart:
    """A part of a box, what its cameras are given, and why none is given more."""

    snapshot: PlanningSnapshot
    """The part, its uplinks divided."""
    by_app: ByApplication
    """The same, by application: what the allocation's variants are named by."""
    allocation: Allocation
    parameters: PlanningParameters
    """With the quantile of the batches' times that it is planned for."""

    @property
    def executors(self) -> tuple[ExecutorId, ...]:
        """Return the executors of the part."""
        return tuple(self.snapshot.profiles)

    @cached_property
    def numbers(self) -> dict[CameraId, int]:
        """The cameras that have a loaded variant, by name: their numbers in the allocation."""
        return {of.snapshot.camera.id: at for at, of in enumerate(self.allocation.cameras)}

    @cached_property
    def reasons(self) -> Reasons:
        """What answers why a camera has no more."""
        fixed_ns = self.snapshot.fixed_ns
        return Reasons(self.allocation, self.executors, fixed_ns, self.parameters)

    def expected(self, parameters: PlanningParameters) -> Expected:
        """Return what it is expected to bring; `parameters`: with the highest quantile."""
        quantile = self.parameters.quantile
        profiles = slowest_profiles(self.by_app.snapshot, quantile)
        return expected(self.allocation, profiles, quantile, parameters)

    def served(self) -> set[CameraId]:
        """Return the cameras that are more than best effort."""
        return {of.snapshot.camera.id for of in self.allocation.cameras if of.served}

    def why(self, camera: CameraId) -> str:
        """Say why a camera has no more than it has."""
        return self.reasons.reason(self.numbers[camera]).text


Parts = list[tuple[PlanningSnapshot, OptimisedPart | None]]
"""The parts of a box; None: no camera of it has a loaded variant."""


def optimised_parts(
    snapshot: PlanningSnapshot,
    iterations_max: int,
    parameters: PlanningParameters,
    family: FamilyName | None = None,
) -> Parts:
    """Return the parts of a box, optimised, each for the quantile that is worth most.

    Args:
        snapshot: all there is to know of the box.
        iterations_max: bound on the single steps of a search.
        parameters: the tunables.
        family: only the part that runs it is wanted; None: all are.
    """
    parameters = parameters.beside(snapshot.later_share)
    found = _at_one_quantile(snapshot, iterations_max, parameters, family)
    for lower in lower_quantiles(snapshot, parameters):
        others = _at_one_quantile(snapshot, iterations_max, lower, family)
        if _shares_uplinks(found):
            found = others if _is_better(others, found, parameters) else found
        else:
            found = [
                other if _is_better([other], [one], parameters) else one
                for one, other in zip(found, others, strict=True)
            ]
    return found


def _at_one_quantile(
    snapshot: PlanningSnapshot,
    iterations_max: int,
    parameters: PlanningParameters,
    family: FamilyName | None,
) -> Parts:
    whole = with_uplink_shares(snapshot, parameters)
    wanted = parts(whole) if family is None else [part_of(whole, family)]
    return [(part, _optimised(part, iterations_max, parameters)) for part in wanted]


def _shares_uplinks(of: Parts) -> bool:
    """Say whether the cameras of a site are in several parts, which then go together."""
    sites = [{c.camera.site for c in part.cameras if c.share is not None} for part, _ in of]
    return sum(map(len, sites)) > len(set().union(*sites))


def _is_better(some: Parts, others: Parts, parameters: PlanningParameters) -> bool:
    return _expected(some, parameters).exceeds(_expected(others, parameters))


def _expected(of: Parts, parameters: PlanningParameters) -> Expected:
    found = (part.expected(parameters) for _, part in of if part is not None)
    return sum(found, Expected(0.0, 0.0, 0.0))


def _optimised(
    part: PlanningSnapshot, iterations_max: int, parameters: PlanningParameters
) -> OptimisedPart | None:
    by_app = by_application(part)
    found = optimise(by_app, iterations_max, parameters)
    return None if found is None else OptimisedPart(part, by_app, found, parameters)
