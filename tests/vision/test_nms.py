"""Non-maximum suppression and IoU against loops over plain numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.vision.nms import class_aware_nms
from edgebox.vision.overlap import iou_matrix

Box = tuple[float, float, float, float]

# Whole coordinates keep the judge's arithmetic and float32 equal to the last bit that matters.
coordinate = st.integers(0, 30)
box = st.tuples(coordinate, coordinate, coordinate, coordinate).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
)
row = st.tuples(box, st.integers(0, 10), st.integers(0, 2))


def iou(a: Box, b: Box) -> float:
    width = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    return width * height / union if union else 0.0


def kept_by_hand(rows: list[tuple[Box, int, int]], iou_max: float) -> list[int]:
    order = sorted(range(len(rows)), key=lambda at: (-rows[at][1], at))
    kept: list[int] = []
    for at in order:
        rivals = [k for k in kept if rows[k][2] == rows[at][2]]
        if all(iou(rows[k][0], rows[at][0]) <= iou_max for k in rivals):
            kept.append(at)
    return kept


@given(st.lists(box, max_size=8), st.lists(box, max_size=8))
def test_iou_of_every_pair(a: list[Box], b: list[Box]) -> None:
    got = iou_matrix(np.array(a, np.float32).reshape(-1, 4), np.array(b, np.float32).reshape(-1, 4))
    expected = [[iou(x, y) for y in b] for x in a]
    assert got.shape == (len(a), len(b))
    assert np.allclose(got, np.array(expected).reshape(len(a), len(b)), atol=1e-6)


# Thresholds that no ratio of small whole numbers meets exactly.
@given(st.lists(row, max_size=30), st.sampled_from([0.0, 0.2999, 0.4501, 0.7001, 1.0]))
def test_what_stays_is_what_the_definition_says(
    rows: list[tuple[Box, int, int]], iou_max: float
) -> None:
    boxes = np.array([r[0] for r in rows], np.float32).reshape(-1, 4)
    scores = np.array([r[1] / 10 for r in rows], np.float32)
    labels = np.array([r[2] for r in rows], np.int64)
    got = class_aware_nms(boxes, scores, labels, iou_max)
    assert got.tolist() == kept_by_hand(rows, iou_max)


def test_it_stops_at_the_limit() -> None:
    boxes = np.array([[i * 10, 0, i * 10 + 5, 5] for i in range(20)], np.float32)
    scores = np.linspace(0, 1, 20, dtype=np.float32)
    got = class_aware_nms(boxes, scores, np.zeros(20, np.int64), 0.5, keep_max=3)
    assert got.tolist() == [19, 18, 17]
