"""The JSON shapes of detections that leave the box."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from edgebox.domain.notifications import Notification
from edgebox.link.messages import TrackedDetection, WireDetection
from edgebox.runtime.frames import Timing
from edgebox.runtime.stage_documents import StagedObjects, best_rows
from edgebox.vision.detections import SHOWN_SCORE_MIN, Detections

BoxForm = Literal["xyxy", "xywh"]

SCORE_MIN = SHOWN_SCORE_MIN
"""Default lower limit of the scores that are shown or sent."""


def wire_detections(
    found: Detections, labels: tuple[str, ...], staged: StagedObjects | None = None
) -> tuple[WireDetection, ...]:
    """Return the detections of a result message, best first, with what later stages say."""
    if not len(found):
        return ()
    rows = best_rows(found, SCORE_MIN)
    found = found.select(rows)
    documents = {} if staged is None else staged.documents
    # Round in float64: a rounded float32 would be written with spurious digits.
    boxes = np.round(found.boxes.astype(np.float64), 1).tolist()
    scores = np.round(found.scores.astype(np.float64), 3).tolist()
    out = []
    for at, row in enumerate(rows.tolist()):
        x1, y1, x2, y2 = boxes[at]
        plain = WireDetection(
            labels[found.labels[at]], scores[at], (x1, y1, x2, y2), documents.get(row, {})
        )
        if found.tracks is not None:
            track = int(found.tracks[at]) or None
            plain = TrackedDetection(plain.label, plain.score, plain.box, plain.stages, track)
        out.append(plain)
    return tuple(out)


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
    found: Detections,
    labels: tuple[str, ...],
    form: BoxForm,
    score_min: float,
    attribute_names: Sequence[str] = (),
) -> list[dict[str, object]]:
    """Return the detections in the answer to one picture, best first.

    Args:
        found: the detections.
        labels: names of the labels, by number.
        form: of the boxes.
        score_min: detections below it are left out.
        attribute_names: the attribute of each label, for a family with attributes.
    """
    found = best_first(found.above(score_min))
    boxes = found.xywh() if form == "xywh" else found.boxes
    rows = np.round(boxes.astype(np.float64), 1).tolist()
    scores = np.round(found.scores.astype(np.float64), 3).tolist()
    out: list[dict[str, object]] = [
        {"label": labels[label], "label_id": label, "score": score, "box": box}
        for label, score, box in zip(found.labels.tolist(), scores, rows, strict=True)
    ]
    for at, row in enumerate(out):
        if attribute_names:
            row["attribute"] = attribute_names[int(found.labels[at])]
        if found.embeddings is not None:
            row["embedding"] = np.round(found.embeddings[at].astype(np.float64), 6).tolist()
    return with_tracks(out, found)


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
