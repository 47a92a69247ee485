"""Every layout as a tiny model with planted objects, and the scores they must be found with."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import atanh, exp, log

import numpy as np

from edgebox.inference.importing.layouts import Layout, layout_named
from tests.inference.importing.planted import (
    CLASSES,
    LESSER,
    OBJECTS,
    Array,
    Planted,
    Raw,
    Tiny,
    centre_form,
    dense_rows,
    logit,
    relative,
    sigmoid,
)

Scored = Callable[[float, float], float]
"""The final score of an object, from its planted score and the picture's own number."""

QUERIES = 20
WITH_LESSER = (*OBJECTS, LESSER)


def added(score: float, own: float) -> float:
    """Scores that are read as they are."""
    return score + own


def through_sigmoid(score: float, own: float) -> float:
    """Scores that are logits."""
    return sigmoid(logit(score) + own)


def against_nothing(score: float, own: float) -> float:
    """Scores that compete with a background."""
    return exp(log(score) + own) / (exp(log(score) + own) + 1.0 - score)


def layout(name: str) -> Layout:
    """Return a row of the table."""
    found = layout_named(name)
    assert found is not None
    return found


def _darknet(name: str, anchors: int, kind: str, objectness: float = 0.9) -> Tiny:
    """Rows of box, objectness, classes; the score is planted into the class."""
    values, rows, at = dense_rows(WITH_LESSER, (8, 16, 32), anchors, 5 + CLASSES)
    follows = np.zeros_like(values)
    for row, (x, y, stride) in enumerate(rows):
        centre = ((x + 0.5) * stride, (y + 0.5) * stride)
        values[row, :4] = (0.5, 0.5, 0, 0) if kind == "grid" else (*centre, stride, stride)
    if objectness == 1.0:
        values[:, 4] = 1.0
    for each, row in zip(WITH_LESSER, at, strict=True):
        cx, cy, w, h = centre_form(each.box)
        x, y, stride = rows[row]
        if kind == "grid":
            values[row, :4] = (cx / stride - x, cy / stride - y, log(w / stride), log(h / stride))
        else:
            values[row, :4] = (cx, cy, w, h)
        values[row, 4] = objectness
        values[row, 5 + each.label] = each.score / objectness
        follows[row, 5 + each.label] = 1.0 / objectness
    return Tiny([Raw("output", values, follows)], layout(name).preprocessing)


def _yolov8() -> Tiny:
    values, rows, at = dense_rows(WITH_LESSER, (8, 16, 32), 1, 4 + CLASSES)
    follows = np.zeros_like(values)
    for row, (x, y, stride) in enumerate(rows):
        values[row, :4] = ((x + 0.5) * stride, (y + 0.5) * stride, stride, stride)
    for each, row in zip(WITH_LESSER, at, strict=True):
        values[row, :4] = centre_form(each.box)
        values[row, 4 + each.label] = each.score
        follows[row, 4 + each.label] = 1.0
    return Tiny([Raw("output0", values.T.copy(), follows.T.copy())], layout("yolov8").preprocessing)


def _nanodet(name: str, strides: Sequence[int], bins: int, offset: float) -> Tiny:
    values, rows, at = dense_rows(WITH_LESSER, strides, 1, CLASSES + 4 * bins)
    follows = np.zeros_like(values)
    noise = np.random.default_rng(1).normal(0.0, 2.0, (len(rows), 4 * bins))
    values[:, CLASSES:] = noise
    for each, row in zip(WITH_LESSER, at, strict=True):
        x, y, stride = rows[row]
        cx, cy = (x + offset) * stride, (y + offset) * stride
        sides = (cx - each.box[0], cy - each.box[1], each.box[2] - cx, each.box[3] - cy)
        for side, distance in enumerate(sides):
            low, share = divmod(distance / stride, 1.0)
            logits = np.full(bins, -40.0)
            logits[int(low)] = log(max(1.0 - share, 1e-12))
            logits[int(low) + 1] = log(max(share, 1e-12))
            start = CLASSES + side * bins
            values[row, start : start + bins] = logits
        values[row, each.label] = each.score
        follows[row, each.label] = 1.0
    return Tiny([Raw("output", values, follows)], layout(name).preprocessing)


