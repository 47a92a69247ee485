"""What counts as the same detections, and what does not."""

import numpy as np

from edgebox.inference.importing.parity import disagreement
from edgebox.vision.detections import Detections

RNG = np.random.default_rng(0)
CORNERS = RNG.uniform(0, 300, (30, 2))
FOUND = Detections(
    np.concatenate((CORNERS, CORNERS + RNG.uniform(20, 90, (30, 2))), axis=1).astype(np.float32),
    np.linspace(0.9, 0.1, 30).astype(np.float32),
    RNG.integers(0, 5, 30),
)


def changed(boxes: float = 0.0, scores: float = 0.0, labels: int = 0) -> Detections:
    return Detections(
        FOUND.boxes + np.float32(boxes), FOUND.scores + np.float32(scores), FOUND.labels + labels
    )


def test_rounding_and_order_do_not_matter() -> None:
    order = RNG.permutation(30)
    assert disagreement(FOUND, changed(boxes=0.3, scores=0.005).select(order)) == ""
    assert disagreement(Detections.empty(), Detections.empty()) == ""


def test_everything_else_does() -> None:
    for other in (changed(boxes=15.0), changed(scores=0.02), changed(labels=1)):
        assert "of the best 20 detections differ" in disagreement(FOUND, other)
        assert "of the best 20 detections differ" in disagreement(other, FOUND)
    assert "differ" in disagreement(FOUND, Detections.empty())
    assert "differ" in disagreement(Detections.empty(), FOUND)


def test_whether_next_to_nothing_is_listed_does_not_matter() -> None:
    sure = Detections(
        np.array([[0, 0, 64, 64]] * 2, np.float32),
        np.array([0.9985, 0.0015], np.float32),
        np.array([1, 0]),
    )
    alone = sure.select(np.array([0]))
    assert disagreement(sure, alone) == "" == disagreement(alone, sure)
    unsure = Detections(sure.boxes, np.array([0.99, 0.01], np.float32), sure.labels)
    assert "1 of the best 2 detections differ" in disagreement(unsure, alone)


def test_the_message_names_what_is_missing() -> None:
    missing = FOUND.select(np.arange(3, 30))
    label, score = FOUND.labels[0], FOUND.scores[0]
    assert f"3 of the best 20 detections differ: label {label}, score {score:.2f}" in disagreement(
        FOUND, missing
    )


def test_where_overlaps_are_removed_one_of_two_equals_stays() -> None:
    shift = np.zeros((30, 4), np.float32)
    shift[::3] = 0.2 * (FOUND.boxes[::3, 2:] - FOUND.boxes[::3, :2]).min(axis=1, keepdims=True)
    other = Detections(FOUND.boxes + shift, FOUND.scores, FOUND.labels)
    assert "differ" in disagreement(FOUND, other)
    assert disagreement(FOUND, other, nms_iou=0.45) == ""
    everywhere = 0.2 * (FOUND.boxes[:, 2:] - FOUND.boxes[:, :2]).min(axis=1, keepdims=True)
    moved = Detections(FOUND.boxes + everywhere, FOUND.scores, FOUND.labels)
    assert "differ" in disagreement(FOUND, moved, nms_iou=0.45)
