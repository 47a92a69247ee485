"""Decodes a model's outputs in numpy: the reference for the graphs of `writing.py`.

Pure. Written for clarity, not speed: it runs at import only, never on a frame.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.inference.importing.layouts import Head, Part
from edgebox.vision.decoding import embedding_decoder
from edgebox.vision.detections import Detections
from edgebox.vision.nms import class_aware_nms

Floats = NDArray[np.float64]

FOUND_MAX = 300
"""Detections a picture can have."""
CANDIDATES_MAX = 1000
"""Boxes that overlap removal considers, the best first."""
CLASSES_SHOWN = 5
"""Answers of a classifier."""
SCORE_MIN = 0.001
"""Score below which a box or a class is ignored, and its overlaps are not computed."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """A head with the details that only this file has."""

    head: Head
    classes: int | None
    """Columns of scores; None: rows come with their label."""
    labels: int
    """How many label names there are."""
    columns: tuple[int, ...] | None = None
    """The columns of scores that are labels, in the labels' order; None: the first ones."""

    @property
    def kept_columns(self) -> tuple[int, ...]:
        """The columns of scores that are labels."""
        return self.columns or tuple(range(self.labels))


def cells_of(strides: Sequence[int], width_px: int, height_px: int) -> Floats:
    """Return column, row and stride of every cell (a, 3), grid by grid, row by row."""
    grids = []
    for stride in strides:
        rows, columns = -(-height_px // stride), -(-width_px // stride)
        y, x = np.mgrid[0:rows, 0:columns]
        grids.append(np.stack((x.ravel(), y.ravel(), np.full(x.size, stride)), axis=1))
    return np.concatenate(grids).astype(np.float64)


def strides_of(head: Head, rows: int, width_px: int, height_px: int) -> tuple[int, ...] | None:
    """Return the grids with this number of rows; None: the head has none."""
    for strides in head.strides:
        if len(cells_of(strides, width_px, height_px)) * head.anchors == rows:
            return strides
    return None


def read(
    decoding: Decoding, outputs: Sequence[NDArray[Any]], width_px: int, height_px: int, batch: int
) -> list[Detections]:
    """Return what each picture of a batch shows, best first, in input px.

    Args:
        decoding: what the outputs mean.
        outputs: in the head's order.
        width_px: of the input.
        height_px: of the input.
        batch: pictures.
    """
    head = decoding.head
    if head.pictures is not None:
        rows = np.asarray(outputs[0], np.float64)
        owner = rows[:, head.pictures.start]
        return [
            _read_one(decoding, [rows[owner == at]], width_px, height_px) for at in range(batch)
        ]
    return [
        _read_one(decoding, [output[at] for output in outputs], width_px, height_px)
        for at in range(batch)
    ]


def part_of(head: Head, arrays: Sequence[NDArray[Any]], part: Part) -> Floats:
    """Return one picture's part as (rows, columns) or, for a lone number per row, (rows,)."""
    output = head.outputs[part.output]
    values = np.asarray(arrays[part.output], np.float64)
    if values.ndim < 2:
        return values
    if output.columns_first:
        values = values.T
    return values[:, part.start : part.stop]


def _read_one(
    decoding: Decoding, arrays: Sequence[NDArray[Any]], width_px: int, height_px: int
) -> Detections:
    head = decoding.head
    if head.box_form == "none":
        values = part_of(head, arrays, head.scores).reshape(1, -1)
        return embedding_decoder(values.shape[1])([values], width_px, height_px, SCORE_MIN)[0]
    scores = activated(head, part_of(head, arrays, head.scores))
    if head.box_form == "whole picture":
        return _whole_picture(decoding, scores, width_px, height_px)
    assert head.boxes is not None
    boxes = corners(head, part_of(head, arrays, head.boxes), width_px, height_px)
    if head.pick == "given":
        assert head.labels is not None
        labels = np.round(part_of(head, arrays, head.labels)).reshape(-1).astype(np.int64)
        scores = scores.reshape(-1)
        known = (labels >= 0) & (labels < decoding.labels)
        if head.count is not None:
            known &= np.arange(len(labels)) < int(part_of(head, arrays, head.count).reshape(-1)[0])
        rows = np.flatnonzero(known)
        labels, scores = labels[rows], scores[rows]
    else:
        scores = scores[:, list(decoding.kept_columns)]
        if head.objectness is not None:
            # Rounded as the model's numbers are, or what is equal there would have an order here.
            objectness = part_of(head, arrays, head.objectness)
            of_object, of_class = head.exponents
            factor = objectness.astype(np.float32) ** np.float32(of_object)
            scores = (scores.astype(np.float32) ** np.float32(of_class) * factor).astype(float)
        rows = np.arange(len(scores))
        if head.pick == "every":
            rows = np.repeat(rows, scores.shape[1])
            labels = np.tile(np.arange(scores.shape[1]), len(scores))
            scores = scores.reshape(-1)
        else:
            labels = scores.argmax(axis=1)
            scores = scores.max(axis=1)
    return _best(head, boxes[rows], scores, labels)


def _best(head: Head, boxes: Floats, scores: Floats, labels: NDArray[np.int64]) -> Detections:
    most = FOUND_MAX if head.nms_iou is None else CANDIDATES_MAX
    order = np.argsort(-scores, kind="stable")[:most]
    order = order[scores[order] > SCORE_MIN]
    found = Detections(
        boxes[order].astype(np.float32), scores[order].astype(np.float32), labels[order]
    )
    if head.nms_iou is None:
        return found
    kept = class_aware_nms(found.boxes, found.scores, found.labels, head.nms_iou, FOUND_MAX)
    return found.select(kept)


def activated(head: Head, values: Floats) -> Floats:
    """Return scores from 0 to 1; the background, if any, is left out."""
    if head.activation == "sigmoid":
        values = _sigmoid(values)
    if head.activation == "softmax":
        powers = np.exp(values - values.max(axis=-1, keepdims=True))
        values = powers / powers.sum(axis=-1, keepdims=True)
    return values[..., :-1] if head.background else values


def _sigmoid(values: Floats) -> Floats:
    shares: Floats = 1.0 / (1.0 + np.exp(-np.clip(values, -80.0, 80.0)))
    return shares


def corners(head: Head, values: Floats, width_px: int, height_px: int) -> Floats:
    """Return one picture's boxes (rows, 4) xyxy in input px."""
    if head.box_form in ("grid", "squashed", "bins"):
        strides = strides_of(head, len(values), width_px, height_px) or head.strides[0]
        cells = cells_of(strides, width_px, height_px)
        if head.box_form == "grid":
            return _from_grid(values, cells)
        if head.box_form == "squashed":
            return _from_squashed(values, cells, width_px, height_px)
        return _from_bins(values.reshape(len(values), 4, head.bins), cells, head.offset)
    if head.relative:
        values = values * np.array([width_px, height_px] * 2)
    if head.box_form == "cxcywh":
        halves = values[:, 2:] / 2.0
        return np.concatenate((values[:, :2] - halves, values[:, :2] + halves), axis=1)
    return values


def _from_grid(values: Floats, cells: Floats) -> Floats:
    centres = (values[:, :2] + cells[:, :2]) * cells[:, 2:]
    # exp(20) px is beyond any picture.
    halves = np.exp(np.minimum(values[:, 2:], 20.0)) * cells[:, 2:] / 2.0
    return np.concatenate((centres - halves, centres + halves), axis=1)


def _from_squashed(values: Floats, cells: Floats, width_px: int, height_px: int) -> Floats:
    centres = (cells[:, :2] + np.tanh(values[:, :2])) * cells[:, 2:]
    halves = _sigmoid(values[:, 2:]) * np.array([width_px, height_px]) / 2.0
    return np.concatenate((centres - halves, centres + halves), axis=1)


def _from_bins(values: Floats, cells: Floats, offset: float) -> Floats:
    powers = np.exp(values - values.max(axis=2, keepdims=True))
    shares = powers / powers.sum(axis=2, keepdims=True)
    distances = (shares * np.arange(values.shape[2])).sum(axis=2) * cells[:, 2:]
    centres = (cells[:, :2] + offset) * cells[:, 2:]
    return np.concatenate((centres - distances[:, :2], centres + distances[:, 2:]), axis=1)


def _whole_picture(decoding: Decoding, scores: Floats, width_px: int, height_px: int) -> Detections:
    scores = scores.reshape(-1)[list(decoding.kept_columns)]
    labels = np.argsort(-scores, kind="stable")[:CLASSES_SHOWN]
    labels = labels[scores[labels] > SCORE_MIN]
    boxes = np.tile(np.array([0, 0, width_px, height_px], np.float32), (len(labels), 1))
    return Detections(boxes, scores[labels].astype(np.float32), labels)
