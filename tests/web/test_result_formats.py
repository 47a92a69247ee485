"""The same detections in every form, judged by taking each back to corners."""

from typing import Any

import orjson
import pytest
from hypothesis import given

from edgebox.vision.coco import COCO80
from edgebox.vision.detections import Detections
from edgebox.web.detection_documents import answer_detections
from edgebox.web.result_formats import RESULT_FORMATS, coco_categories, coco_ids, in_format
from tests.web.test_detection_documents import LABELS, detections

SIZE_PX = (640, 360)


def close(one: list[float], other: list[float]) -> bool:
    return one == pytest.approx(other, abs=0.21)


@given(detections())
def test_every_form_says_the_same(found: Detections) -> None:
    native, coco, supervision = (
        orjson.loads(orjson.dumps(in_format(form, found, LABELS, SIZE_PX, image_id=7)))
        for form in RESULT_FORMATS
    )
    rows: list[dict[str, Any]] = native["detections"]
    assert rows == answer_detections(found, LABELS, "xyxy", 0)
    assert coco["images"] == [{"id": 7, "width": 640, "height": 360}]
    assert supervision["image"] == {"width": 640, "height": 360}
    names = {each["id"]: each["name"] for each in coco_categories(LABELS)}
    for row, annotation, prediction in zip(
        rows, coco["annotations"], supervision["predictions"], strict=True
    ):
        assert row["label"] == names[annotation["category_id"]] == prediction["class"]
        assert row["label_id"] == prediction["class_id"]
        assert row["score"] == annotation["score"] == prediction["confidence"]
        x, y, width, height = annotation["bbox"]
        assert close([x, y, x + width, y + height], row["box"])
        assert annotation["image_id"] == 7
        assert annotation["area"] == pytest.approx(width * height, abs=0.01)
        # As supervision.Detections.from_inference reads it.
        left, top = (
            prediction["x"] - prediction["width"] / 2,
            prediction["y"] - prediction["height"] / 2,
        )
        right, bottom = left + prediction["width"], top + prediction["height"]
        assert close([left, top, right, bottom], row["box"])
    assert len({annotation["id"] for annotation in coco["annotations"]}) == len(rows)


def test_cocos_own_labels_have_cocos_own_numbers() -> None:
    categories = {each["name"]: each["id"] for each in coco_categories(COCO80)}
    assert (categories["person"], categories["toothbrush"]) == (1, 90)
    assert categories["stop sign"] == 13
    assert coco_ids(LABELS) == (1, 2, 3)
