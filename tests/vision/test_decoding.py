"""Decoders on synthetic tensors against anchor-by-anchor references."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgebox.vision.coco import COCO80
from edgebox.vision.decoding import (
    DECODERS,
    DecodingError,
    checked,
    class_logits_decoder,
    embedding_decoder,
)
from edgebox.vision.detections import Detections

WIDTH, HEIGHT = 96, 64
ANCHORS = 12 * 8 + 6 * 4 + 3 * 2
CLASSES = 3

yolox = DECODERS["yolox"]
ready = DECODERS["boxes_scores_labels"]


def raw_head(seed: int, batch: int = 1) -> NDArray[np.float32]:
    """Return a head with a few confident anchors among many that see nothing."""
    rng = np.random.default_rng(seed)
    head = rng.normal(0, 0.5, (batch, ANCHORS, 5 + CLASSES)).astype(np.float32)
    head[..., 4:] = rng.uniform(0, 1, head[..., 4:].shape) ** 3
    return head


def rows_by_hand(head: NDArray[np.float32], score_min: float) -> list[tuple[float, ...]]:
    """Decode one picture's head by the definition: (score, label, x1, y1, x2, y2)."""
    found: list[tuple[float, ...]] = []
    anchor = 0
    for stride in (8, 16, 32):
        for cell_y in range(HEIGHT // stride):
            for cell_x in range(WIDTH // stride):
                dx, dy, log_w, log_h, objectness, *classes = (float(v) for v in head[anchor])
                anchor += 1
                label = max(range(CLASSES), key=lambda c: (classes[c], -c))
                score = objectness * classes[label]
                if score < score_min:
                    continue
                x, y = (dx + cell_x) * stride, (dy + cell_y) * stride
                w, h = math.exp(log_w) * stride, math.exp(log_h) * stride
                found.append((score, label, x - w / 2, y - h / 2, x + w / 2, y + h / 2))
    return found


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    width = max(0.0, min(a[4], b[4]) - max(a[2], b[2]))
    height = max(0.0, min(a[5], b[5]) - max(a[3], b[3]))
    areas = (a[4] - a[2]) * (a[5] - a[3]) + (b[4] - b[2]) * (b[5] - b[3])
    return width * height / (areas - width * height)


def suppressed_by_hand(found: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    kept: list[tuple[float, ...]] = []
    for row in sorted(found, key=lambda r: -r[0]):
        if all(k[1] != row[1] or overlap(k, row) <= 0.45 for k in kept):
            kept.append(row)
    return kept


def clipped(row: tuple[float, ...]) -> list[float]:
    return [
        min(max(value, 0.0), limit)
        for value, limit in zip(row[2:], (WIDTH, HEIGHT, WIDTH, HEIGHT), strict=True)
    ]


def agree(found: Detections, rows: list[tuple[float, ...]]) -> bool:
    inside = [r for r in rows if (c := clipped(r))[2] > c[0] and c[3] > c[1]]
    return (
        found.labels.tolist() == [int(r[1]) for r in inside]
        and np.allclose(found.scores, [r[0] for r in inside], atol=1e-5)
        and np.allclose(found.boxes, [clipped(r) for r in inside] or np.zeros((0, 4)), atol=1e-2)
    )


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 0.6]))
def test_yolox_is_decoded_as_defined(seed: int, score_min: float) -> None:
    head = raw_head(seed)
    (found,) = yolox([head], WIDTH, HEIGHT, score_min)
    assert agree(found, suppressed_by_hand(rows_by_hand(head[0], score_min)))


def test_yolox_keeps_the_pictures_of_a_batch_apart() -> None:
    head = raw_head(1, batch=3)
    found = yolox([head], WIDTH, HEIGHT, 0.3)
    alone = [yolox([head[at : at + 1]], WIDTH, HEIGHT, 0.3)[0] for at in range(3)]
    assert [f.scores.tolist() for f in found] == [f.scores.tolist() for f in alone]


def test_yolox_survives_numbers_without_sense() -> None:
    head = np.full((1, ANCHORS, 5 + CLASSES), 1e30, np.float32)
    head[..., 4:] = 0.9
    with np.errstate(all="raise", invalid="ignore", over="ignore"):
        (found,) = yolox([head], WIDTH, HEIGHT, 0.3)
        assert np.isfinite(found.boxes).all()
        head[0, ::2] = np.nan
        with pytest.raises(DecodingError, match="boxes that are no finite numbers"):
            yolox([head], WIDTH, HEIGHT, 0.3)


NONSENSE = st.sampled_from([math.nan, math.inf, -math.inf])


