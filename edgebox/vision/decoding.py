"""Decides the detections in a model's raw outputs: one decoder per output layout.

Pure: numpy only. Decoders never loop over anchors; they loop over the pictures of a batch.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.vision.detections import Detections
from edgebox.vision.nms import class_aware_nms

YOLOX_STRIDES_PX = (8, 16, 32)
YOLOX_NMS_IOU = 0.45
_NMS_CANDIDATES_MAX = 1000

Decoder = Callable[[Sequence[NDArray[Any]], int, int, float], list[Detections]]
"""`decode(outputs, width_px, height_px, score_min)`: one `Detections` per picture, in input px."""


_SCORE_MAX = 1.0001
"""A softmax or sigmoid in float32 may exceed 1 by its last digits."""


class DecodingError(ValueError):
    """A model's outputs do not have the shapes or values of the layout its manifest names."""


def decode_boxes_scores_labels(
    outputs: Sequence[NDArray[Any]], width_px: int, height_px: int, score_min: float
) -> list[Detections]:
    """Read models that decode in their own graph.

    Args:
        outputs: boxes (b, n, 4) xyxy input px, scores (b, n), labels (b, n).
        width_px: input width; boxes are clipped to it.
        height_px: input height.
        score_min: rows below it are left out.

    Raises:
        DecodingError: other shapes, a box or score that is not finite, or labels that are no
            whole numbers.
    """
    if len(outputs) != 3:
        raise DecodingError(f"expected 3 outputs (boxes, scores, labels), got {len(outputs)}")
    boxes, scores, labels = outputs
    if (
        boxes.ndim != 3
        or boxes.shape[2] != 4
        or not boxes.shape[:2] == scores.shape == labels.shape
    ):
        raise DecodingError(
            "expected boxes (b, n, 4), scores (b, n) and labels (b, n), got "
            f"{boxes.shape}, {scores.shape} and {labels.shape}"
        )
    return [
        Detections(
            _finite("boxes", boxes[row][keep].astype(np.float32, copy=False)),
            _finite("scores", scores[row][keep].astype(np.float32, copy=False)),
            _whole(labels[row][keep]),
        ).scaled(1.0, 1.0, width_px, height_px)
        for row, keep in enumerate(_likely(scores, score_min))
    ]


