"""Average precision: worked examples by hand, and a slow judge for whatever hypothesis finds."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.inference.accuracy.coco_tool import coco_figures
from edgebox.vision.average_precision import (
    COCO_THRESHOLDS,
    RECALL_POINTS,
    ImageTruth,
    Precision,
    as_boxes,
    average_precision,
    box_areas,
    interpolated_precision,
    match_picture,
    resamples,
    too_small_or_hidden,
)
from edgebox.vision.detections import Detections
from edgebox.vision.overlap import iou_matrix

Box = tuple[float, float, float, float]


def truth(
    boxes: Sequence[Box], labels: Sequence[int] = (), crowd: Sequence[bool] = ()
) -> ImageTruth:
    n = len(boxes)
    return ImageTruth(
        as_boxes(boxes),
        np.array(labels or [0] * n, dtype=np.int64),
        np.array(crowd or [False] * n, dtype=bool),
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
    with pytest.raises(ValueError, match="none of the thresholds"):
        report.mean_at(0.33)


def test_crowds_excuse_what_lies_in_them_and_are_not_missed() -> None:
    boxes = [(0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 40.0, 10.0)]
    scene = truth(boxes, crowd=[False, True])
    inside = (22.0, 0.0, 24.0, 6.0)  # an IoU of 0.06 with the crowd, but wholly in it
    for seen in (
        found(boxes[:1], [0.5]),
        found([boxes[1], inside, inside, boxes[0]], [0.9, 0.8, 0.7, 0.5]),
    ):
        assert average_precision([scene], [seen], 1).mean == 1.0
    half_in = (35.0, 0.0, 45.0, 10.0)  # half of it: excused at 0.5 only
    report = average_precision([scene], [found([half_in, boxes[0]], [0.9, 0.5])], 1)
    assert report.mean_at(0.5) == 1.0
    assert report.mean_at(0.55) == 0.5


def test_an_object_goes_before_a_crowd() -> None:
    crowd, near = (0.0, 0.0, 10.0, 10.0), (0.0, 0.0, 10.0, 6.0)
    scene = truth([crowd, near], crowd=[True, False])
    # All of it lies in the crowd, 0.625 in the object: it is the object's up to there.
    matched = match_picture(scene, found([(0.0, 0.0, 10.0, 9.6)], [0.5]), 1)
    assert matched.hits[0, :, 0].tolist() == [threshold <= 0.625 for threshold in COCO_THRESHOLDS]
    assert (matched.excused[0, :, 0] == ~matched.hits[0, :, 0]).all()


def test_sizes_worked_by_hand() -> None:
    small, large = (0.0, 0.0, 10.0, 10.0), (100.0, 0.0, 200.0, 100.0)
    alarm = (300.0, 0.0, 340.0, 40.0)  # of medium size: a false alarm there and in all only
    scene = truth([small, large])
    report = average_precision([scene], [found([alarm, small, large], [0.9, 0.8, 0.7])], 1)
    assert report.mean_of_size("small") == report.mean_of_size("large") == 1.0
    assert report.mean_of_size("medium") is None
    assert report.mean == pytest.approx((51 * 2 / 3 + 50 * 2 / 3) / 101)


def test_areas_of_outlines_go_before_those_of_boxes() -> None:
    box = (0.0, 0.0, 40.0, 40.0)
    outlined = ImageTruth(as_boxes([box]), np.zeros(1, np.int64), np.zeros(1, bool), np.ones(1))
    report = average_precision([outlined], [found([box], [0.9])], 1)
    assert (report.mean_of_size("small"), report.mean_of_size("medium")) == (1.0, None)


def test_only_the_best_hundred_of_a_class_count() -> None:
    box = (0.0, 0.0, 10.0, 10.0)
    alarms = [(50.0 + n, 50.0, 60.0 + n, 60.0) for n in range(100)]
    scores = [1.0 - n / 200 for n in range(100)]
    late = average_precision([truth([box])], [found([*alarms, box], [*scores, 0.1])], 1)
    in_time = average_precision(
        [truth([box])], [found([*alarms[:99], box], [*scores[:99], 0.1])], 1
    )
    assert late.mean == 0.0
    assert in_time.mean == pytest.approx(0.01)


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
        best = [precision for right, precision in points if right / objects >= RECALL_POINTS[step]]
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


scored = st.tuples(boxes_strategy, st.integers(0, 2), st.integers(1, 20))
objects = st.tuples(boxes_strategy, st.integers(0, 2), st.booleans(), st.sampled_from((1, 50)))
scenes_strategy = st.lists(
    st.tuples(st.lists(objects, max_size=5), st.lists(scored, max_size=6)), min_size=1, max_size=4
)
Scenes = list[tuple[list[tuple[Box, int, bool, int]], list[tuple[Box, int, int]]]]


def unpacked(scenes: Scenes) -> tuple[list[ImageTruth], list[Detections]]:
    """Return the truth and the detections of generated pictures; areas are made up, too."""
    truths, seen = [], []
    for here, boxes in scenes:
        plain = truth([o[0] for o in here], [o[1] for o in here], [o[2] for o in here])
        areas = box_areas(plain.boxes) * np.array([o[3] for o in here])
        truths.append(ImageTruth(plain.boxes, plain.labels, plain.crowd, areas))
        # Boxes are scaled so that all sizes occur; equal scores occur, too.
        seen.append(found([d[0] for d in boxes], [d[2] / 20 for d in boxes], [d[1] for d in boxes]))
    return truths, seen


@settings(max_examples=150, deadline=None)
@given(scenes_strategy, st.sampled_from((1.0, 4.0, 12.0)))
def test_every_figure_is_that_of_cocos_own_tool(scenes: Scenes, scale: float) -> None:
    truths, seen = unpacked(scenes)
    truths = [
        ImageTruth(t.boxes * scale, t.labels, t.crowd, np.asarray(t.areas) * scale**2)
        for t in truths
    ]
    seen = [s.scaled(scale, scale, 1e6, 1e6) for s in seen]
    report = average_precision(truths, seen, 3)
    by_tool = coco_figures(truths, seen, 3)
    assert [report.mean, report.mean_at(0.5), report.mean_at(0.75)] == pytest.approx(
        [by_tool[name] or 0.0 for name in ("mAP", "mAP50", "mAP75")], abs=1e-9
    )
    for size in ("small", "medium", "large"):
        assert report.mean_of_size(size) == pytest.approx(by_tool[size], abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(scenes_strategy, st.integers(0, 1000))
def test_weights_are_pictures_repeated(scenes: Scenes, seed: int) -> None:
    truths, seen = unpacked(scenes)
    # Only detections of equal score could be put in another order.
    seen = [
        Detections(s.boxes, s.scores - np.float32(0.001 * at) - np.arange(len(s)) * 1e-5, s.labels)
        for at, s in enumerate(seen)
    ]
    (weights,) = resamples(np.random.default_rng(seed), len(scenes), 1)
    assert weights.sum() == len(scenes)
    matches = [match_picture(t, s, 3) for t, s in zip(truths, seen, strict=True)]
    drawn = np.repeat(np.arange(len(scenes)), weights)
    by_hand = average_precision([truths[at] for at in drawn], [seen[at] for at in drawn], 3)
    np.testing.assert_allclose(
        Precision(matches, 3).report(weights).precision, by_hand.precision, atol=1e-12
    )
    one_size = Precision(matches, 3).report(weights, sizes=1)
    np.testing.assert_allclose(one_size.precision, by_hand.precision[:1], atol=1e-12)


@given(st.lists(boxes_strategy, min_size=1, max_size=6), st.data())
def test_stricter_thresholds_never_help(boxes: list[Box], data: st.DataObject) -> None:
    seen = data.draw(st.lists(boxes_strategy, min_size=1, max_size=6))
    scores = [1.0 - 0.1 * place for place in range(len(seen))]
    report = average_precision([truth(boxes)], [found(seen, scores)], 1)
    values = report.per_class[0].tolist()
    if len(boxes) == 1:  # with several objects a stricter threshold may free a better match
        assert all(later <= earlier for earlier, later in pairwise(values))
    assert all(0.0 <= value <= 1.0 for value in values)
