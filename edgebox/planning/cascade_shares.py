"""Gives cascades the executors' time that a plan leaves over. Pure.

At one price on the executors' time every cascade takes whole steps of its curve, and cameras that
are alike take them together. What they leave is given to the steps that gain most accuracy for
their time, the last of them in part. Along a step the gain is linear, so for curves whose gains
fall this is the best use of that time (the fractional knapsack, Dantzig 1957). Only spare time is
given: frames are answered without the large model, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgebox.domain.model_family import FamilyName
from edgebox.domain.plans import CameraSnapshot, PlannedCascade
from edgebox.domain.requests import CameraId
from edgebox.planning.options import Option

_EQUAL = 1e-9
"""Steps whose gains differ by less, as a share, go together."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A part of a cascade's curve that may still be taken."""

    camera: CameraId
    gain: float
    """Accuracy per second of executors' time, above 0."""
    to_share: float
    """The share of the pictures at its end."""
    from_share: float
    load: float
    """Executor-seconds a second of all of it."""


def filled_shares(
    chosen: Iterable[tuple[CameraSnapshot, Option]], families: Iterable[FamilyName], spare_s: float
) -> dict[CameraId, float]:
    """Return the shares of the cascades of some cameras after they have taken what time is left.

    Args:
        chosen: the cameras and what they are given.
        families: that the executors run whose time is left.
        spare_s: executor-seconds a second that may still be planned.

    Returns:
        The shares of the pictures that are sent on, of those cameras whose plan chooses them.
    """
    found: dict[CameraId, float] = {}
    steps: list[_Step] = []
    here = set(families)
    for camera, option in chosen:
        cascade, share = camera.cascade, option.later.cascade_share
        if cascade is None or share is None or cascade.large.family not in here:
            continue
        found[camera.camera.id] = share
        if option.variant.name == cascade.small:
            steps += _steps(camera, cascade, option, share)
    steps.sort(key=lambda step: -step.gain)
    while steps and spare_s > 0:
        equal = [step for step in steps if step.gain >= steps[0].gain * (1 - _EQUAL)]
        steps = steps[len(equal) :]
        part = min(1.0, spare_s / sum(step.load for step in equal))
        for step in equal:
            found[step.camera] += part * (step.to_share - step.from_share)
        if part < 1:
            break
        spare_s -= sum(step.load for step in equal)
    return found


def _steps(
    camera: CameraSnapshot, cascade: PlannedCascade, option: Option, share: float
) -> list[_Step]:
    """Return the steps of a curve's concave hull from a share on, from the best gain down."""
    accuracy = option.variant.accuracy
    per_share = option.rate_hz * camera.later_frames * cascade.executor_s
    if per_share <= 0:
        return []
    points = [share, *(point.share for point in cascade.curve.points if point.share > share)]
    reached = [cascade.curve.accuracy_at(at, accuracy, cascade.large.accuracy) for at in points]
    out: list[_Step] = []
    at = 0
    while at + 1 < len(points):
        best = max(range(at + 1, len(points)), key=lambda to: (_slope(points, reached, at, to), to))
        gain = _slope(points, reached, at, best) / cascade.executor_s
        if gain <= 0:
            break
        load = per_share * (points[best] - points[at])
        out.append(_Step(camera.camera.id, gain, points[best], points[at], load))
        at = best
    return out


def _slope(x: Sequence[float], y: Sequence[float], left: int, right: int) -> float:
    return (y[right] - y[left]) / (x[right] - x[left])
