"""Detections: shapes are checked, coordinates move as they should."""

from dataclasses import replace

import numpy as np
import pytest

from edgebox.vision.detections import Detections


def some() -> Detections:
    boxes = np.array([[10, 20, 30, 60], [0, 0, 5, 5], [90, 90, 130, 120]], np.float32)
    return Detections(boxes, np.array([0.9, 0.2, 0.5], np.float32), np.array([1, 0, 2]))


def test_arrays_must_belong_together() -> None:
    found = some()
    with pytest.raises(ValueError, match="need boxes"):
        Detections(found.boxes[:2], found.scores, found.labels)
    with pytest.raises(ValueError, match="need boxes"):
        Detections(found.boxes, found.scores, found.labels[:1])
    assert len(Detections.empty()) == 0


def test_above_keeps_the_bar_itself() -> None:
    kept = some().above(0.5)
    assert kept.labels.tolist() == [1, 2]


def test_scaling_clips_and_removes_what_lies_outside() -> None:
    scaled = some().scaled(2.0, 0.5, 170, 100)
    assert scaled.boxes.tolist() == [[20, 10, 60, 30], [0, 0, 10, 2.5]]
    assert scaled.labels.tolist() == [1, 0]


def test_moving_and_back_again_changes_nothing() -> None:
    found = some()
    assert np.array_equal(found.moved(3, -4).moved(-3, 4).boxes, found.boxes)
    assert found.moved(3, -4).boxes[0].tolist() == [13, 16, 33, 56]
    assert found.moved(0, 0) is found


def test_xywh_is_cocos_form() -> None:
    found = some()
    assert found.xywh()[0].tolist() == [10, 20, 20, 40]
    assert found.boxes[0].tolist() == [10, 20, 30, 60]


def test_embeddings_stay_with_their_rows() -> None:
    rows = np.eye(3, dtype=np.float32)
    found = replace(some(), embeddings=rows)
    for kept in (found.above(0.5), found.scaled(1.0, 1.0, 200, 200).select(np.array([0, 2]))):
        assert kept.embeddings is not None
        assert kept.embeddings.tolist() == rows[[0, 2]].tolist()
    moved = found.moved(-200, 0)
    assert moved.embeddings is rows
    gone = moved.scaled(1.0, 1.0, 100, 100)
    assert gone.embeddings is not None
    assert gone.embeddings.shape == (0, 3)
    with pytest.raises(ValueError, match="embeddings must be"):
        replace(found, embeddings=rows[:2])
    with pytest.raises(ValueError, match="embeddings must be"):
        replace(found, embeddings=rows[0])