def _apart_by_grid(name: str, strides: Sequence[int]) -> Tiny:
    """Scores and distributions apart, a tensor for each stride, as split heads give them."""
    whole = _nanodet("nanodet", strides, 8, 0.5).outputs[0]
    assert whole.follows is not None
    counts = [(-(-64 // stride)) * (-(-96 // stride)) for stride in strides]
    ends = np.cumsum([0, *counts])
    outputs: list[Raw] = []
    for columns in (slice(0, CLASSES), slice(CLASSES, None)):
        for start, stop in pairwise(ends):
            values = whole.values[start:stop, columns].copy()
            follows = whole.follows[start:stop, columns].copy()
            outputs.append(Raw(f"any_{len(outputs)}", values, follows if follows.any() else None))
    return Tiny(outputs, layout(name).preprocessing)


def _fastestdet() -> Tiny:
    """A map of the cells of stride 16: objectness, squashed boxes, classes."""
    values, rows, _ = dense_rows((), (16,), 1, 5 + CLASSES)
    follows = np.zeros_like(values)
    values[:, 1:3], values[:, 3:5] = 0.0, -3.0
    taken: set[int] = set()
    for each in WITH_LESSER:
        cx, cy, w, h = centre_form(each.box)
        # A centre lies less than one cell away from the corner of its own.
        row = next(
            at
            for at, (x, y, stride) in enumerate(rows)
            if at not in taken and max(abs(cx / stride - x), abs(cy / stride - y)) < 1.0
        )
        taken.add(row)
        x, y, stride = rows[row]
        values[row, 0] = 0.9
        values[row, 1:3] = atanh(cx / stride - x), atanh(cy / stride - y)
        values[row, 3:5] = logit(w / 96), logit(h / 64)
        values[row, 5 + each.label] = each.score
        follows[row, 5 + each.label] = 1.0
    values, follows = (array.T.reshape(-1, 4, 6).copy() for array in (values, follows))
    return Tiny([Raw("any", values, follows)], layout("fastestdet").preprocessing)


def weighed(score: float, own: float) -> float:
    """FastestDet's product of an objectness of 0.9 and a class's score."""
    return float(0.9**0.6 * (score + own) ** 0.4)


def _listed(
    columns: int, box: int, label: int, score: int, rows: int = QUERIES
) -> tuple[Array, Array]:
    """Rows of a box in px, a label and a score, at the columns named."""
    values = np.zeros((rows, columns), np.float32)
    follows = np.zeros_like(values)
    for row, each in enumerate(OBJECTS):
        values[row, box : box + 4] = each.box
        if label >= 0:
            values[row, label] = each.label
        values[row, score] = each.score
        follows[row, score] = 1.0
    return values, follows


def _columns_apart(extra: Sequence[Planted] = ()) -> tuple[Array, Array, Array, Array]:
    """Boxes, scores, labels and where scores follow the picture."""
    boxes = np.zeros((QUERIES, 4), np.float32)
    scores = np.zeros(QUERIES, np.float32)
    labels = np.zeros(QUERIES, np.int64)
    follows = np.zeros(QUERIES, np.float32)
    for row, each in enumerate((*OBJECTS, *extra)):
        boxes[row], scores[row], labels[row], follows[row] = each.box, each.score, each.label, 1.0
    return boxes, scores, labels, follows


def _counted() -> Tiny:
    # What comes after the count is left over from another picture.
    boxes, scores, labels, follows = _columns_apart([Planted((1, 1, 20, 20), 0, 0.9)])
    follows[len(OBJECTS) :] = 0.0
    count = np.array([len(OBJECTS)], np.int64)
    return Tiny(
        [
            Raw("num_dets", count),
            Raw("det_boxes", boxes),
            Raw("det_scores", scores, follows),
            Raw("det_classes", labels),
        ],
        layout("nms_counted").preprocessing,
    )


def _three_outputs() -> Tiny:
    boxes, scores, labels, follows = _columns_apart()
    return Tiny(
        [Raw("boxes", boxes), Raw("scores", scores, follows), Raw("labels", labels)],
        layout("boxes_scores_labels").preprocessing,
    )


def _told_sizes(name: str) -> Tiny:
    boxes, scores, labels, follows = _columns_apart()
    shares = boxes / np.array([96, 64, 96, 64], np.float32)
    return Tiny(
        [
            Raw("labels", labels),
            Raw("boxes", shares, shares_of_sizes=True),
            Raw("scores", scores, follows),
        ],
        layout(name).preprocessing,
        sizes=True,
    )


def _rtdetr_ultralytics() -> Tiny:
    values = np.full((QUERIES, 4 + CLASSES), 0.01, np.float32)
    follows = np.zeros_like(values)
    for row, each in enumerate(OBJECTS):
        values[row, :4] = centre_form(relative(each.box))
        values[row, 4 + each.label] = each.score
        follows[row, 4 + each.label] = 1.0
    return Tiny([Raw("output0", values, follows)], layout("rtdetr_ultralytics").preprocessing)


def _logits(classes: int, background: bool) -> tuple[Array, Array, Array]:
    """Logits, where they follow the picture, and boxes as shares."""
    values = np.full((QUERIES, classes + background), -30.0 if background else -8.0, np.float32)
    follows = np.zeros_like(values)
    boxes = np.full((QUERIES, 4), 0.5, np.float32)
    if background:
        values[:, -1] = 10.0
    for row, each in enumerate(OBJECTS):
        boxes[row] = centre_form(relative(each.box))
        values[row, each.label] = log(each.score) if background else logit(each.score)
        follows[row, each.label] = 1.0
        if background:
            values[row, -1] = log(1.0 - each.score)
    return values, follows, boxes


def _hugging_face(name: str, background: bool, mask: bool) -> Tiny:
    values, follows, boxes = _logits(CLASSES, background)
    outputs = [Raw("logits", values, follows), Raw("pred_boxes", boxes)]
    return Tiny(outputs, layout(name).preprocessing, mask=mask)


def _rfdetr() -> Tiny:
    values, follows, boxes = _logits(CLASSES, False)
    outputs = [Raw("dets", boxes), Raw("labels", values, follows)]
    return Tiny(outputs, layout("rfdetr").preprocessing)


def _mmdeploy() -> Tiny:
    values, follows = _listed(5, 0, -1, 4)
    labels = np.zeros(QUERIES, np.int64)
    labels[: len(OBJECTS)] = [each.label for each in OBJECTS]
    outputs = [Raw("dets", values, follows), Raw("labels", labels)]
    return Tiny(outputs, layout("nms_mmdeploy").preprocessing)


def _end_to_end() -> Tiny:
    values, follows = _listed(6, 0, 5, 4)
    return Tiny([Raw("output0", values, follows)], layout("end_to_end").preprocessing)


def _nms_rows() -> Tiny:
    values, follows = _listed(7, 1, 5, 6, rows=len(OBJECTS))
    raw = Raw("output", values, follows, picture_column=True)
    return Tiny([raw], layout("nms_rows").preprocessing)


DETECTORS: dict[str, tuple[Callable[[], Tiny], Scored]] = {
    "yolov5": (lambda: _darknet("yolov5", 3, "px"), added),
    "yolov6": (lambda: _darknet("yolov6", 1, "px", 1.0), added),
    "yolox": (lambda: _darknet("yolox", 1, "grid"), added),
    "yolox_decoded": (lambda: _darknet("yolox_decoded", 1, "px"), added),
    "yolov8": (_yolov8, added),
    "end_to_end": (_end_to_end, added),
    "nms_rows": (_nms_rows, added),
    "nms_counted": (_counted, added),
    "nms_mmdeploy": (_mmdeploy, added),
    "rtdetr": (lambda: _told_sizes("rtdetr"), added),
    "rtdetr_imagenet": (lambda: _told_sizes("rtdetr_imagenet"), added),
    "boxes_scores_labels": (_three_outputs, added),
    "rtdetr_ultralytics": (_rtdetr_ultralytics, added),
    "hf_detr": (lambda: _hugging_face("hf_detr", True, True), against_nothing),
    "hf_rtdetr": (lambda: _hugging_face("hf_rtdetr", False, False), through_sigmoid),
    "hf_deformable": (lambda: _hugging_face("hf_deformable", False, True), through_sigmoid),
    "rfdetr": (_rfdetr, through_sigmoid),
    "nanodet_plus": (lambda: _nanodet("nanodet_plus", (8, 16, 32, 64), 8, 0.0), added),
    "nanodet": (lambda: _nanodet("nanodet", (8, 16, 32), 8, 0.5), added),
    "nanodet_g": (lambda: _nanodet("nanodet_g", (8, 16, 32), 11, 0.5), added),
    "nanodet_split": (lambda: _apart_by_grid("nanodet_split", (8, 16, 32)), added),
    "picodet": (lambda: _apart_by_grid("picodet", (8, 16, 32, 64)), added),
    "fastestdet": (_fastestdet, weighed),
}
"""By layout: a model of it, and what becomes of the planted scores."""
