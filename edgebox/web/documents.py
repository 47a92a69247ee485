"""Owns the JSON shapes of detections that leave the box."""

from typing import Literal

import numpy as np

from edgebox.link.messages import WireDetection
from edgebox.vision.detections import Detections

BoxForm = Literal["xyxy", "xywh"]

SCORE_MIN = 0.3
"""Detections below it are not shown or sent unless somebody asks for them."""


def wire_detections(found: Detections, labels: tuple[str, ...]) -> tuple[WireDetection, ...]:
    """Return what a result message says was found, best first."""
    if not len(found):
        return ()
    found = _best_first(found, SCORE_MIN)
    # Rounding in float64: a float32 would be written with all its false digits.
    boxes = np.round(found.boxes.astype(np.float64), 1).tolist()
    scores = np.round(found.scores.astype(np.float64), 3).tolist()
    return tuple(
        WireDetection(labels[label], score, (box[0], box[1], box[2], box[3]))
        for label, score, box in zip(found.labels.tolist(), scores, boxes, strict=True)
    )


def answer_detections(
    found: Detections, labels: tuple[str, ...], form: BoxForm, score_min: float
) -> list[dict[str, object]]:
    """Return what the answer to one picture says was found, best first."""
    found = _best_first(found, score_min)
    boxes = found.xywh() if form == "xywh" else found.boxes
    rows = np.round(boxes.astype(np.float64), 1).tolist()
    scores = np.round(found.scores.astype(np.float64), 3).tolist()
    return [
        {"label": labels[label], "label_id": label, "score": score, "box": box}
        for label, score, box in zip(found.labels.tolist(), scores, rows, strict=True)
    ]


def _best_first(found: Detections, score_min: float) -> Detections:
    found = found.above(score_min)
    return found.select(np.argsort(-found.scores, kind="stable"))
