"""Decides whether a box that is asked to refuse takes on one more camera. Pure.

A newcomer is refused if its service, even at its smallest size and least rate, would take that of
cameras that are served: they would have to become best effort, or it would itself because they
are there. Its link is not known yet and taken to be an ordinary one. A camera that could not be
served on an empty box either is no newcomer's burden: it is taken on as long as nobody loses.
"""

from dataclasses import replace

from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, LinkState
from edgebox.planning.optimised_part import OptimisedPart, optimised_parts
from edgebox.planning.planner_parameters import PlanningParameters


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

    # A newcomer takes something from its own part of the box, or from the uplink of its site.
    family = newcomer.family if newcomer.site is None else None

    def with_cameras(*cameras: CameraSnapshot) -> list[OptimisedPart]:
        """Return what the newcomer may take anything from."""
        found = optimised_parts(
            replace(snapshot, cameras=cameras), iterations_max, parameters, family
        )
        return [part for _, part in found if part is not None]

    served = {camera for each in with_cameras(*residents) for camera in each.served()}
    if not served:
        return None
    all_parts = with_cameras(*residents, coming)
    after = next((each for each in all_parts if newcomer.id in each.numbers), None)
    if after is None:
        return None  # none of its variants is loaded
    for each in all_parts:
        for camera in each.numbers:
            if camera in served and camera not in each.served():
                return f"{camera} would no longer be served ({each.why(camera)})"
    refused = newcomer.id not in after.served()
    if refused and any(by_itself.served() for by_itself in with_cameras(coming)):
        return f"it could not be served beside the others ({after.why(newcomer.id)})"
    if after.allocation.utilisation > after.parameters.utilisation_slow + 1e-9:
        return (
            f"{len(after.numbers)} cameras would need {after.allocation.utilisation:.0%} of the "
            f"time of {', '.join(after.executors)} at their smallest sizes and least rates"
        )
    return None
