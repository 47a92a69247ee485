"""Decides how a layout is decoded inside the graph: ONNX operators from raw outputs to detections.

Its outputs are small and of fixed size: the best boxes (b, k, 4) xyxy input px, their scores (b,
k) and labels (b, k), so that little is copied from a device or computed in Python. Rows are
ranked before their boxes are decoded, so the costly part works on the best ones alone.
"""

from dataclasses import dataclass

import numpy as np

from edgebox.inference.importing.layouts import Head, Part
from edgebox.inference.importing.operators import FLOAT, INT64, Operators
from edgebox.inference.importing.reading import (
    CANDIDATES_MAX,
    CLASSES_SHOWN,
    FOUND_MAX,
    SCORE_MIN,
    Decoding,
    cells_of,
)

_REACH = (-2.0, 3.0)
"""Multiple of the longer side to which coordinates are limited when boxes are compared."""
_APART = 6.0
"""Times the longer side: how far the boxes of one class are moved from those of the next. More than
the reach, or classes would meet; not much more, or float32 would round small boxes."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The known properties of the input."""

    pictures: str
    """The input (b, h, w, 3)."""
    fixed_px: tuple[int, int] | None
    """Width and height where they never change."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Numbers of rows of the outputs, where they are constant."""

    count: int | None
    strides: tuple[int, ...] | None


