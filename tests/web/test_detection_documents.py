"""Detections as JSON: best first, rounded, in both forms of a box."""

from dataclasses import replace
from typing import cast

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from edgebox.vision.detections import Detections
from edgebox.web.detection_documents import SCORE_MIN, answer_detections, wire_detections

LABELS = ("person", "car", "bus")


@st.composite
def detections(draw: st.DrawFn) -> Detections:
    count = draw(st.integers(0, 8))
    numbers = st.floats(0, 2000, width=32)
    corners = draw(st.lists(st.tuples(numbers, numbers), min_size=count, max_size=count))
    sizes = draw(st.lists(st.tuples(numbers, numbers), min_size=count, max_size=count))
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(corners, sizes, strict=True)]
    scores = draw(st.lists(st.floats(0, 1, width=32), min_size=count, max_size=count))
    labels = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    return Detections(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(scores, np.float32),
        np.array(labels, np.int64),
    )


@given(detections(), st.floats(0, 1))
def test_an_answer_lists_what_scores_enough_best_first(found: Detections, least: float) -> None:
    rows = answer_detections(found, LABELS, "xyxy", least)
    kept = sorted((float(s) for s in found.scores if s >= np.float32(least)), reverse=True)
    assert [row["score"] for row in rows] == [round(score, 3) for score in kept]
    assert all(LABELS[row["label_id"]] == row["label"] for row in rows)  # type: ignore[call-overload]
    assert orjson.loads(orjson.dumps(rows)) == rows


def test_rows_say_their_attribute_and_their_embedding() -> None:
    box = np.array([[0, 0, 8, 4]] * 2, np.float32)
    said = Detections(box, np.array([0.4, 0.9], np.float32), np.array([0, 2]))
    rows = answer_detections(said, LABELS, "xyxy", 0.0, ("who", "what", "what"))
    assert [(row["label"], row["attribute"]) for row in rows] == [
        ("bus", "what"),
        ("person", "who"),
    ]
    assert all("embedding" not in row for row in rows)
    embedded = replace(said, embeddings=np.array([[0.6, 0.8], [1, 0]], np.float32))
    rows = answer_detections(embedded, LABELS, "xywh", 0.0)
    assert [row["embedding"] for row in rows] == [[1.0, 0.0], [0.6, 0.8]]
    assert all("attribute" not in row for row in rows)


def box_of(row: dict[str, object]) -> list[float]:
    return cast(list[float], row["box"])


@given(detections())
def test_both_forms_say_the_same_box(found: Detections) -> None:
    corners = answer_detections(found, LABELS, "xyxy", 0)
    sizes = answer_detections(found, LABELS, "xywh", 0)
    for corner, size in zip(corners, sizes, strict=True):
        x1, y1, x2, y2 = box_of(corner)
        x, y, width, height = box_of(size)
        assert (x, y) == (x1, y1)
        assert abs(x2 - x1 - width) < 0.3
        assert abs(y2 - y1 - height) < 0.3


@given(detections())
def test_a_result_message_says_the_same_as_an_answer(found: Detections) -> None:
    wire = wire_detections(found, LABELS)
    rows = answer_detections(found, LABELS, "xyxy", SCORE_MIN)
    assert [(d.label, d.score, list(d.box)) for d in wire] == [
        (row["label"], row["score"], row["box"]) for row in rows
    ]
