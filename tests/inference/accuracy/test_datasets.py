"""Labelled pictures as people have them: COCO's folders, Roboflow's, flat ones, YOLO's; broken."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgebox.app.accuracy_measurement import read_dataset
from edgebox.domain.errors import InvalidInputError
from edgebox.inference.accuracy.labelled import fitted
from edgebox.vision.coco import COCO80, COCO80_IDS
from tests.inference.accuracy.datasets import coco, picture, written

NAMES = ("a.png", "b.png")
UNUSED = {"image_id": 0, "category_id": 12, "bbox": [0, 0, 5, 5]}
"""Of a category whose number COCO does not use."""


@pytest.mark.parametrize(
    ("annotations", "pictures"),
    [
        ("annotations/instances_val2017.json", "val2017"),
        ("annotations/instances_val2017.json", "images"),
        ("annotations/instances_val2017.json", "images/val2017"),
        ("annotations/all.json", "."),
        ("labels.json", "."),
        ("labels.json", "images"),
        ("_annotations.coco.json", "."),
        ("valid/_annotations.coco.json", "valid"),
    ],
)
def test_pictures_are_found_where_they_usually_are(
    tmp_path: Path, annotations: str, pictures: str
) -> None:
    for name in NAMES:
        picture(tmp_path / pictures / name)
    written(tmp_path / annotations, coco())
    dataset = read_dataset(tmp_path)
    assert [each.path for each in dataset.pictures] == [
        tmp_path / pictures / name for name in NAMES
    ]
    assert dataset.categories == ("Traffic Light", "car", "yak")
    assert dataset.remarks == ()
    first, second = (each.truth for each in dataset.pictures)
    assert first.boxes.tolist() == [[1, 2, 11, 22], [5, 5, 25, 25]]
    assert first.labels.tolist() == [0, 1]
    assert first.crowd.tolist() == [False, True]
    assert first.areas is not None
    assert first.areas.tolist() == [150, 400]
    assert second.crowd.tolist() == [True]  # to be ignored
    named = read_dataset(tmp_path / annotations)
    assert [each.path for each in named.pictures] == [each.path for each in dataset.pictures]


def test_validation_goes_before_training(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        picture(tmp_path / split / "a.png")
        written(tmp_path / split / "_annotations.coco.json", coco(["a.png"]))
    dataset = read_dataset(tmp_path)
    assert dataset.name == f"{tmp_path.name}/valid"
    assert dataset.pictures[0].path.parent.name == "valid"
    written(tmp_path / "other/one.json", coco())
    written(tmp_path / "other/two.json", coco())
    with pytest.raises(InvalidInputError, match=r"several annotations \(one.json, two.json\)"):
        read_dataset(tmp_path / "other")


def test_names_cannot_lead_out_of_the_dataset(tmp_path: Path) -> None:
    picture(tmp_path / "secret.png")
    picture(tmp_path / "set" / "a.png")
    names = ["../secret.png", str(tmp_path / "secret.png"), "deep\\er/a.png"]
    written(tmp_path / "set" / "labels.json", coco(names))
    dataset = read_dataset(tmp_path / "set")
    assert [each.path for each in dataset.pictures] == [tmp_path / "set" / "a.png"]
    assert dataset.remarks == ("2 pictures are missing (the first: ../secret.png)",)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "no object with images"),
        (coco(images=[]), "images is empty: there is nothing to evaluate"),
        (coco(annotations=[]), "annotations is empty: there is nothing to evaluate"),
        (coco(annotations=[5]), "annotations must be a list of objects"),
        (
            coco(categories=[], annotations=[UNUSED]),
            "categories must give each category an id and a name",
        ),
        (coco(["gone.png"]), "none of its pictures was found .the first missing: gone.png"),
    ],
)
def test_what_is_wrong_with_annotations_is_said(
    tmp_path: Path, document: Any, message: str
) -> None:
    picture(tmp_path / "a.png")
    written(tmp_path / "labels.json", document)
    with pytest.raises(InvalidInputError, match=message):
        read_dataset(tmp_path)


def test_broken_and_absent_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such file or folder"):
        read_dataset(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match="no annotations here; wanted are COCO's"):
        read_dataset(tmp_path)
    (tmp_path / "labels.json").write_text('{"images": [')
    with pytest.raises(InvalidInputError, match="is not JSON"):
        read_dataset(tmp_path)


def test_odd_annotations_are_left_out_and_counted(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    good = coco()["annotations"][0]
    odd: list[dict[str, Any]] = [
        good | {"bbox": [1, 2, 0, 5]},
        good | {"bbox": [1, 2, 3]},
        good | {"bbox": [1, 2, float("nan"), 4]},
        good | {"bbox": None},
        good | {"category_id": 99},
        good | {"category_id": [1]},
    ]
    document = coco(["a.png"], annotations=[good, *odd])
    text = json.dumps(document).replace("NaN", "null")
    (tmp_path / "labels.json").write_text(text)
    dataset = read_dataset(tmp_path)
    assert len(dataset.pictures[0].truth.boxes) == 1
    assert dataset.remarks == (
        "6 annotations have no box or an unknown category, and are left out",
    )


def test_numbers_without_names_are_cocos(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    rows = [
        {"id": n, "image_id": 0, "category_id": number, "bbox": [0, 0, 5, 5]}
        for n, number in enumerate((1, 13, 90))
    ]
    written(tmp_path / "labels.json", coco(["a.png"], annotations=rows, categories=[]))
    dataset = read_dataset(tmp_path)
    names = [dataset.categories[label] for label in dataset.pictures[0].truth.labels]
    assert names == ["person", "stop sign", "toothbrush"]
    assert dataset.remarks == ("categories have no names; their numbers are taken for COCO's",)
    assert (len(COCO80), COCO80_IDS[-1]) == (80, 90)


def test_labels_are_matched_by_name_and_the_rest_is_listed(tmp_path: Path) -> None:
    for name in NAMES:
        picture(tmp_path / name)
    written(tmp_path / "labels.json", coco())
    fit = fitted(read_dataset(tmp_path), ("bus", "Car", "traffic_light"))
    first, second = (each.truth for each in fit.dataset.pictures)
    assert first.labels.tolist() == [2, 1]
    assert len(second.boxes) == 0
    assert fit.labels == {1, 2}
    assert fit.dataset.remarks == (
        "objects the family has no label for, left out: yak (1)",
        "labels the dataset does not have, not evaluated: bus",
    )
    with pytest.raises(InvalidInputError, match=r"have no label in common: .* Traffic Light, car"):
        fitted(read_dataset(tmp_path), ("bus",))
    with pytest.raises(InvalidInputError, match="nothing that the family knows is annotated"):
        fitted(read_dataset(tmp_path), ("car", "yak"))  # a crowd, and one to be ignored


def test_a_picture_of_another_size_is_not_the_annotated_one(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    written(tmp_path / "labels.json", coco(["a.png"]))
    (only,) = read_dataset(tmp_path).pictures
    assert only.truth_at(64, 48) is only.truth
    with pytest.raises(InvalidInputError, match="is 48 × 64 px, but annotated as 64 × 48"):
        only.truth_at(48, 64)


YOLO_NAMES = [
    "names: ['car', \"traffic light\"]",
    "names: [car, traffic light]",
    "names:\n  - car\n  - traffic light  # both kinds",
    "names:\n- car\n- 'traffic light'",
    "names:\n  0: car\n  1: traffic light",
    "names:\n  1: traffic light\n  0: car",
    "names: {0: 'car', 1: 'traffic light'}",
    "names: {1: 'traffic light', 0: 'car'}",
]


@pytest.mark.parametrize("names", YOLO_NAMES)
def test_yolo_labels(tmp_path: Path, names: str) -> None:
    folders = "path: .\ntrain: images/train\nval: ../images/val  # Roboflow's way"
    (tmp_path / "data.yaml").write_text(f"# made by hand\n{folders}\n{names}\n")
    for name in ("a.png", "b.png"):
        picture(tmp_path / "images" / "val" / name)
    labels = tmp_path / "labels" / "val"
    labels.mkdir(parents=True)
    (labels / "a.txt").write_text("0 0.5 0.5 0.5 0.25\n\n1 0.1 0.1 0.3 0.1 0.3 0.5\n")
    dataset = read_dataset(tmp_path)
    assert dataset.categories == ("car", "traffic light")
    assert dataset.remarks == ("1 pictures have no labels: nothing is on them",)
    first, second = dataset.pictures
    truth = first.truth_at(64, 48)
    np.testing.assert_allclose(truth.boxes, [[16.0, 18.0, 48.0, 30.0], [6.4, 4.8, 19.2, 24.0]])
    assert truth.labels.tolist() == [0, 1]
    assert len(second.truth_at(64, 48).boxes) == 0


@pytest.mark.parametrize(
    ("yaml", "label", "message"),
    [
        ("val: images", "0 1 1 1 1", "names is missing"),
        ("names: {0: car", "0 1 1 1 1", "names is missing"),
        ("names: {[0]: 'car'}", "0 1 1 1 1", "names is missing"),
        ("names: {1: 'person', 2: 'car'}", "1 1 1 1 1", "must number the classes from 0"),
        ("names:\n  1: person\n  2: car", "1 1 1 1 1", "must number the classes from 0"),
        ("names:\n  0: person\n  0: car", "0 1 1 1 1", "must number the classes from 0"),
        ("names: [car]\nval: nowhere", "0 1 1 1 1", "no folder of pictures that exists"),
        ("names: [car]\nval: images", "1 .5 .5 .5 .5", "line 1 is no label: a class from 0 to 0"),
        ("names: [car]\nval: images", "0 .5 .5 .5", "line 1 is no label"),
        ("names: [car]\nval: images", "0 nan .5 .5 .5", "line 1 is no label"),
        ("names: [car]\nval: images", "inf .5 .5 .5 .5", "line 1 is no label"),
        ("names: [car]\nval: images", "car .5 .5 .5 .5", "line 1 is no label"),
        ("names: [car]\nval: images", None, "is missing, and so are all other labels"),
        ("names: [car]\nval: labels", "0 .5 .5 .5 .5", "no pictures in this folder"),
    ],
)
def test_what_is_wrong_with_yolo_files_is_said(
    tmp_path: Path, yaml: str, label: str | None, message: str
) -> None:
    (tmp_path / "data.yaml").write_text(yaml)
    picture(tmp_path / "images" / "a.png")
    (tmp_path / "labels").mkdir()
    if label is not None:
        (tmp_path / "labels" / "a.txt").write_text(label)
    with pytest.raises(InvalidInputError, match=message):
        read_dataset(tmp_path)


def test_numbers_of_pictures_and_categories_that_are_none_are_left_out(tmp_path: Path) -> None:
    for name in NAMES:
        picture(tmp_path / name)
    document = coco()
    document["images"][1]["id"] = [2]
    written(tmp_path / "labels.json", document)
    first, second = read_dataset(tmp_path).pictures
    assert len(first.truth.boxes) > 0
    assert len(second.truth.boxes) == 0
    document["annotations"][0]["category_id"] = {}
    del document["categories"]
    written(tmp_path / "labels.json", document)
    assert "left out" in read_dataset(tmp_path).remarks[1]
