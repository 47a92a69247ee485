"""A cross-check: evaluates the same pictures with COCO's own tool, where it is installed.

Limits: pycocotools is an extra; edgebox's own figures never depend on it.
"""

import contextlib
import io
from collections.abc import Sequence
from typing import Any

from edgebox.vision.average_precision import ImageTruth, box_areas
from edgebox.vision.detections import Detections

FIGURES = ("mAP", "mAP50", "mAP75", "small", "medium", "large")
"""The first of the tool's, in its order."""


def installed() -> bool:
    """Return whether the tool is there."""
    try:
        import pycocotools.cocoeval  # noqa: F401, PLC0415 - only to see whether it is there
    except ImportError:
        return False
    return True


def coco_figures(
    truths: Sequence[ImageTruth], found: Sequence[Detections], classes: int
) -> dict[str, float | None]:
    """Return the tool's figures by `FIGURES`; None where the truth has no objects.

    Args:
        truths, found: one entry per picture.
        classes: number of labels.

    Raises:
        ImportError: it is not installed.
    """
    from pycocotools.coco import COCO  # noqa: PLC0415 - an extra
    from pycocotools.cocoeval import COCOeval  # noqa: PLC0415

    results = [row for number, seen in enumerate(found, 1) for row in _results(number, seen)]
    with contextlib.redirect_stdout(io.StringIO()):
        tool = COCO()
        tool.dataset = _document(truths, classes)
        tool.createIndex()
        evaluator = COCOeval(tool, tool.loadRes(results) if results else _nothing(tool), "bbox")
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
    values = [float(value) for value in evaluator.stats[: len(FIGURES)]]
    return {name: None if value < 0 else value for name, value in zip(FIGURES, values, strict=True)}


def _nothing(tool: Any) -> Any:
    """Return empty results: the tool reads no empty list."""
    empty = type(tool)()
    empty.dataset = {**tool.dataset, "annotations": []}
    empty.createIndex()
    return empty


def _document(truths: Sequence[ImageTruth], classes: int) -> dict[str, Any]:
    """Return the truth as a COCO file holds it; ids begin at 1, since the tool takes 0 for none."""
    annotations: list[dict[str, Any]] = []
    for number, truth in enumerate(truths, 1):
        areas = box_areas(truth.boxes) if truth.areas is None else truth.areas
        rows = zip(truth.boxes, truth.labels, truth.crowd, areas, strict=True)
        for (left, top, right, bottom), label, crowd, area in rows:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": int(label) + 1,
                    "bbox": [float(left), float(top), float(right - left), float(bottom - top)],
                    "area": float(area),
                    "iscrowd": int(crowd),
                }
            )
    return {
        "images": [{"id": number} for number in range(1, len(truths) + 1)],
        "categories": [{"id": label + 1, "name": str(label)} for label in range(classes)],
        "annotations": annotations,
    }


def _results(number: int, seen: Detections) -> list[dict[str, Any]]:
    rows = zip(seen.xywh().tolist(), seen.scores.tolist(), seen.labels.tolist(), strict=True)
    return [
        {"image_id": number, "category_id": label + 1, "bbox": box, "score": score}
        for box, score, label in rows
    ]
