"""Decides whether a box that is asked to refuse takes on one more camera. Pure.

A newcomer is refused if its service, even at its smallest size and least rate, would take that of
cameras that are served: they would have to become best effort, or it would itself because they
are there. Its link is not known yet and taken to be an ordinary one. A camera that could not be
served on an empty box either is no newcomer's burden: it is taken on as long as nobody loses.

A newcomer stays, but links recover: one late frame, perhaps the first, halves an estimate. So a
camera whose link is too weak at the moment still counts as served, over an ordinary one, for as
long as a sample of its bandwidth counts.

The later stages of its pipeline are taken to need what those of a connected camera with the same
pipeline do: its own past, else the camera in the middle. Where there is none, nothing is known of
them, and they count as nothing.
"""

from dataclasses import replace

from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId, LinkState
from edgebox.link.bandwidth import STALE_NS
from edgebox.planning.allocation import SharedAllocation
from edgebox.planning.capacity import ExecutorPool
from edgebox.planning.later_stages import Loads, later_loads, present_choice
from edgebox.planning.optimised_part import OptimisedPart, Parts, optimised_parts
from edgebox.planning.options import least_rate
from edgebox.planning.planner_parameters import PlanningParameters


def refusal(
    snapshot: PlanningSnapshot,
    newcomer: Camera,
    parameters: PlanningParameters,
    iterations_max: int = 1000,
) -> str | None:
    """Say whom a new camera would take its service; None: nobody. Plans at most five times.

    Args:
        snapshot: the present. A camera of the newcomer's name in it is its own past, and gone.
        newcomer: what it asks for.
        parameters: the planner's.
        iterations_max: the planner's.
    """
    residents = tuple(each for each in snapshot.cameras if each.camera.id != newcomer.id)
    coming = _with_later_stages(newcomer, snapshot)

    # A newcomer takes something from its own part of the box, from those of its later stages, or
    # from the uplink of its site.
    family = newcomer.family if newcomer.site is None and not coming.later else None

    def with_cameras(*cameras: CameraSnapshot) -> Parts:
        """Return what the newcomer may take anything from."""
        of = replace(snapshot, cameras=cameras)
        return optimised_parts(of, iterations_max, parameters, family)

    present = with_cameras(*residents)
    served = _served(present)
    recovering = _recovering(present, snapshot.taken_ns)
    if recovering:
        residents = tuple(
            _with_ordinary_link(each) if each.camera.id in recovering else each
            for each in residents
        )
        served |= _served(with_cameras(*residents))
    if not served:
        return None
    all_parts = with_cameras(*residents, coming)
    after = next((of for _, of in all_parts if of and newcomer.id in of.numbers), None)
    if after is None:
        return None  # none of its variants is loaded
    for each in (of for _, of in all_parts if of is not None):
        for camera in each.numbers:
            if camera in served and camera not in each.served():
                return f"{camera} would no longer be served ({each.why(camera)})"
    refused = newcomer.id not in after.served()
    if refused and _served(with_cameras(coming)):
        return f"it could not be served beside the others ({after.why(newcomer.id)})"
    own, others = _later_loads(all_parts, coming, least_rate(newcomer, parameters))
    for part, found in all_parts:
        if found is after or part.share_of(own) > 0:
            # Whatever later stages take, a plan leaves the first stages some time: no reason to
            # bring more.
            later = sum(map(part.share_of, (own, *others))) if coming.later else 0.0
            exceeds = _overbooked(part, found, newcomer.id, later, parameters)
            if exceeds is not None:
                return exceeds
    return None


def _served(of: Parts) -> set[CameraId]:
    return {camera for _, part in of if part is not None for camera in part.served()}


