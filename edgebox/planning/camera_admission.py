"""Decides whether a box that is asked to refuse takes on one more camera. Pure.

A newcomer is refused if its service, even at its smallest size and least rate, would take that of
cameras that are served: they would have to become best effort, or it would itself because they
are there. Its link is not known yet and taken to be an ordinary one. A camera that could not be
served on an empty box either is no newcomer's burden: it is taken on as long as nobody loses.

The later stages of its pipeline are taken to need what those of a connected camera with the same
pipeline do: its own past, else the camera in the middle. Where there is none, nothing is known of
them, and they count as nothing.
"""

from dataclasses import replace

from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, LinkState
from edgebox.planning.later_stages import later_share_of_camera
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
    coming = _with_later_stages(newcomer, snapshot, parameters)
    past = [each for each in snapshot.cameras if each.camera.id == newcomer.id]
    of_residents = max(0.0, snapshot.later_share - sum(map(later_share_of_camera, past)))
    of_newcomer = later_share_of_camera(coming)

    # A newcomer takes something from its own part of the box, or from the uplink of its site.
    family = newcomer.family if newcomer.site is None else None

    def with_cameras(later_share: float, *cameras: CameraSnapshot) -> list[OptimisedPart]:
        """Return what the newcomer may take anything from."""
        of = replace(snapshot, cameras=cameras, later_share=later_share)
        found = optimised_parts(of, iterations_max, parameters, family)
        return [part for _, part in found if part is not None]

    before = with_cameras(of_residents, *residents)
    served = {camera for each in before for camera in each.served()}
    if not served:
        return None
    all_parts = with_cameras(of_residents + of_newcomer, *residents, coming)
    after = next((each for each in all_parts if newcomer.id in each.numbers), None)
    if after is None:
        return None  # none of its variants is loaded
    for each in all_parts:
        for camera in each.numbers:
            if camera in served and camera not in each.served():
                return f"{camera} would no longer be served ({each.why(camera)})"
    refused = newcomer.id not in after.served()
    if refused and any(by_itself.served() for by_itself in with_cameras(of_newcomer, coming)):
        return f"it could not be served beside the others ({after.why(newcomer.id)})"
    # Of a box of several parts the share does not say in which of them the later stages run.
    whole = len(after.executors) == len(snapshot.profiles)
    later_share = of_residents + of_newcomer if coming.later and whole else 0.0
    return _overbooked(after, later_share, parameters)


def _with_later_stages(
    newcomer: Camera, snapshot: PlanningSnapshot, parameters: PlanningParameters
) -> CameraSnapshot:
    """Return a new camera with what is known of its pipeline, at its least rate."""
    coming = CameraSnapshot(newcomer, LinkState(), None)
    alike = [
        each
        for each in snapshot.cameras
        if each.later and each.camera.pipeline == newcomer.pipeline is not None
    ]
    if not alike:
        return coming
    alike.sort(
        key=lambda each: (later_share_of_camera(replace(each, later_rate_hz=1.0)), each.camera.id)
    )
    own = (each for each in alike if each.camera.id == newcomer.id)
    known = next(own, alike[(len(alike) - 1) // 2])
    rate_hz = min(newcomer.rate_hz, max(newcomer.min_rate_hz, parameters.rate_min_hz))
    return replace(coming, later=known.later, later_ns=known.later_ns, later_rate_hz=rate_hz)


def _overbooked(
    part: OptimisedPart, later_share: float, parameters: PlanningParameters
) -> str | None:
    """Say how far a part exceeds its time; None: it does not.

    Args:
        part: with the newcomer.
        later_share: what the later stages take of the part if the newcomer has any, else 0: a plan
            leaves the first stages some time whatever they take, no reason to bring more.
        parameters: the planner's.
    """
    needed = part.allocation.utilisation
    if needed + later_share > parameters.utilisation_slow + 1e-9 and later_share > 0:
        needed, included = needed + later_share, ", the later stages of their pipelines included"
    elif needed > part.parameters.utilisation_slow + 1e-9:
        included = ""
    else:
        return None
    return (
        f"{len(part.numbers)} cameras would need {needed:.0%} of the time of "
        f"{', '.join(part.executors)} at their smallest sizes and least rates{included}"
    )
