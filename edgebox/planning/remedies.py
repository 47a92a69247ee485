"""Tells what a person can do for a camera that does not get all that it would like.

Pure. A remedy follows from the constraint that binds, so that reason and remedy cannot disagree.
"""

import math

from edgebox.domain.plans import Limit, Remedy, RemedyAction, Resource
from edgebox.domain.requests import CameraId
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.wording import bandwidth_text, rate_text

NOTHING_TO_DO = Remedy(RemedyAction.WAIT, "wait a few seconds; this changes by itself")
FEWER_FRAMES = Remedy(RemedyAction.LOWER_RATE, "ask for fewer frames/s")
ADD_EXECUTOR = Remedy(RemedyAction.ADD_EXECUTOR, "add an executor")


def remedies(of: CameraOptions, has: Option | None, limit: Limit | None) -> tuple[Remedy, ...]:
    """Return what helps a camera, the least costly first.

    Args:
        of: the camera and what it could have.
        has: what it has, and is to keep; None: it is to have a larger size.
        limit: the constraint that forbids more; None: none does, or it is a matter of time.
    """
    if not of.ladder:
        return _inaccurate(of)
    if limit is None:
        return _unlimited(of, has)
    match limit.resource:
        case Resource.UPLINK:
            return (*_lower_rate(of, has), _better_uplink(of, limit))
        case Resource.DEADLINE:
            return (_later_deadline(of, limit), *_smaller_model(of, has))
        case Resource.WAITING:
            return (_later_deadline(of, limit), ADD_EXECUTOR)
        case Resource.EXECUTORS:
            slower = _lower_rate(of, has) or (FEWER_FRAMES,)
            return (*slower, *_smaller_model(of, has), ADD_EXECUTOR)


def _unlimited(of: CameraOptions, has: Option | None) -> tuple[Remedy, ...]:
    if of.snapshot.link.bandwidth_bps is None or of.held:
        return (NOTHING_TO_DO,)
    return _lower_rate(of, has)


def _lower_rate(of: CameraOptions, has: Option | None) -> tuple[Remedy, ...]:
    """Say which rate can be kept, where that is not the one the camera asks for."""
    if has is None or has.rate_hz >= of.snapshot.camera.rate_hz:
        return ()
    text = f"ask for {rate_text(has.rate_hz)}"
    return (Remedy(RemedyAction.LOWER_RATE, text, has.rate_hz),)


def _better_uplink(of: CameraOptions, limit: Limit) -> Remedy:
    needed_bps = limit.missing + (of.snapshot.link.bandwidth_bps or 0.0)
    text = f"give {limit.of} an uplink of at least {bandwidth_text(needed_bps)}"
    return Remedy(RemedyAction.IMPROVE_UPLINK, text, float(math.ceil(needed_bps)))


def _later_deadline(of: CameraOptions, limit: Limit) -> Remedy:
    camera = of.snapshot.camera
    if limit.of != camera.id:
        text = f"allow {math.ceil(limit.missing / 1e6):,} ms more for answers to {limit.of}"
        return Remedy(RemedyAction.EXTEND_DEADLINE, text, camera=CameraId(limit.of))
    needed_ms = math.ceil((camera.slo_ns + limit.missing) / 1e6)
    text = f"allow {needed_ms:,} ms for an answer instead of {camera.slo_ns / 1e6:,g}"
    return Remedy(RemedyAction.EXTEND_DEADLINE, text, float(needed_ms))


def _smaller_model(of: CameraOptions, has: Option | None) -> tuple[Remedy, ...]:
    """Say that a smaller model would help, where the camera has the smallest size there is."""
    if has is None or has.variant.pixels > of.ladder[0].variant.pixels:
        return ()
    if of.ladder[0].variant.name != of.smallest.variant.name:
        accuracy = math.floor(of.smallest.accuracy * 100) / 100
        text = f"ask for an accuracy of {accuracy:.2f} at most"
        return (Remedy(RemedyAction.LOWER_ACCURACY, text, accuracy),)
    has_one = "this model has one size" if len(of.ladder) == 1 else "this is the model's smallest"
    return (Remedy(RemedyAction.IMPORT_SMALLER_MODEL, f"import a smaller model ({has_one})"),)


def _inaccurate(of: CameraOptions) -> tuple[Remedy, ...]:
    most = math.floor(of.best_accuracy * 100) / 100
    return (
        Remedy(RemedyAction.LOWER_ACCURACY, f"ask for an accuracy of {most:.2f} at most", most),
        Remedy(RemedyAction.IMPORT_BETTER_MODEL, "import a more accurate model"),
    )
