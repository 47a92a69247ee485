"""Decides whether a box that is asked to refuse takes on one more camera. Pure.

A newcomer is refused if its service, even at its smallest size and least rate, would take that of
cameras that are served: they would have to become best effort, or it would itself because they
are there. Its link is not known yet and taken to be an ordinary one. A camera that could not be
served on an empty box either is no newcomer's burden: it is taken on as long as nobody loses.
"""

from dataclasses import replace

from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId, LinkState
from edgebox.planning.allocation import Allocation
from edgebox.planning.by_application import by_application
from edgebox.planning.disjoint import part_of, parts
from edgebox.planning.optimisation import optimise
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.reasons import Reasons
from edgebox.planning.uplinks import with_uplink_shares


def refusal(
    snapshot: PlanningSnapshot,
    newcomer: Camera,
    parameters: PlanningParameters,
    iterations_max: int = 1000,
) -> str | None:
    """Say whom a new camera would take its service; None: nobody. Plans at most four times.

    Args:
        snapshot: the present. A camera of the newcomer's name in it is its own past, and gone.
        newcomer: what it asks for.
        parameters: the planner's.
        iterations_max: the planner's.
    """
    residents = tuple(each for each in snapshot.cameras if each.camera.id != newcomer.id)
    coming = CameraSnapshot(newcomer, LinkState(), None)

    def with_cameras(*cameras: CameraSnapshot) -> tuple[_Planned | None, list[_Planned]]:
        """Return the newcomer's part of the box, and all that it may take anything from."""
        whole = with_uplink_shares(replace(snapshot, cameras=cameras), parameters)
        own = part_of(whole, newcomer.family)
        mine = _planned(own, iterations_max, parameters)
        others = [] if newcomer.site is None else [p for p in parts(whole) if p != own]
        found = (mine, *(_planned(part, iterations_max, parameters) for part in others))
        return mine, [each for each in found if each is not None]

    _, all_before = with_cameras(*residents)
    served = {camera for each in all_before for camera in each.served()}
    if not served:
        return None
    after, all_after = with_cameras(*residents, coming)
    if after is None or newcomer.id not in after.numbers:
        return None  # none of its variants is loaded
    for each in all_after:
        for camera in each.numbers:
            if camera in served and camera not in each.served():
                return f"{camera} would no longer be served ({each.why(camera)})"
    if newcomer.id not in after.served():
        by_itself, _ = with_cameras(coming)
        if by_itself is not None and by_itself.served():
            return f"it could not be served beside the others ({after.why(newcomer.id)})"
    if after.allocation.utilisation > parameters.utilisation_slow + 1e-9:
        return (
            f"{len(after.numbers)} cameras would need {after.allocation.utilisation:.0%} of the "
            f"time of {', '.join(after.executors)} at their smallest sizes and least rates"
        )
    return None


class _Planned:
    """A part of a box, planned, asked by the cameras' names."""

    def __init__(
        self, part: PlanningSnapshot, allocation: Allocation, parameters: PlanningParameters
    ) -> None:
        self.allocation = allocation
        self.executors = tuple(part.profiles)
        self.numbers = {c.snapshot.camera.id: at for at, c in enumerate(allocation.cameras)}
        self._reasons = Reasons(allocation, self.executors, part.fixed_ns, parameters)

    def served(self) -> set[CameraId]:
        """Return who is more than best effort."""
        return {c.snapshot.camera.id for c in self.allocation.cameras if c.served}

    def why(self, camera: CameraId) -> str:
        """Say why a camera has no more."""
        return self._reasons.reason(self.numbers[camera]).text


def _planned(
    part: PlanningSnapshot, iterations_max: int, parameters: PlanningParameters
) -> _Planned | None:
    by_app = by_application(part)
    found = optimise(by_app, iterations_max, parameters)
    return None if found is None else _Planned(by_app.snapshot, found, parameters)
