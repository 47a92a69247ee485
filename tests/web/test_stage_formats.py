"""Stages in the result formats: each object keeps its own, however rows are filtered and sorted."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.messages import WireDetection
from edgebox.runtime.stage_documents import StagedObjects, best_rows, staged_objects
from edgebox.vision.detections import Detections
from edgebox.web.detection_documents import SCORE_MIN, wire_detections
from edgebox.web.result_formats import RESULT_FORMATS, ResultFormat, in_format
from edgebox.web.stage_formats import add_stages
from tests.runtime.staged import FAMILIES, PIPELINE, STREET, answer, detections, kind

SIZE_PX = (640, 480)


def both(found: Detections) -> StagedObjects:
    """Return stages for the objects of even rows: the label is that of the object, modulo 3."""
    labels = found.labels.tolist()
    stages = tuple(kind(row, labels[row] % 3, 0.5) for row in range(0, len(found), 2))
    return staged_objects(answer(found, stages), PIPELINE, FAMILIES, SCORE_MIN)


def written(form: ResultFormat, found: Detections, score_min: float) -> dict[str, Any]:
    rows = best_rows(found, score_min)
    document: dict[str, Any] = in_format(
        form, found.select(rows), STREET.labels, SIZE_PX, image_id=7
    )
    add_stages(document, form, rows.tolist(), both(found))
    parsed: dict[str, Any] = orjson.loads(orjson.dumps(document))
    return parsed


rows_of = st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1, width=32)), max_size=6)


@given(rows_of, st.floats(0, 1))
def test_every_object_keeps_its_own_stages(rows: list[tuple[int, float]], score_min: float) -> None:
    found = detections(*rows)
    for one in written("native", found, score_min)["detections"]:
        row = round(one["box"][0] / 10)  # each object is at its own place
        assert STREET.labels[rows[row][0]] == one["label"]
        labels = ("hatchback", "van", "estate")
        wanted = None if row % 2 else labels[rows[row][0] % 3]
        assert one.get("stages", {}).get("kind", {}).get("label") == wanted


@given(rows_of)
def test_messages_to_cameras_have_the_same_as_other_results(rows: list[tuple[int, float]]) -> None:
    found = detections(*rows)
    native = written("native", found, SCORE_MIN)["detections"]
    wire = [one.to_json() for one in wire_detections(found, STREET.labels, both(found))]
    assert orjson.loads(orjson.dumps(wire)) == [
        {name: of for name, of in one.items() if name != "label_id"} for one in native
    ]


def test_coco_has_attributes_as_annotation_tools_do() -> None:
    first, second = written("coco", detections((1, 0.5), (2, 0.75)), 0)["annotations"]
    assert (first["score"], first["attributes"]) == (0.75, {})
    assert "stages" not in first
    assert second["attributes"] == {"kind": "van"}
    assert second["stages"]["kind"]["score"] == 0.5


def test_supervision_has_a_column_for_each_attribute() -> None:
    document = written("supervision", detections((1, 0.5), (2, 0.75)), 0)
    assert [one["class"] for one in document["predictions"]] == ["bus", "car"]
    assert document["data"] == {"kind": ["", "van"]}
    assert document["predictions"][1]["stages"]["kind"]["label"] == "van"


@pytest.mark.parametrize("form", RESULT_FORMATS)
def test_without_stages_nothing_is_added(form: ResultFormat) -> None:
    found = detections((1, 0.5))
    document: dict[str, Any] = in_format(form, found, STREET.labels, SIZE_PX, image_id=7)
    before = orjson.dumps(document)
    add_stages(document, form, [0], StagedObjects())
    assert orjson.dumps(document) == before


def test_a_detection_without_stages_is_written_as_ever() -> None:
    assert list(WireDetection("car", 0.5, (0, 0, 1, 1)).to_json()) == ["label", "score", "box"]
