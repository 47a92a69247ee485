"""The classifier that ships: files that belong together, an accuracy that holds on new scenes."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from edgebox.domain.model_family import ExecutorId
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import decode, encode, lay_into, resize_rgb
from edgebox.scene.street_camera import COLOUR_NAMES, LABELS, Scene
from edgebox.vision.detections import Detections

FAMILY = Path(__file__).parents[2] / "models" / "vehicles"
HELD_OUT_SEEDS = range(990_100, 990_112)
SENT_WIDTHS_PX = (480, 800, 1280)
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Crop:
    """A vehicle cut out of a picture as a pipeline does it."""

    rgb: Pixels
    height_px: float
    truth: tuple[str, str]


@pytest.fixture(scope="module")
def family() -> Family:
    return load_family(FAMILY)


@pytest.fixture(scope="module")
def executor(family: Family) -> Iterator[OnnxExecutor]:
    executor = OnnxExecutor(ExecutorId("cpu/0"), [family], cpu_threads=1)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def crops() -> list[Crop]:
    """Cut the vehicles out of one sent picture of each held-out scene."""
    rng = np.random.default_rng(4)
    found = []
    for seed, width in zip(HELD_OUT_SEEDS, itertools.cycle(SENT_WIDTHS_PX), strict=False):
        frame = Scene(seed).render(8.0)
        scale = width / frame.rgb.shape[1]
        sent = decode(encode(resize_rgb(frame.rgb, width, round(frame.rgb.shape[0] * scale)), 85))
        for item in frame.objects:
            box = np.array(item.box) * scale
            height = float(box[3] - box[1])
            if item.colour is None or item.visible_fraction < 0.5 or height < 10:
                continue
            sides = np.tile(box[2:] - box[:2], 2)
            # A detector is a little off, and a pipeline leaves a margin.
            box += sides * (np.array((-0.1, -0.1, 0.1, 0.1)) + rng.normal(0, 0.05, 4))
            left, top = np.maximum(np.floor(box[:2]), 0).astype(int)
            right, bottom = np.ceil(box[2:]).astype(int)
            rgb = np.ascontiguousarray(sent[top:bottom, left:right])
            found.append(Crop(rgb, height, (item.label, item.colour)))
    return found


def answers(
    executor: OnnxExecutor, family: Family, crops: list[Crop], side_px: int
) -> list[Detections]:
    """Return what a variant says of crops, in batches of 16."""
    variant = next(v for v in family.variants if v.width_px == side_px)
    canvases = [np.empty((side_px, side_px, 3), np.uint8) for _ in crops]
    for crop, canvas in zip(crops, canvases, strict=True):
        lay_into(crop.rgb, canvas, family.input.fill, family.input.fit)
    said: list[Detections] = []
    for at in range(0, len(crops), 16):
        some = canvases[at : at + 16]
        said += executor.submit(variant.name, some, 16).result().detections
    return said


def best(family: Family, found: Detections) -> tuple[str, ...]:
    """Return the most likely label of each attribute."""
    out = []
    for attribute in family.attributes:
        rows = [
            (score, family.labels[label])
            for score, label in zip(found.scores.tolist(), found.labels.tolist(), strict=True)
            if family.attribute_names[label] == attribute.name
        ]
        out.append(max(rows)[1])
    return tuple(out)


def test_it_is_small_and_says_what_the_scene_knows(family: Family) -> None:
    (file,) = family.model_files
    assert file.path.stat().st_size < 1_500_000
    assert (FAMILY / "README.md").exists()
    assert [each.name for each in family.attributes] == ["type", "colour"]
    assert set(family.attributes[0].labels) == set(LABELS) - {"person"}
    assert family.attributes[1].labels == COLOUR_NAMES
    assert family.task == "classify"


def test_variants_rise_in_size_and_accuracy(family: Family) -> None:
    assert len(family.variants) >= 3
    for variant in family.variants:
        assert variant.name == f"vehicles-{variant.width_px}"
        assert variant.width_px == variant.height_px
    for smaller, larger in itertools.pairwise(family.variants):
        assert smaller.accuracy < larger.accuracy


@pytest.mark.parametrize("size", [(32, 32), (48, 96), (160, 112)])
def test_any_multiple_of_16_is_accepted(family: Family, size: tuple[int, int]) -> None:
    session = ort.InferenceSession(
        str(family.model_files[0].path), providers=["CPUExecutionProvider"]
    )
    images = np.random.default_rng(1).integers(0, 256, (3, *size, 3), dtype=np.uint8)
    (logits,) = session.run(None, {"images": images})
    assert logits.shape == (3, len(family.labels))
    assert np.isfinite(logits).all()


def test_a_batch_says_what_its_crops_say_alone(
    executor: OnnxExecutor, family: Family, crops: list[Crop]
) -> None:
    together = answers(executor, family, crops[:16], 48)
    for crop, one in zip(crops[:16], together, strict=True):
        (alone,) = answers(executor, family, [crop], 48)
        assert alone.labels.tolist() == one.labels.tolist()
        assert alone.scores == pytest.approx(one.scores, abs=1e-3)


def test_it_is_as_accurate_on_new_scenes_as_it_says(
    executor: OnnxExecutor, family: Family, crops: list[Crop]
) -> None:
    assert len(crops) > 90
    assert min(crop.height_px for crop in crops) < 14
    assert max(crop.height_px for crop in crops) > 80
    measured = {}
    for variant in family.variants:
        said = answers(executor, family, crops, variant.width_px)
        right = [best(family, one) == crop.truth for one, crop in zip(said, crops, strict=True)]
        measured[variant.width_px] = float(np.mean(right))
        # Three standard errors of a share of so many crops, rounded up.
        assert measured[variant.width_px] == pytest.approx(variant.accuracy, abs=0.12)
    assert measured[64] > 0.78
