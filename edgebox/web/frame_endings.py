"""Decides what a camera is told of a frame that has ended."""

from collections.abc import Mapping

from edgebox.domain.model_family import FamilyName
from edgebox.domain.plans import Advice
from edgebox.inference.family import Family
from edgebox.link.messages import DropNotice, Result, Timing
from edgebox.runtime.frames import Answer, FrameResult, PendingFrame
from edgebox.runtime.stage_documents import staged_objects
from edgebox.web.detection_documents import SCORE_MIN, wire_detections


def ending_message(
    frame: PendingFrame,
    ending: FrameResult,
    advice: Advice,
    labels: tuple[str, ...],
    families: Mapping[FamilyName, Family],
) -> bytes:
    """Return the result or the drop of a frame.

    Args:
        frame: which has ended.
        ending: how.
        advice: in force.
        labels: of the camera's family.
        families: that are served.
    """
    if not isinstance(ending, Answer):
        return DropNotice(frame.number, ending.reason, ending.message, advice).encode()
    timing = ending.timing
    staged = staged_objects(ending, frame.pipeline, families, SCORE_MIN)
    return Result(
        frame=frame.number,
        outcome=ending.outcome,
        variant=ending.variant,
        detections=wire_detections(ending.detections, labels, staged),
        missing=tuple(map(str, ending.missing)),
        placement=ending.placement,
        cascade=ending.cascade,
        timing=Timing(
            network_ms=_ms(timing.network_ns),
            queue_ms=_ms(timing.queue_ns),
            inference_ms=_ms(timing.inference_ns),
            return_ms=_ms(timing.return_ns),
            total_ms=_ms(timing.total_ns),
            batch_size=timing.batch_size,
        ),
        advice=advice,
    ).encode()


def _ms(ns: int) -> float:
    return round(ns / 1e6, 2)