@given(st.integers(0, ANCHORS - 1), st.integers(0, 4), NONSENSE)
def test_no_number_of_yolox_that_matters_is_left_out_because_it_is_none(
    anchor: int, column: int, number: float
) -> None:
    head = raw_head(1)
    head[0, :, 4:] = 0.0
    head[0, anchor] = (0, 0, 0, 0, 0.9, *[0.9] * CLASSES)
    head[0, anchor, column] = number
    decode = checked(yolox, CLASSES)
    if number == -math.inf and column >= 2:  # no width, no height or no object: nothing to see
        assert len(decode([head], WIDTH, HEIGHT, 0.3)[0]) == 0
        return
    if number == math.inf and column in (2, 3):  # as wide as the picture
        assert len(decode([head], WIDTH, HEIGHT, 0.3)[0]) == 1
        return
    with np.errstate(invalid="ignore"), pytest.raises(DecodingError, match="the model answered"):
        decode([head], WIDTH, HEIGHT, 0.3)


@given(st.integers(0, 5), NONSENSE)
def test_no_number_of_ready_boxes_is_left_out_because_it_is_none(at: int, number: float) -> None:
    boxes, scores = np.zeros((1, 1, 4), np.float32), np.full((1, 1), 0.9, np.float32)
    boxes[0, 0] = 1, 2, 30, 40
    labels = np.zeros((1, 1), np.int64)
    decode = checked(ready, 1)
    if at < 4:
        boxes[0, 0, at] = number
    else:
        scores[0, 0] = number
    if at >= 4 and number == -math.inf:
        assert len(decode([boxes, scores, labels], WIDTH, HEIGHT, 0.3)[0]) == 0
        return
    with pytest.raises(DecodingError, match="the model answered"):
        decode([boxes, scores, labels], WIDTH, HEIGHT, 0.3)


