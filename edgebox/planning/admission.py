"""Decides whether a box that is asked to refuse takes on one more camera. Pure.

A newcomer is refused if its service, even at its smallest size and least rate, would take that of
cameras that are served: they would have to become best effort, or it would itself because they
are there. Its link is not known yet and taken to be an ordinary one. A camera that could not be
served on an empty box either is no newcomer's burden: it is taken on as long as nobody loses.
"""

from dataclasses import replace

from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, LinkState
from edgebox.planning.allocation import Allocation
from edgebox.planning.by_application import by_application
from edgebox.planning.disjoint import part_of
from edgebox.planning.optimisation import optimise
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.reasons import Reasons
from edgebox.planning.uplinks import with_uplink_shares


def refusal(
    snapshot: PlanningSnapshot,
    newcomer: Camera,
    parameters: PlanningParameters,
    iterations_max: int = 1000,
) -> str | None:
    """Say whom a new camera would take its service; None: nobody. Plans at most three times.

    Args:
        snapshot: the present. A camera of the newcomer's name in it is its own past, and gone.
        newcomer: what it asks for.
        parameters: the planner's.
        iterations_max: the planner's.
    """
    residents = tuple(each for each in snapshot.cameras if each.camera.id != newcomer.id)
    with_it = (*residents, CameraSnapshot(newcomer, LinkState(), None))
    told = by_application(part_of(replace(snapshot, cameras=with_it), newcomer.family))
    *others, coming = told.snapshot.cameras

    def with_cameras(*cameras: CameraSnapshot) -> Allocation | None:
        some = with_uplink_shares(replace(told.snapshot, cameras=cameras), parameters)
        return optimise(replace(told, snapshot=some), iterations_max, parameters)

    before = with_cameras(*others)
    if before is None or not before.served:
        return None
    after = with_cameras(*others, coming)
    if after is None or len(after.cameras) == len(before.cameras):
        return None  # none of its variants is loaded
    executors = tuple(told.snapshot.profiles)

    reasons = Reasons(after, executors, told.snapshot.fixed_ns, parameters)

    def why(camera: int) -> str:
        return reasons.reason(camera).text

    for at, (had, has) in enumerate(zip(before.cameras, after.cameras, strict=False)):
        if had.served and not has.served:
            return f"{has.snapshot.camera.id} would no longer be served ({why(at)})"
    if not after.cameras[-1].served:
        by_itself = with_cameras(coming)
        if by_itself is not None and by_itself.served:
            return f"it could not be served beside the others ({why(len(others))})"
    if after.utilisation > parameters.utilisation_slow + 1e-9:
        return (
            f"{len(after.cameras)} cameras would need {after.utilisation:.0%} of the time of "
            f"{', '.join(executors)} at their smallest sizes and least rates"
        )
    return None