class HeadWriter:
    """Writes one head's operators."""

    def __init__(
        self, ops: Operators, decoding: Decoding, outputs: list[str], canvas: Canvas, rows: Rows
    ) -> None:
        """Start from the names of the raw outputs, in the head's order."""
        self._ops = ops
        self._decoding = decoding
        self._head: Head = decoding.head
        self._outputs = [ops.cast(output, FLOAT) for output in outputs]
        self._canvas = canvas
        self._rows = rows

    def write(self) -> tuple[str, str, str]:
        """Return the names of boxes, scores and labels."""
        if self._head.box_form == "whole picture":
            return self._whole_picture()
        if self._head.pick == "given":
            boxes, scores, labels = self._given()
        else:
            boxes, scores, labels = self._scored()
        if self._head.nms_iou is not None:
            boxes, scores, labels = self._without_overlaps(boxes, scores, labels)
        return boxes, scores, labels

    # -- which rows ---------------------------------------------------------------------------

    def _most(self, values: str, most: int) -> str:
        """Return how many of the last axis are kept: all, where there are fewer."""
        if self._rows.count is not None:
            return self._ops.ints(min(most, self._rows.count))
        last = self._ops.slice(self._ops.add("Shape", values), 0, -1, None)
        return self._ops.at_most(last, most)

    def _candidates(self) -> int:
        return FOUND_MAX if self._head.nms_iou is None else CANDIDATES_MAX

    def _part(self, part: Part) -> tuple[str, int]:
        """Return a part (b, rows, columns), or (b, columns, rows), and its axis of rows."""
        axis = 2 if self._head.outputs[part.output].columns_first else 1
        value = self._outputs[part.output]
        if part.start == 0 and part.stop is None:
            return value, axis
        return self._ops.slice(value, 3 - axis, part.start, part.stop), axis

    def _scored(self) -> tuple[str, str, str]:
        ops, head, decoding = self._ops, self._head, self._decoding
        assert head.boxes is not None
        scores, axis = self._part(head.scores)
        if head.activation == "softmax":
            scores = ops.add("Softmax", scores, axis=2)
        columns = decoding.kept_columns
        if columns != tuple(range(decoding.classes or 0)):
            scores = ops.add("Gather", scores, ops.ints(*columns), axis=3 - axis)
        if head.pick == "every":
            flat = ops.reshape(scores, 0, -1)
            best, places = ops.best(flat, self._most_flat(flat, len(columns)))
            labels = ops.add("Mod", places, ops.ints(len(columns)))
            places = ops.add("Div", places, ops.ints(len(columns)))
        else:
            of_row = ops.largest(scores, 3 - axis)
            if head.objectness is not None:
                objectness, _ = self._part(head.objectness)
                factors = (ops.squeeze(objectness, 3 - axis), of_row)
                of_row = ops.add("Mul", *map(self._power, factors, head.exponents))
            best, places = ops.best(of_row, self._most(of_row, self._candidates()))
            kept = ops.rows(scores, places, axis, len(columns))
            labels = ops.add("ArgMax", kept, axis=2, keepdims=0)
        if head.activation == "sigmoid":
            best = ops.add("Sigmoid", best)
        boxes, axis = self._part(head.boxes)
        width = 4 * max(1, head.bins)
        return self._corners(ops.rows(boxes, places, axis, width), places), best, labels

    def _power(self, value: str, exponent: float) -> str:
        return value if exponent == 1.0 else self._ops.add("Pow", value, self._ops.floats(exponent))

    def _most_flat(self, flat: str, columns: int) -> str:
        if self._rows.count is not None:
            return self._ops.ints(min(self._candidates(), self._rows.count * columns))
        return self._ops.at_most(self._ops.length(flat, 1), self._candidates())

    def _given(self) -> tuple[str, str, str]:
        ops, head = self._ops, self._head
        assert head.boxes is not None
        assert head.labels is not None
        if head.pictures is not None:
            boxes, scores, labels = self._rows_by_picture(head.boxes, head.labels, head.pictures)
        else:
            boxes, _ = self._part(head.boxes)
            scores, labels = self._lone(head.scores), self._lone(head.labels)
        whole = ops.cast(ops.add("Round", labels), INT64)
        known = ops.add("Less", whole, ops.ints(self._decoding.labels))
        known = ops.add("And", known, ops.add("Less", ops.ints(-1), whole))
        if head.count is not None:
            places = ops.add(
                "Range",
                ops.constant(0, np.int64),
                ops.squeeze(ops.length(scores, 1), 0),
                ops.constant(1, np.int64),
            )
            count = ops.cast(ops.reshape(self._outputs[head.count.output], -1, 1), INT64)
            known = ops.add("And", known, ops.add("Less", places, count))
        scores = ops.add("Where", known, scores, ops.floats(0.0))
        best, places = ops.best(scores, self._most(scores, FOUND_MAX))
        labels = ops.add("GatherElements", whole, places, axis=1)
        return self._corners(ops.rows(boxes, places, 1, 4), places), best, labels

    def _lone(self, part: Part) -> str:
        """Return a part that is one number per row, as (b, rows)."""
        if len(self._head.outputs[part.output].axes) == 2:
            return self._outputs[part.output]
        value, axis = self._part(part)
        return self._ops.squeeze(value, 3 - axis)

    def _rows_by_picture(self, boxes: Part, labels: Part, pictures: Part) -> tuple[str, str, str]:
        """Give every picture all rows of the batch; other pictures' rows score 0."""
        ops = self._ops
        rows = self._outputs[0]
        # Rows of no picture fill a list that is too short for the best ones.
        nothing = np.zeros((FOUND_MAX, 7), np.float32)
        nothing[:, pictures.start] = -1.0
        rows = ops.concat(0, rows, ops.floats(nothing))
        batch = ops.length(self._canvas.pictures, 0)
        numbers = ops.add(
            "Range", ops.constant(0, np.int64), ops.squeeze(batch, 0), ops.constant(1, np.int64)
        )
        owner = ops.cast(
            ops.reshape(ops.slice(rows, 1, pictures.start, pictures.stop), 1, -1), INT64
        )
        mine = ops.add("Equal", owner, ops.reshape(numbers, -1, 1))
        start, stop = self._head.scores.start, self._head.scores.stop
        scores = ops.reshape(ops.slice(rows, 1, start, stop), 1, -1)
        scores = ops.add("Where", mine, scores, ops.floats(0.0))
        number = ops.reshape(ops.slice(rows, 1, labels.start, labels.stop), 1, -1)
        number = ops.expand(number, ops.add("Shape", scores))
        corners = ops.unsqueeze(ops.slice(rows, 1, boxes.start, boxes.stop), 0)
        corners = ops.expand(corners, ops.concat(0, batch, ops.ints(1, 1)))
        return corners, scores, number

    # -- where they are -----------------------------------------------------------------------

    def _sides(self) -> str:
        """Return width, height, width, height of the input as floats (4,)."""
        ops = self._ops
        if self._canvas.fixed_px is not None:
            return ops.floats(self._canvas.fixed_px * 2)
        shape = ops.add("Shape", self._canvas.pictures)
        return ops.cast(ops.add("Gather", shape, ops.ints(2, 1, 2, 1), axis=0), FLOAT)

    def _halves(self) -> str:
        """Return half the width and height of the input as floats (2,)."""
        return self._ops.add("Mul", self._ops.slice(self._sides(), 0, 0, 2), self._ops.floats(0.5))

    def _corners(self, values: str, places: str) -> str:
        """Return boxes (b, k, 4) xyxy in input px."""
        ops, head = self._ops, self._head
        if head.box_form == "grid":
            cells, strides = self._cells(places)
            centres = ops.add("Mul", ops.add("Add", ops.slice(values, 2, 0, 2), cells), strides)
            # exp(20) px is beyond any picture.
            logs = ops.add("Clip", ops.slice(values, 2, 2, 4), "", ops.floats(20.0))
            halves = ops.add("Mul", ops.add("Exp", logs), strides)
            return self._around(centres, ops.add("Mul", halves, ops.floats(0.5)))
        if head.box_form == "squashed":
            cells, strides = self._cells(places)
            offsets = ops.add("Tanh", ops.slice(values, 2, 0, 2))
            centres = ops.add("Mul", ops.add("Add", offsets, cells), strides)
            halves = ops.add("Mul", ops.add("Sigmoid", ops.slice(values, 2, 2, 4)), self._halves())
            return self._around(centres, halves)
        if head.box_form == "bins":
            return self._from_bins(values, places)
        if head.relative:
            values = ops.add("Mul", values, self._sides())
        if head.box_form == "cxcywh":
            halves = ops.add("Mul", ops.slice(values, 2, 2, 4), ops.floats(0.5))
            return self._around(ops.slice(values, 2, 0, 2), halves)
        return values

    def _around(self, centres: str, halves: str) -> str:
        ops = self._ops
        low, high = ops.add("Sub", centres, halves), ops.add("Add", centres, halves)
        return ops.concat(2, low, high)

    def _from_bins(self, values: str, places: str) -> str:
        ops, bins = self._ops, self._head.bins
        cells, strides = self._cells(places)
        shares = ops.add("Softmax", ops.reshape(values, 0, -1, 4, bins), axis=3)
        expected = ops.add("MatMul", shares, ops.floats(np.arange(bins)[:, None]))
        distances = ops.add("Mul", ops.reshape(expected, 0, -1, 4), strides)
        centres = ops.add("Mul", ops.add("Add", cells, ops.floats(self._head.offset)), strides)
        low = ops.add("Sub", centres, ops.slice(distances, 2, 0, 2))
        return ops.concat(2, low, ops.add("Add", centres, ops.slice(distances, 2, 2, 4)))

    def _cells(self, places: str) -> tuple[str, str]:
        """Return column and row (b, k, 2) and stride (b, k, 1) of the rows' cells."""
        ops = self._ops
        strides = self._rows.strides or self._head.strides[0]
        if self._canvas.fixed_px is not None:
            table = ops.floats(cells_of(strides, *self._canvas.fixed_px))
        else:
            table = ops.concat(0, *(self._grid(stride) for stride in strides))
        of_rows = ops.add("Gather", table, places, axis=0)
        return ops.slice(of_rows, 2, 0, 2), ops.slice(of_rows, 2, 2, 3)

    def _grid(self, stride: int) -> str:
        """Return column, row and stride of one grid's cells (cells, 3), from the input's size."""
        ops = self._ops
        shape = ops.add("Shape", self._canvas.pictures)
        zero, one = ops.constant(0, np.int64), ops.constant(1, np.int64)
        counts, ramps = [], []
        for axis, dims in ((1, (-1, 1, 1)), (2, (1, -1, 1))):
            side = ops.add("Add", ops.slice(shape, 0, axis, axis + 1), ops.ints(stride - 1))
            counts.append(ops.add("Div", side, ops.ints(stride)))
            ramp = ops.add("Range", zero, ops.squeeze(counts[-1], 0), one)
            ramps.append(ops.reshape(ops.cast(ramp, FLOAT), *dims))
        size = ops.concat(0, *counts, ops.ints(1))
        rows, columns = (ops.expand(ramp, size) for ramp in ramps)
        strides = ops.expand(ops.floats([[[stride]]]), size)
        return ops.reshape(ops.concat(2, columns, rows, strides), -1, 3)

    # -- which of them stay -------------------------------------------------------------------

    def _without_overlaps(self, boxes: str, scores: str, labels: str) -> tuple[str, str, str]:
        """Remove the lesser of overlapping boxes, class by class, and keep the best.

        Each class is shifted to a place of its own, so that one pass handles all classes.
        """
        ops = self._ops
        longest = ops.largest(self._sides(), 0)
        low, high = (ops.add("Mul", longest, ops.floats(times)) for times in _REACH)
        step = ops.add("Mul", longest, ops.floats(_APART))
        shift = ops.add("Mul", ops.unsqueeze(ops.cast(labels, FLOAT), 2), step)
        shifted = ops.add("Add", ops.add("Clip", boxes, low, high), shift)
        kept = ops.add(
            "NonMaxSuppression",
            shifted,
            ops.unsqueeze(scores, 1),
            ops.ints(FOUND_MAX),
            ops.floats([self._head.nms_iou or 0.0]),
            ops.floats([SCORE_MIN]),
        )
        where = ops.add("Gather", kept, ops.ints(0, 2), axis=1)
        ones = ops.filled(ops.length(kept, 0), 1.0, np.float32)
        none = ops.filled(ops.add("Shape", scores), 0.0, np.float32)
        scores = ops.add("Mul", scores, ops.add("ScatterND", none, where, ones))
        best, places = ops.best(scores, self._most(scores, FOUND_MAX))
        labels = ops.add("GatherElements", labels, places, axis=1)
        return ops.rows(boxes, places, 1, 4), best, labels

    def _whole_picture(self) -> tuple[str, str, str]:
        ops, columns = self._ops, self._decoding.kept_columns
        scores = self._outputs[0]
        if self._head.activation == "softmax":
            scores = ops.add("Softmax", scores, axis=1)
        if columns != tuple(range(self._decoding.classes or 0)):
            scores = ops.add("Gather", scores, ops.ints(*columns), axis=1)
        best, labels = ops.best(scores, ops.ints(min(CLASSES_SHOWN, len(columns))))
        sides = ops.add("Mul", self._sides(), ops.floats([0.0, 0.0, 1.0, 1.0]))
        dims = ops.concat(0, ops.add("Shape", best), ops.ints(4))
        return ops.expand(sides, dims), best, labels
