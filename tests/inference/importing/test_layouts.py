"""Every row of the table: an imported model finds exactly what was planted in its outputs."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgebox.domain.model_family import ExecutorId
from edgebox.inference.importing.importer import Imported, ImportOptions, import_family
from edgebox.inference.importing.layouts import LAYOUTS
from edgebox.inference.importing.recognition import on_canvas
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.scene.street_camera import Scene
from edgebox.vision.detections import Detections
from tests.inference.importing.planted import (
    HEIGHT,
    LABELS,
    OBJECTS,
    WIDTH,
    Raw,
    Tiny,
    own_number,
    write,
)
from tests.inference.importing.zoo_of_layouts import DETECTORS, Scored, layout

ALONE = {"rtdetr_imagenet", "hf_deformable"}
"""Layouts that look like another one, which is believed first."""


@cache
def pictures() -> tuple[NDArray[np.uint8], ...]:
    """Return (height, width, 3) RGB pictures of several shapes."""
    return (
        Scene(3).render(2.0).rgb,
        np.full((90, 120, 3), (250, 90, 10), np.uint8),
        np.full((200, 50, 3), (5, 60, 240), np.uint8),
    )


def imported(tmp_path: Path, tiny: Tiny, import_options: ImportOptions) -> Imported:
    """Import a tiny model."""
    file = tmp_path / "tiny.onnx"
    file.write_bytes(write(tiny))
    return import_family([file], tmp_path / "models", import_options)


def found_by(result: Imported, pictures: tuple[NDArray[np.uint8], ...]) -> list[Detections]:
    """Return what an executor finds on pictures, in one batch where the family can."""
    how = result.candidate.match.layout.preprocessing
    variant = result.family.variants[0]
    executor = OnnxExecutor(ExecutorId("cpu/0"), [result.family], providers="cpu", cpu_threads=1)
    try:
        size_px = (variant.width_px, variant.height_px)
        canvases = [on_canvas(picture, how, size_px) for picture in pictures]
        if result.family.batch_size_fixed is None:
            return executor.submit(variant.name, canvases, len(canvases)).result().detections
        out = []
        for canvas in canvases:
            batch = result.family.batch_size_fixed
            out += executor.submit(variant.name, [canvas], batch).result().detections
        return out
    finally:
        executor.close()


def assert_found(found: Detections, tiny: Tiny, picture: NDArray[np.uint8], scored: Scored) -> None:
    """Insist that the planted objects were found, and nothing else."""
    own = own_number(tiny.how, on_canvas(picture, tiny.how, (WIDTH, HEIGHT)))
    expected = [(each.label, scored(each.score, own), each.box) for each in OBJECTS]
    rows = sorted(
        (int(label), float(score), box)
        for label, score, box in zip(found.labels, found.scores, found.boxes.tolist(), strict=True)
    )
    assert len(rows) == len(expected), rows
    for (label, score, box), planted in zip(rows, sorted(expected), strict=True):
        assert label == planted[0]
        assert score == pytest.approx(planted[1], abs=2e-3)
        assert box == pytest.approx(planted[2], abs=0.05)


def test_every_layout_is_tried() -> None:
    classifiers = {each.name for each in LAYOUTS if each.task == "classify"}
    assert set(DETECTORS) | classifiers == {each.name for each in LAYOUTS}


def test_the_page_lists_them_all() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "models.md").read_text(encoding="utf-8")
    for each in LAYOUTS:
        assert f"| `{each.name}` | " in page
    assert len({each.name for each in LAYOUTS}) == len(LAYOUTS)
    assert {each.rather for each in LAYOUTS} - {""} <= {each.name for each in LAYOUTS}


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_finds_what_was_planted(tmp_path: Path, name: str) -> None:
    build, scored = DETECTORS[name]
    tiny = build()
    forced = layout(name) if name in ALONE else None
    result = imported(tmp_path, tiny, ImportOptions(labels=LABELS, layout=forced))
    assert result.candidate.name == name
    assert result.family.labels == LABELS
    assert [(v.width_px, v.height_px) for v in result.family.variants] == [(WIDTH, HEIGHT)]
    assert result.family.batch_size_fixed is None
    assert result.compared > 0
    for found, picture in zip(found_by(result, pictures()), pictures(), strict=True):
        assert_found(found, tiny, picture, scored)


@pytest.mark.parametrize("name", ["yolov8", "yolox", "hf_detr", "nanodet_plus", "nms_counted"])
@pytest.mark.parametrize("opset", [11, 12, 17])
def test_every_opset_will_do(tmp_path: Path, name: str, opset: int) -> None:
    build, scored = DETECTORS[name]
    tiny = build()
    tiny.opset = opset
    result = imported(tmp_path, tiny, ImportOptions(labels=LABELS))
    (found,) = found_by(result, pictures()[:1])
    assert_found(found, tiny, pictures()[0], scored)


def test_channels_last_and_halves_are_fed_as_they_want(tmp_path: Path) -> None:
    build, scored = DETECTORS["end_to_end"]
    tiny = build()
    tiny.channels_last = tiny.half = True
    result = imported(tmp_path, tiny, ImportOptions(labels=LABELS))
    (found,) = found_by(result, pictures()[:1])
    own = own_number(tiny.how, on_canvas(pictures()[0], tiny.how, (WIDTH, HEIGHT)))
    assert sorted(found.labels) == sorted(each.label for each in OBJECTS)
    assert found.scores.max() == pytest.approx(scored(OBJECTS[0].score, own), abs=5e-3)


def test_a_fixed_batch_is_filled(tmp_path: Path) -> None:
    build, scored = DETECTORS["yolov8"]
    tiny = build()
    tiny.batch = 2
    result = imported(tmp_path, tiny, ImportOptions(labels=LABELS))
    assert result.family.batch_size_fixed == 2
    assert any("takes batches of 2 only" in remark for remark in result.remarks)
    for found, picture in zip(found_by(result, pictures()), pictures(), strict=True):
        assert_found(found, tiny, picture, scored)


@pytest.mark.parametrize("name", ["classifier", "classifier_softmax"])
def test_a_classifier_names_the_picture(tmp_path: Path, name: str) -> None:
    logits = np.array([1.0, 3.0, 2.0, -4.0, 0.5, -1.0, 0.0], np.float32)
    follows = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], np.float32)
    shares = np.exp(logits) / np.exp(logits).sum()
    values = logits if name == "classifier" else shares
    raw = Raw("output", values, follows if name == "classifier" else None)
    tiny = Tiny([raw], layout(name).preprocessing)
    result = imported(tmp_path, tiny, ImportOptions())
    assert result.candidate.name == name
    assert result.family.task == "classify"
    assert result.family.labels[1] == "class 1"
    for found, picture in zip(found_by(result, pictures()), pictures(), strict=True):
        own = own_number(tiny.how, on_canvas(picture, tiny.how, (WIDTH, HEIGHT)))
        expected = np.exp(logits + follows * (own if name == "classifier" else 0.0))
        expected = np.sort(expected / expected.sum())[::-1]
        assert found.labels[0] == 1
        assert found.scores == pytest.approx(expected[expected >= 0.05][:5], abs=1e-3)
        assert (found.boxes == [0, 0, WIDTH, HEIGHT]).all()


@pytest.mark.parametrize("name", ["classifier", "classifier_softmax"])
def test_a_classifier_that_is_sure_is_taken(tmp_path: Path, name: str) -> None:
    logits = np.array([-9.0, 9.0], np.float32)
    raw = Raw("output", logits if name == "classifier" else np.exp(logits) / np.exp(logits).sum())
    result = imported(tmp_path, Tiny([raw], layout(name).preprocessing), ImportOptions())
    (found,) = found_by(result, pictures()[:1])
    assert found.labels.tolist() == [1]
    assert found.scores == pytest.approx([1.0])
    assert result.compared


def test_ultralytics_says_of_its_classifiers_how_they_are_fed(tmp_path: Path) -> None:
    values = np.array([0.1, 0.7, 0.2], np.float32)
    metadata = {"task": "classify", "names": "{0: 'cat', 1: 'dog', 2: 'cat'}"}
    tiny = Tiny(
        [Raw("output0", values)], layout("classifier_ultralytics").preprocessing, metadata=metadata
    )
    result = imported(tmp_path, tiny, ImportOptions())
    assert result.candidate.name == "classifier_ultralytics"
    assert result.family.labels == ("cat", "dog", "cat (2)")
    (found,) = found_by(result, pictures()[:1])
    assert found.scores == pytest.approx([0.7, 0.2, 0.1])
