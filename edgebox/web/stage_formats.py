"""Adds what the later stages of a pipeline say to detections in the result formats."""

from collections.abc import Sequence
from typing import Any

from edgebox.runtime.stage_documents import StagedObjects
from edgebox.web.result_formats import ResultFormat

_OBJECTS = {"native": "detections", "coco": "annotations", "supervision": "predictions"}


def add_stages(
    document: dict[str, Any],
    result_format: ResultFormat,
    rows: Sequence[int],
    staged: StagedObjects,
) -> None:
    """Add what stages say to a document of `result_formats.in_format`.

    Every object gets its `stages`. In COCO's format it gets `attributes` too, its labels by name,
    as annotation tools have them. In supervision's the document gets `data`: a list for each
    attribute, with one label for each prediction, empty where there is none.

    Args:
        document: with the detections of an answer, best first.
        result_format: its format.
        rows: the rows in the answer of these detections, in the same order.
        staged: what the stages say, by these rows.
    """
    if not staged.documents:
        return
    objects = document[_OBJECTS[result_format]]
    for row, one in zip(rows, objects, strict=True):
        if result_format == "coco":
            one["attributes"] = _labels(staged, row)
        if row in staged.documents:
            one["stages"] = staged.documents[row]
    if result_format == "supervision":
        found = [_labels(staged, row) for row in rows]
        names = dict.fromkeys(name for labels in found for name in labels)
        document["data"] = {name: [of.get(name, "") for of in found] for name in names}


def _labels(staged: StagedObjects, row: int) -> dict[str, str]:
    return {name: of["label"] for name, of in staged.attributes.get(row, {}).items()}