@lru_cache(maxsize=64)
def _yolox_grid(width_px: int, height_px: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return each anchor's cell (a, 2) as x, y and its stride (a, 1), strides in rising order."""
    cells, strides = [], []
    for stride in YOLOX_STRIDES_PX:
        y, x = np.mgrid[0 : height_px // stride, 0 : width_px // stride]
        cells.append(np.stack((x.ravel(), y.ravel()), axis=1).astype(np.float32))
        strides.append(np.full((x.size, 1), stride, np.float32))
    return np.concatenate(cells), np.concatenate(strides)


def decode_yolox(
    outputs: Sequence[NDArray[Any]], width_px: int, height_px: int, score_min: float
) -> list[Detections]:
    """Read YOLOX's undecoded head (Ge et al. 2021): strides 8, 16, 32, row-major, concatenated.

    A row is dx, dy, log w, log h, objectness and one score per class, the scores already through
    a sigmoid. The centre is (dx + cell x) * stride, the width exp(log w) * stride; the score is
    objectness times the best class's. Overlaps are removed per class (IoU above 0.45), on the
    best 1000 candidates at most so that a hostile picture cannot stall the executor.

    Args:
        outputs: one array (b, anchors, 5 + classes).
        width_px: input width.
        height_px: input height.
        score_min: rows below it are left out.

    Raises:
        DecodingError: other shapes, not the number of anchors that the input size has, or a box
            or score that is not finite.
    """
    cells, strides = _yolox_grid(width_px, height_px)
    if len(outputs) != 1 or outputs[0].ndim != 3 or outputs[0].shape[2] < 6:
        shapes = ", ".join(str(output.shape) for output in outputs)
        raise DecodingError(f"expected one output (b, anchors, 5 + classes), got {shapes}")
    if outputs[0].shape[1] != len(cells):
        raise DecodingError(
            f"{width_px} × {height_px} px has {len(cells)} anchors at strides "
            f"{YOLOX_STRIDES_PX}, but the output is {outputs[0].shape}"
        )
    return [
        _decode_yolox_rows(rows, cells, strides, score_min).scaled(1.0, 1.0, width_px, height_px)
        for rows in outputs[0]
    ]


def _decode_yolox_rows(
    rows: NDArray[np.float32],
    cells: NDArray[np.float32],
    strides: NDArray[np.float32],
    score_min: float,
) -> Detections:
    # No class scores above 1, so objectness already excludes most anchors.
    likely = np.flatnonzero(_likely(rows[:, 4], score_min))
    rows, cells, strides = rows[likely], cells[likely], strides[likely]
    labels = rows[:, 5:].argmax(axis=1)
    scores = rows[:, 4] * rows[np.arange(len(rows)), 5 + labels]
    kept = np.flatnonzero(_likely(scores, score_min))
    kept = kept[np.argsort(-scores[kept], kind="stable")][:_NMS_CANDIDATES_MAX]
    centres = (rows[kept, :2] + cells[kept]) * strides[kept]
    # exp(20) px is beyond any picture: the bound keeps a broken model from overflowing.
    halves = np.exp(np.minimum(rows[kept, 2:4], 20.0)) * strides[kept] / 2.0
    boxes = np.concatenate((centres - halves, centres + halves), axis=1)
    found = Detections(_finite("boxes", boxes), _finite("scores", scores[kept]), labels[kept])
    return found.select(class_aware_nms(found.boxes, found.scores, found.labels, YOLOX_NMS_IOU))


def _likely(scores: NDArray[Any], score_min: float) -> NDArray[np.bool_]:
    """Return which rows to read: a score that is no number is not below any, and is refused."""
    likely: NDArray[np.bool_] = ~(scores < score_min)
    return likely


def _finite(what: str, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return numbers of detections, before these are clipped.

    Raises:
        DecodingError: one is not finite.
    """
    if not np.isfinite(numbers).all():
        raise DecodingError(f"the model answered {what} that are no finite numbers")
    return numbers


def _whole(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return labels of any type of number.

    Raises:
        DecodingError: one is no whole number.
    """
    whole: NDArray[np.int64] = labels.astype(np.int64, copy=False)
    if not (whole == labels).all():
        raise DecodingError("the model answered labels that are no whole numbers")
    return whole


def insist_on(found: Detections, label_count: int) -> None:
    """Check what was found on pictures, by a model here or by another machine.

    Args:
        found: on one picture, or on several together.
        label_count: how many labels the family has.

    Raises:
        DecodingError: no reader of detections expects such labels, scores, boxes or embeddings.
    """
    labels, scores, embeddings = found.labels, found.scores, found.embeddings
    if not len(labels):
        return
    if not (labels.min() >= 0 and labels.max() < label_count):
        wrong = labels[(labels < 0) | (labels >= label_count)][0]
        raise DecodingError(
            f"the model answered label {wrong}, but there are {label_count} labels, "
            "counted from 0: the manifest must list all classes of the model in its order"
        )
    if not (scores.min() >= 0 and scores.max() <= _SCORE_MAX):
        raise DecodingError(
            f"the model answered scores from {scores.min():g} to {scores.max():g}: they "
            "must be from 0 to 1"
        )
    _finite("boxes", found.boxes)
    if embeddings is not None:
        _finite("embeddings", embeddings)


def checked(decode: Decoder, label_count: int) -> Decoder:
    """Return a decoder that insists on what readers of detections expect (`insist_on`).

    Args:
        decode: reads the outputs.
        label_count: how many labels the family has.
    """

    def decode_checked(
        outputs: Sequence[NDArray[Any]], width_px: int, height_px: int, score_min: float
    ) -> list[Detections]:
        # What overflows or is no number is refused, and needs no warning of numpy's in the log.
        with np.errstate(over="ignore", invalid="ignore"):
            pictures = decode(outputs, width_px, height_px, score_min)
        for found in pictures:
            insist_on(found, label_count)
        return pictures

    return decode_checked


def class_logits_decoder(lengths: Sequence[int]) -> Decoder:
    """Return the decoder of a classifier's logits, which are those of one attribute or several.

    It expects one output (b, c), the attributes' logits side by side. Scores are the softmax within
    each attribute. Rows are attribute after attribute, the best label first; of each attribute, the
    best label is a row whatever its score. Boxes are the whole picture.

    Args:
        lengths: how many labels each attribute has, in order.
    """

    def decode(
        outputs: Sequence[NDArray[Any]], width_px: int, height_px: int, score_min: float
    ) -> list[Detections]:
        logits = _only_output(outputs, "logits", sum(lengths))
        ends = np.cumsum(lengths)
        scores = np.concatenate(
            [_softmax(part) for part in np.split(logits, ends[:-1], axis=1)], axis=1
        )
        rows = []
        for row in scores:
            kept = [
                start + _best(row[start:end], score_min)
                for start, end in zip(ends - lengths, ends, strict=True)
            ]
            labels = np.concatenate(kept)
            boxes = _whole_pictures(len(labels), width_px, height_px)
            rows.append(Detections(boxes, row[labels], labels))
        return rows

    return decode


def embedding_decoder(length: int) -> Decoder:
    """Return the decoder of an embedding model: one row per picture, its embedding of length 1.

    It expects one output (b, length). The row's score is 1, its label 0.

    Args:
        length: numbers of an embedding.
    """

    def decode(
        outputs: Sequence[NDArray[Any]], width_px: int, height_px: int, score_min: float
    ) -> list[Detections]:
        values = _only_output(outputs, "embedding", length).astype(np.float64)
        norms = np.linalg.norm(values, axis=1, keepdims=True)
        _finite("embeddings", norms)
        unit = (values / np.maximum(norms, 1e-12)).astype(np.float32)
        box = _whole_pictures(1, width_px, height_px)
        one, label = np.ones(1, np.float32), np.zeros(1, np.int64)
        return [Detections(box, one, label, row[None]) for row in unit]

    return decode


def _only_output(outputs: Sequence[NDArray[Any]], what: str, length: int) -> NDArray[Any]:
    """Return the only output (b, length).

    Raises:
        DecodingError: it has another shape, or there are several.
    """
    shapes = ", ".join(str(output.shape) for output in outputs)
    if len(outputs) != 1 or outputs[0].ndim != 2:
        raise DecodingError(f"expected one output (b, {length}), the {what}; got {shapes}")
    if outputs[0].shape[1] != length:
        raise DecodingError(f"the length of the {what} is {outputs[0].shape[1]}, not {length}")
    return outputs[0]


def _softmax(logits: NDArray[Any]) -> NDArray[np.float32]:
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float32] = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares


def _best(scores: NDArray[np.float32], score_min: float) -> NDArray[np.int64]:
    """Return the labels with enough score, best first, and the best in any case."""
    order = np.argsort(-scores, kind="stable")
    enough = int(np.count_nonzero(scores >= score_min))
    return order[: max(1, enough)]


def _whole_pictures(count: int, width_px: int, height_px: int) -> NDArray[np.float32]:
    return np.tile(np.array((0, 0, width_px, height_px), np.float32), (count, 1))


DECODERS: Mapping[str, Decoder] = {
    "boxes_scores_labels": decode_boxes_scores_labels,
    "yolox": decode_yolox,
}
"""By the layout's name in a manifest; those of layouts that are the same for all families."""

CLASS_LOGITS, EMBEDDING = "class_logits", "embedding"
"""Layouts whose decoders are made for a family: `class_logits_decoder`, `embedding_decoder`."""

DECODER_NAMES = (*DECODERS, CLASS_LOGITS, EMBEDDING)
