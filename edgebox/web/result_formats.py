"""Writes detections in the result formats: native, COCO and supervision.

Pure: each format is a set of fields for the answer or message that carries it.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgebox.vision.coco import COCO80, COCO80_IDS
from edgebox.vision.detections import Detections
from edgebox.web.detection_documents import answer_detections, best_first, track_ids, with_tracks

ResultFormat = Literal["native", "coco", "supervision"]

RESULT_FORMATS: tuple[ResultFormat, ...] = ("native", "coco", "supervision")


def in_format(
    result_format: ResultFormat,
    found: Detections,
    labels: tuple[str, ...],
    size_px: tuple[int, int],
    *,
    image_id: int,
    attribute_names: Sequence[str] = (),
) -> dict[str, object]:
    """Return the fields with the detections, best first.

    Args:
        result_format: the format.
        found: the detections.
        labels: names of the labels, by number.
        size_px: (width, height) of the picture that the boxes are on.
        image_id: the image_id of the COCO format.
        attribute_names: the attribute of each label, for a family with attributes.
    """
    width_px, height_px = size_px
    if result_format == "coco":
        return {
            "images": [{"id": image_id, "width": width_px, "height": height_px}],
            "annotations": _coco_annotations(found, labels, image_id),
        }
    if result_format == "supervision":
        return {
            "image": {"width": width_px, "height": height_px},
            "predictions": _predictions(found, labels),
        }
    return {
        "width_px": width_px,
        "height_px": height_px,
        "detections": answer_detections(found, labels, "xyxy", 0.0, attribute_names),
    }


def coco_categories(labels: tuple[str, ...]) -> list[dict[str, object]]:
    """Return a family's labels as COCO's categories."""
    ids = coco_ids(labels)
    return [{"id": number, "name": name} for number, name in zip(ids, labels, strict=True)]


def coco_ids(labels: tuple[str, ...]) -> tuple[int, ...]:
    """Return the category of each label: COCO's numbers for COCO's labels, else from 1."""
    return COCO80_IDS if labels == COCO80 else tuple(range(1, len(labels) + 1))


def _coco_annotations(
    found: Detections, labels: tuple[str, ...], image_id: int
) -> list[dict[str, object]]:
    """Return entries of a COCO results file; they also serve as annotations."""
    found = best_first(found)
    ids = coco_ids(labels)
    rows = zip(
        found.labels.tolist(), _rounded(found.scores, 3), _rounded(found.xywh(), 1), strict=True
    )
    entries: list[dict[str, object]] = [
        {
            "id": number,
            "image_id": image_id,
            "category_id": ids[label],
            "bbox": box,
            "area": round(box[2] * box[3], 2),
            "iscrowd": 0,
            "score": score,
        }
        for number, (label, score, box) in enumerate(rows, 1)
    ]
    return with_tracks(entries, found)


def _predictions(found: Detections, labels: tuple[str, ...]) -> list[dict[str, object]]:
    """Return predictions as Roboflow's inference returns them, with centred boxes."""
    found = best_first(found)
    boxes = found.xywh()
    boxes[:, :2] += boxes[:, 2:] / 2
    rows = zip(found.labels.tolist(), _rounded(found.scores, 3), _rounded(boxes, 2), strict=True)
    entries: list[dict[str, object]] = [
        {
            "x": x,
            "y": y,
            "width": width,
            "height": height,
            "confidence": score,
            "class": labels[label],
            "class_id": label,
        }
        for label, score, (x, y, width, height) in rows
    ]
    if found.tracks is None:
        return entries
    # The name that supervision reads.
    return [
        {**entry, "tracker_id": track}
        for entry, track in zip(entries, track_ids(found), strict=True)
    ]


def _rounded(values: NDArray[np.float32], digits: int) -> list[Any]:
    # In float64: a float32 would be written with spurious digits.
    rounded: list[Any] = np.round(values.astype(np.float64), digits).tolist()
    return rounded