@pytest.mark.parametrize(
    "shapes", [[(1, ANCHORS - 1, 8)], [(1, ANCHORS, 5)], [(ANCHORS, 8)], [(1, ANCHORS, 8)] * 2, []]
)
def test_yolox_refuses_other_shapes(shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(DecodingError):
        yolox([np.zeros(shape, np.float32) for shape in shapes], WIDTH, HEIGHT, 0.3)


def test_ready_boxes_are_cut_at_the_score_and_clipped() -> None:
    boxes = np.array([[[-5, 10, 20, 99], [1, 1, 2, 2]], [[200, 0, 300, 9], [0, 0, 9, 9]]])
    scores = np.array([[0.9, 0.1], [0.8, 0.3]], np.float32)
    labels = np.array([[2, 0], [1, 1]])
    first, second = ready([boxes.astype(np.float32), scores, labels], WIDTH, HEIGHT, 0.3)
    assert first.boxes.tolist() == [[0, 10, 20, 64]]
    assert first.labels.tolist() == [2]
    assert second.boxes.tolist() == [[0, 0, 9, 9]]  # the other lay outside
    assert second.scores.tolist() == pytest.approx([0.3])


@pytest.mark.parametrize(
    "shapes",
    [
        [(1, 5, 4), (1, 5)],
        [(1, 5, 4), (1, 4), (1, 5)],
        [(1, 5, 4), (1, 5), (1, 6)],
        [(1, 5, 5), (1, 5), (1, 5)],
        [(5, 4), (5,), (5,)],
    ],
)
def test_ready_boxes_of_other_shapes_are_refused(shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(DecodingError):
        ready([np.zeros(shape, np.float32) for shape in shapes], WIDTH, HEIGHT, 0.3)


def test_coco_has_80_names() -> None:
    assert len(set(COCO80)) == 80
    assert (COCO80[0], COCO80[2], COCO80[5], COCO80[79]) == ("person", "car", "bus", "toothbrush")


@st.composite
def attributes(draw: st.DrawFn) -> tuple[list[int], NDArray[np.float32]]:
    """Return how many labels each attribute has, and the logits (b, labels) of some pictures."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    row = st.lists(st.floats(-50, 50, width=32), min_size=sum(lengths), max_size=sum(lengths))
    rows = draw(st.lists(row, min_size=1, max_size=3))
    return lengths, np.array(rows, np.float32)


@given(attributes(), st.floats(0, 1))
def test_every_attribute_is_a_softmax_of_its_own(
    drawn: tuple[list[int], NDArray[np.float32]], score_min: float
) -> None:
    lengths, logits = drawn
    answers = class_logits_decoder(lengths)([logits], WIDTH, HEIGHT, score_min)
    assert len(answers) == len(logits)
    for row, found in zip(logits.tolist(), answers, strict=True):
        expected: list[tuple[int, float]] = []
        start = 0
        for length in lengths:
            powers = [
                math.exp(value - max(row[start : start + length]))
                for value in row[start : start + length]
            ]
            scores = [np.float32(power / sum(powers)) for power in powers]
            best = sorted(range(length), key=lambda at: (-scores[at], at))
            kept = [at for at in best if scores[at] >= score_min] or best[:1]
            expected += [(start + at, float(scores[at])) for at in kept]
            start += length
        # Rounding may decide about what scores just the bar, and about ties.
        got = list(zip(found.labels.tolist(), found.scores.tolist(), strict=True))
        near = {at for at, score in expected + got if abs(score - score_min) < 1e-6}
        sure = [(at, pytest.approx(score, abs=1e-6)) for at, score in expected if at not in near]
        assert sorted((at, score) for at, score in got if at not in near) == sorted(
            sure, key=lambda pair: pair[0]
        )
        of = np.repeat(np.arange(len(lengths)), lengths)[found.labels]
        assert (np.diff(of) >= 0).all()
        assert set(of.tolist()) == set(range(len(lengths)))
        for attribute in range(len(lengths)):
            assert (np.diff(found.scores[of == attribute]) <= 0).all()
        assert found.boxes.tolist() == [[0, 0, WIDTH, HEIGHT]] * len(found)


@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=4, max_size=4))
def test_embeddings_have_length_1(values: list[float]) -> None:
    (found,) = embedding_decoder(4)([np.array([values], np.float32)], WIDTH, HEIGHT, 0.9)
    assert found.embeddings is not None
    length = math.sqrt(sum(value * value for value in values))
    if length > 1e-6:
        expected = [value / length for value in values]
        assert found.embeddings[0].tolist() == pytest.approx(expected, abs=1e-5)
    assert (found.scores.tolist(), found.labels.tolist()) == ([1.0], [0])
    assert found.boxes.tolist() == [[0, 0, WIDTH, HEIGHT]]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2, 128), "the length of the embedding is 128, not 256"),
        ((2, 256, 1), r"expected one output \(b, 256\), the embedding; got \(2, 256, 1\)"),
    ],
)
def test_an_embedding_of_another_shape_is_refused(shape: tuple[int, ...], expected: str) -> None:
    with pytest.raises(DecodingError, match=expected):
        embedding_decoder(256)([np.ones(shape, np.float32)], WIDTH, HEIGHT, 0.0)
    with pytest.raises(DecodingError, match="embeddings that are no finite numbers"):
        embedding_decoder(2)([np.array([[np.nan, 1]], np.float32)], WIDTH, HEIGHT, 0.0)
    with pytest.raises(DecodingError, match="the length of the logits is 4, not 5"):
        class_logits_decoder([2, 3])([np.ones((1, 4), np.float32)], WIDTH, HEIGHT, 0.0)


@given(
    labels=st.lists(st.integers(-3, 5), max_size=4),
    score=st.sampled_from([0.0, 0.4, 1.0, 1.00005, 1.1, 57.0, math.nan, math.inf]),
)
def test_labels_and_scores_that_nobody_expects_are_refused(labels: list[int], score: float) -> None:
    count = len(labels)
    found = Detections(
        np.tile(np.array((0, 0, 1, 1), np.float32), (count, 1)),
        np.full(count, score, np.float32),
        np.array(labels, np.int64),
    )
    decode = checked(lambda outputs, width_px, height_px, score_min: [found, found], 3)
    if any(not 0 <= label < 3 for label in labels):
        with pytest.raises(DecodingError, match="there are 3 labels"):
            decode([], 1, 1, 0.0)
    elif labels and not 0 <= score <= 1.0001:
        with pytest.raises(DecodingError, match="from 0 to 1"):
            decode([], 1, 1, 0.0)
    else:
        assert decode([], 1, 1, 0.0) == [found, found]


@pytest.mark.parametrize("label", [0.5, -0.5, math.nan, math.inf, 1e30])
def test_labels_that_are_no_whole_numbers_are_refused(label: float) -> None:
    boxes = np.array([[[1, 1, 9, 9]]], np.float32)
    scores, labels = np.ones((1, 1), np.float32), np.array([[label]], np.float32)
    decode = checked(ready, 3)
    with pytest.raises(DecodingError, match="label"):
        decode([boxes, scores, labels], WIDTH, HEIGHT, 0.3)
    (found,) = decode([boxes, scores, np.array([[2.0]], np.float32)], WIDTH, HEIGHT, 0.3)
    assert found.labels.tolist() == [2]


def test_what_overflows_is_refused_without_a_warning() -> None:
    boxes, ones = np.full((1, 1, 4), 1e300), np.ones((1, 1), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DecodingError, match="boxes that are no finite numbers"):
            checked(ready, 3)([boxes, ones, ones], WIDTH, HEIGHT, 0.3)
        logits = np.array([[np.inf, 0, 0]], np.float32)
        with pytest.raises(DecodingError, match="scores from nan to nan"):
            checked(class_logits_decoder([3]), 3)([logits], WIDTH, HEIGHT, 0.3)
