"""Average precision: worked examples by hand, and a slow judge for whatever hypothesis finds."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.vision.detections import Detections
from edgebox.vision.metrics import (
    COCO_THRESHOLDS,
    ImageTruth,
    as_boxes,
    average_precision,
    interpolated_precision,
    match,
    too_small_or_hidden,
)
from edgebox.vision.overlap import iou_matrix

Box = tuple[float, float, float, float]


def truth(
    boxes: Sequence[Box], labels: Sequence[int] = (), ignored: Sequence[bool] = ()
) -> ImageTruth:
    n = len(boxes)
    return ImageTruth(
        as_boxes(boxes),
        np.array(labels or [0] * n, dtype=np.int64),
        np.array(ignored or [False] * n, dtype=bool),
    )


def found(boxes: Sequence[Box], scores: Sequence[float], labels: Sequence[int] = ()) -> Detections:
    return Detections(
        as_boxes(boxes).astype(np.float32),
        np.array(scores, dtype=np.float32),
        np.array(labels or [0] * len(boxes), dtype=np.int64),
    )


def test_iou_of_boxes_worked_by_hand() -> None:
    first = as_boxes([(0, 0, 10, 10), (0, 0, 0, 0)])
    second = as_boxes([(5, 0, 15, 10), (0, 0, 10, 10), (20, 20, 30, 30)])
    assert iou_matrix(first, second).tolist() == [[pytest.approx(1 / 3), 1, 0], [0, 0, 0]]
    assert iou_matrix(as_boxes([]), second).shape == (0, 3)


def test_perfect_detections_reach_one() -> None:
    boxes = [(0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 30.0, 12.0)]
    report = average_precision([truth(boxes)], [found(boxes, [0.9, 0.3])], classes=1)
    assert report.mean == 1.0
    assert report.thresholds == COCO_THRESHOLDS


def test_a_miss_and_a_false_alarm_worked_by_hand() -> None:
    # Two objects, found by the first and third detection: precision 1 up to recall 0.5
    # (51 recall points), 2/3 up to recall 1 (50 points).
    boxes = [(0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 30.0, 10.0)]
    seen = found([boxes[0], (50.0, 50.0, 60.0, 60.0), boxes[1]], [0.9, 0.8, 0.7])
    report = average_precision([truth(boxes)], [seen], 1, thresholds=(0.5,))
    assert report.mean == pytest.approx((51 * 1 + 50 * 2 / 3) / 101)


def test_an_object_counts_once() -> None:
    box = (0.0, 0.0, 10.0, 10.0)
    twice = average_precision([truth([box, (50, 50, 60, 60)])], [found([box, box], [0.9, 0.8])], 1)
    assert twice.mean == pytest.approx(51 / 101)


def test_overlap_counts_only_up_to_its_own_threshold() -> None:
    # IoU 0.64: right at 0.5, 0.55 and 0.6, wrong from 0.65 on.
    report = average_precision([truth([(0, 0, 10, 10)])], [found([(0, 0, 8, 8)], [0.5])], 1)
    assert report.mean_at(0.5) == 1.0
    assert report.mean_at(0.75) == 0.0
    assert report.mean == pytest.approx(0.3)
    with pytest.raises(ValueError, match="not in tuple"):
        report.mean_at(0.33)


def test_ignored_objects_excuse_detections_and_are_not_missed() -> None:
    boxes = [(0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 30.0, 10.0)]
    scene = truth(boxes, ignored=[False, True])
    near = (20.0, 0.0, 30.0, 6.0)  # IoU 0.6 with the ignored one: excused at 0.9 too
    for seen in (found(boxes[:1], [0.5]), found([boxes[1], near, boxes[0]], [0.9, 0.8, 0.5])):
        assert average_precision([scene], [seen], 1).mean == 1.0


def test_a_judged_object_goes_before_an_ignored_one() -> None:
    ious = np.array([[0.6, 0.9]])
    hits, excused = match(ious, np.array([False, True]), 0.5)
    assert hits.tolist() == [True]
    assert excused.tolist() == [False]


def test_classes_are_judged_apart_and_absent_ones_left_out() -> None:
    box, other = (0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 30.0, 10.0)
    report = average_precision(
        [truth([box, other], labels=[0, 1])], [found([box, other], [0.9, 0.9], labels=[0, 2])], 4
    )
    np.testing.assert_array_equal(report.per_class[:, 0], [1.0, 0.0, np.nan, np.nan])
    assert report.mean == 0.5


def test_nothing_to_find_and_nothing_found() -> None:
    assert average_precision([truth([])], [found([], [])], 2).mean == 0.0
    assert average_precision([truth([(0, 0, 9, 9)])], [found([], [])], 1).mean == 0.0
    assert average_precision([], [], 1).mean == 0.0
    with pytest.raises(ValueError, match="1 pictures with truth, 0 with detections"):
        average_precision([truth([])], [], 1)


def test_too_small_or_hidden() -> None:
    boxes = as_boxes([(0, 0, 4, 7.9), (0, 0, 4, 8), (0, 0, 4, 20)])
    flags = too_small_or_hidden(boxes, np.array([1.0, 0.3, 0.29]), 8.0, 0.3)
    assert flags.tolist() == [True, False, True]


def slow_precision(hits: Sequence[bool], objects: int) -> float:
    """Return the 101-point average precision by its definition."""
    points = []
    for count in range(1, len(hits) + 1):
        right = sum(hits[:count])
        points.append((right, right / count))
    total = 0.0
    for step in range(101):
        best = [precision for right, precision in points if right * 100 >= step * objects]
        total += max(best, default=0.0)
    return total / 101


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 6))
def test_interpolation_agrees_with_the_definition(hits: list[bool], missed: int) -> None:
    objects = sum(hits) + missed
    if objects:
        got = interpolated_precision(np.array(hits, dtype=bool), objects)
        assert got == pytest.approx(slow_precision(hits, objects))


boxes_strategy = st.tuples(
    st.integers(0, 12), st.integers(0, 12), st.integers(1, 10), st.integers(1, 10)
).map(lambda b: (float(b[0]), float(b[1]), float(b[0] + b[2]), float(b[1] + b[3])))


def slow_iou(a: Box, b: Box) -> float:
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    tall = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return wide * tall / (areas[0] + areas[1] - wide * tall)


Scene = tuple[list[tuple[Box, bool]], list[Box]]
scene_strategy = st.tuples(
    st.lists(st.tuples(boxes_strategy, st.booleans()), max_size=4),
    st.lists(boxes_strategy, max_size=5),
)


@given(st.lists(scene_strategy, min_size=1, max_size=3))
def test_one_class_agrees_with_a_slow_judge(scenes: list[Scene]) -> None:
    threshold, rank = 0.5, 0
    truths, seen, judged = [], [], []
    for objects, boxes in scenes:
        truths.append(truth([box for box, _ in objects], ignored=[flag for _, flag in objects]))
        scores = [1.0 - 0.01 * (rank + place) for place in range(len(boxes))]
        rank += len(boxes)
        seen.append(found(boxes, scores))
        free = [box for box, flag in objects if not flag]
        for box in boxes:
            best = max(free, key=lambda other: slow_iou(box, other), default=None)
            if best is not None and slow_iou(box, best) >= threshold:
                free.remove(best)
                judged.append(True)
            elif not any(flag and slow_iou(box, other) >= threshold for other, flag in objects):
                judged.append(False)
    total = sum(not flag for objects, _ in scenes for _, flag in objects)
    expected = slow_precision(judged, total) if total else 0.0
    got = average_precision(truths, seen, 1, thresholds=(threshold,)).mean
    assert got == pytest.approx(expected)


@given(st.lists(boxes_strategy, min_size=1, max_size=6), st.data())
def test_stricter_thresholds_never_help(boxes: list[Box], data: st.DataObject) -> None:
    seen = data.draw(st.lists(boxes_strategy, min_size=1, max_size=6))
    scores = [1.0 - 0.1 * place for place in range(len(seen))]
    report = average_precision([truth(boxes)], [found(seen, scores)], 1)
    values = report.per_class[0].tolist()
    if len(boxes) == 1:  # with several objects a stricter threshold may free a better match
        assert all(later <= earlier for earlier, later in pairwise(values))
    assert all(0.0 <= value <= 1.0 for value in values)