def _recovering(of: Parts, taken_ns: int) -> set[CameraId]:
    """Return the cameras whose links are too weak at the moment, and have not been so for long.

    Args:
        of: what they are given at present.
        taken_ns: the present.
    """

    def lately_served(camera: CameraSnapshot) -> bool:
        if camera.current is None or camera.current.served:
            return True
        return camera.unserved_ns is not None and taken_ns - camera.unserved_ns < STALE_NS

    return {
        each.snapshot.camera.id
        for _, part in of
        if part is not None
        for each in part.allocation.cameras
        if not each.served and not each.crowded and lately_served(each.snapshot)
    }


def _with_ordinary_link(of: CameraSnapshot) -> CameraSnapshot:
    link = replace(of.link, bandwidth_bps=None, throughput_stability=None)
    current = None if of.current is None else replace(of.current, served=True)
    return replace(of, link=link, current=current)


def _later_loads(of: Parts, newcomer: CameraSnapshot, least_hz: float) -> tuple[Loads, list[Loads]]:
    """Return what later stages take: the newcomer's at its least rate or more, and the others'."""
    own: Loads = {}
    others: list[Loads] = []
    for found in (found for _, found in of if found is not None):
        for each, option in zip(found.allocation.cameras, found.allocation.chosen, strict=True):
            if each.snapshot.camera.id == newcomer.camera.id:
                own = later_loads(each.snapshot, option.later, max(least_hz, option.rate_hz))
            else:
                others.append(later_loads(each.snapshot, option.later, option.rate_hz))
    return own, others


def _with_later_stages(newcomer: Camera, snapshot: PlanningSnapshot) -> CameraSnapshot:
    """Return a new camera with what is known of its pipeline."""
    coming = CameraSnapshot(newcomer, LinkState(), None)
    alike = [
        each
        for each in snapshot.cameras
        if each.later and each.camera.pipeline == newcomer.pipeline is not None
    ]
    if not alike:
        return coming

    def load(each: CameraSnapshot) -> tuple[float, CameraId]:
        return sum(later_loads(each, present_choice(each), 1.0).values()), each.camera.id

    alike.sort(key=load)
    own = (each for each in alike if each.camera.id == newcomer.id)
    known = next(own, alike[(len(alike) - 1) // 2])
    return replace(coming, later=known.later, later_ns=known.later_ns)


def _overbooked(
    part: PlanningSnapshot,
    found: OptimisedPart | None,
    newcomer: CameraId,
    later_share: float,
    parameters: PlanningParameters,
) -> str | None:
    """Say how far a part exceeds its time; None: it does not.

    Args:
        part: with the newcomer.
        found: what its cameras are given; None: no camera has its first stage there.
        newcomer: which it is.
        later_share: what later stages take of its time; 0: that is not asked.
        parameters: the planner's.
    """
    needed = 0.0 if found is None else _needed(found, newcomer)
    cameras = 0 if found is None else len(found.numbers)
    left = parameters.utilisation_slow if found is None else found.parameters.utilisation_slow
    if needed + later_share > parameters.utilisation_slow + 1e-9 and later_share > 0:
        needed, included = needed + later_share, ", the later stages of their pipelines included"
    elif needed > left + 1e-9:
        included = ""
    else:
        return None
    executors = ", ".join(part.profiles)
    if not cameras:
        return f"the later stages of pipelines would need {needed:.0%} of the time of {executors}"
    return (
        f"{cameras} cameras would need {needed:.0%} of the time of {executors} at their smallest "
        f"sizes and least rates{included}"
    )


def _needed(of: OptimisedPart, newcomer: CameraId) -> float:
    """Return the share of a part's time that first stages need.

    That is what is planned, or if the newcomer is not served, what all need at their smallest sizes
    and the least rates at which it and those that are served have service.
    """
    if newcomer not in of.numbers or newcomer in of.served():
        return of.allocation.utilisation
    least = []
    for each in of.allocation.cameras:
        option = each.options[0]
        if each.served or each.snapshot.camera.id == newcomer:
            option = option._replace(rate_hz=each.least_hz)
        least.append(each._replace(options=(option,)))
    timing = ExecutorPool(of.by_app.snapshot, of.parameters.quantile).together
    return SharedAllocation(least, [0] * len(least), timing).utilisation
