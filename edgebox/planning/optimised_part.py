"""Plans the parts of a box: the one function that planner, explanation and admission call. Pure.

Cameras of a site divide their uplink first (`uplinks`). What has no executor in common is planned
by itself (`disjoint`). Applications that take longer or shorter than the profiles say get variants
of their own (`by_application`). Then all cameras of a part are optimised together (`optimisation`).
"""

from dataclasses import dataclass
from functools import cached_property

from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import CameraId
from edgebox.planning.allocation import Allocation
from edgebox.planning.by_application import ByApplication, by_application
from edgebox.planning.disjoint import part_of, parts
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

    def served(self) -> set[CameraId]:
        """Return the cameras that are more than best effort."""
        return {of.snapshot.camera.id for of in self.allocation.cameras if of.served}

    def why(self, camera: CameraId) -> str:
        """Say why a camera has no more than it has."""
        return self.reasons.reason(self.numbers[camera]).text


def optimised_parts(
    snapshot: PlanningSnapshot,
    iterations_max: int,
    parameters: PlanningParameters,
    family: FamilyName | None = None,
) -> list[tuple[PlanningSnapshot, OptimisedPart | None]]:
    """Return the parts of a box, optimised; None: no camera of it has a loaded variant.

    Args:
        snapshot: all there is to know of the box.
        iterations_max: bound on the single steps of a search.
        parameters: the tunables.
        family: only the part that runs it is wanted; None: all are.
    """
    whole = with_uplink_shares(snapshot, parameters)
    wanted = parts(whole) if family is None else [part_of(whole, family)]
    return [(part, _optimised(part, iterations_max, parameters)) for part in wanted]


def _optimised(
    part: PlanningSnapshot, iterations_max: int, parameters: PlanningParameters
) -> OptimisedPart | None:
    by_app = by_application(part)
    found = optimise(by_app, iterations_max, parameters)
    return None if found is None else OptimisedPart(part, by_app, found, parameters)
