"""The JSON shapes of detections that leave the box."""

from typing import Literal

import numpy as np

from edgebox.domain.notifications import Notification
from edgebox.link.messages import TrackedDetection, WireDetection
from edgebox.runtime.frames import Timing
from edgebox.vision.detections import Detections

BoxForm = Literal["xyxy", "xywh"]

SCORE_MIN = 0.3
"""Default lower limit of the scores that are shown or sent."""


def wire_detections(found: Detections, labels: tuple[str, ...]) -> tuple[WireDetection, ...]:
    """Return the detections of a result message, best first."""
    if not len(found):
        return ()
    found = best_first(found.above(SCORE_MIN))
    # Round in float64: a rounded float32 would be written with spurious digits.
    boxes = np.round(found.boxes.astype(np.float64), 1).tolist()
    scores = np.round(found.scores.astype(np.float64), 3).tolist()
    rows = zip(found.labels.tolist(), scores, boxes, track_ids(found), strict=True)
    if found.tracks is None:
        return tuple(
            WireDetection(labels[label], score, (box[0], box[1], box[2], box[3]))
            for label, score, box, _ in rows
        )
    return tuple(
        TrackedDetection(labels[label], score, (box[0], box[1], box[2], box[3]), track)
        for label, score, box, track in rows
    )


def track_ids(found: Detections) -> list[int | None]:
    """Return the number of each detection's track; None: it has none."""
    if found.tracks is None:
        return [None] * len(found)
    return [track or None for track in found.tracks.tolist()]


def with_tracks(entries: list[dict[str, object]], found: Detections) -> list[dict[str, object]]:
    """Return the entries of detections with their tracks, if they are tracked."""
    if found.tracks is None:
        return entries
    return [
        {**entry, "track": track} for entry, track in zip(entries, track_ids(found), strict=True)
    ]


def answer_detections(
    found: Detections, labels: tuple[str, ...], form: BoxForm, score_min: float
) -> list[dict[str, object]]:
    """Return the detections in the answer to one picture, best first."""
    found = best_first(found.above(score_min))
    boxes = found.xywh() if form == "xywh" else found.boxes
    rows = np.round(boxes.astype(np.float64), 1).tolist()
    scores = np.round(found.scores.astype(np.float64), 3).tolist()
    entries: list[dict[str, object]] = [
        {"label": labels[label], "label_id": label, "score": score, "box": box}
        for label, score, box in zip(found.labels.tolist(), scores, rows, strict=True)
    ]
    return with_tracks(entries, found)


def zone_event(event: Notification) -> dict[str, object]:
    """Return an event of a zone or a line, in the result of the frame that made it."""
    return {"type": event.kind.value, "label": event.label, **event.details}


def best_first(found: Detections) -> Detections:
    """Return the same detections in falling order of their scores."""
    return found.select(np.argsort(-found.scores, kind="stable"))


def timing_ms(timing: Timing) -> dict[str, float]:
    """Return the latency of an answered frame by part."""
    return {
        "network": round(timing.network_ns / 1e6, 2),
        "queue": round(timing.queue_ns / 1e6, 2),
        "inference": round(timing.inference_ns / 1e6, 2),
        "return": round(timing.return_ns / 1e6, 2),
        "total": round(timing.total_ns / 1e6, 2),
        "batch_size": timing.batch_size,
    }
