"""The street family that ships: files that belong together, a graph that keeps its promises."""

import hashlib
import io
import itertools
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from PIL import Image

from edgebox.scene.street_camera import LABELS, Scene
from edgebox.vision.average_precision import ImageTruth, average_precision, too_small_or_hidden
from edgebox.vision.detections import Detections

FAMILY = Path(__file__).parents[2] / "models" / "street"
HELD_OUT_SEEDS = range(990_000, 990_010)
Pixels = NDArray[np.uint8]


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return tomllib.loads((FAMILY / "family.toml").read_text())


@pytest.fixture(scope="module")
def session(manifest: dict[str, Any]) -> ort.InferenceSession:
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(
        str(FAMILY / manifest["file"]), options, providers=["CPUExecutionProvider"]
    )


@pytest.fixture(scope="module")
def pictures() -> list[tuple[Pixels, ImageTruth]]:
    """Render one moment of each held-out scene."""
    found = []
    for seed in HELD_OUT_SEEDS:
        frame = Scene(seed).render(8.0)
        boxes = np.array([item.box for item in frame.objects], dtype=np.float64).reshape(-1, 4)
        visible = np.array([item.visible_fraction for item in frame.objects])
        labels = np.array([LABELS.index(item.label) for item in frame.objects], dtype=np.int64)
        excused = too_small_or_hidden(boxes, visible, 12.0, 0.5)
        found.append((frame.rgb, ImageTruth(boxes, labels, excused)))
    return found


def on_canvas(rgb: Pixels, variant: dict[str, Any], fill: int) -> tuple[Pixels, float]:
    """Return a picture as a camera would send it for a variant, and its scale."""
    width, height = variant["width_px"], variant["height_px"]
    scale = min(width / rgb.shape[1], height / rgb.shape[0])
    size = (round(rgb.shape[1] * scale), round(rgb.shape[0] * scale))
    sent = io.BytesIO()
    Image.fromarray(rgb).resize(size, Image.Resampling.BILINEAR).save(sent, "JPEG", quality=85)
    canvas = np.full((height, width, 3), fill, dtype=np.uint8)
    canvas[: size[1], : size[0]] = np.asarray(Image.open(sent))
    return canvas, scale


def test_the_manifest_names_this_very_file(manifest: dict[str, Any]) -> None:
    content = (FAMILY / manifest["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == manifest["sha256"]
    assert len(content) < 8_000_000
    assert tuple(manifest["labels"]) == LABELS
    assert (FAMILY / "README.md").exists()


def test_variants_rise_in_size_and_accuracy(manifest: dict[str, Any]) -> None:
    variants = manifest["variants"]
    assert len(variants) >= 6
    multiple = manifest["input"]["size_multiple_px"]
    for variant in variants:
        assert variant["name"] == f"street-{variant['width_px']}"
        assert variant["width_px"] % multiple == variant["height_px"] % multiple == 0
        rows = variant["width_px"] * 9 / 16
        assert rows <= variant["height_px"] < rows + multiple
        assert 0 < variant["map75"] < variant["accuracy"] + 0.2
        assert variant["accuracy"] < variant["map50"] < 1
    for smaller, larger in itertools.pairwise(variants):
        assert smaller["width_px"] < larger["width_px"]
        assert smaller["accuracy"] < larger["accuracy"]


def test_inputs_and_outputs_are_as_the_manifest_says(
    session: ort.InferenceSession, manifest: dict[str, Any]
) -> None:
    (images,) = session.get_inputs()
    assert (images.name, images.type, images.shape[3]) == ("images", "tensor(uint8)", 3)
    outputs = {item.name: item.type for item in session.get_outputs()}
    assert outputs == {
        "boxes": "tensor(float)",
        "scores": "tensor(float)",
        "labels": "tensor(int64)",
    }
    assert manifest["output"]["decoder"] == "_".join(outputs)


@pytest.mark.parametrize("size", [(96, 128), (128, 96), (352, 608), (32, 32), (224, 416)])
def test_any_multiple_of_32_is_accepted(
    session: ort.InferenceSession, size: tuple[int, int]
) -> None:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (2, *size, 3), dtype=np.uint8)
    boxes, scores, labels = session.run(None, {"images": images})
    assert boxes.shape == (2, 100, 4)
    assert scores.shape == labels.shape == (2, 100)
    assert np.isfinite(boxes).all()
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (np.diff(scores, axis=1) <= 0).all()
    assert ((labels >= 0) & (labels < len(LABELS))).all()


def test_a_batch_of_eight_equals_eight_single_runs(
    session: ort.InferenceSession,
    pictures: list[tuple[Pixels, ImageTruth]],
    manifest: dict[str, Any],
) -> None:
    variant = next(item for item in manifest["variants"] if item["width_px"] >= 256)
    canvases = np.stack([on_canvas(rgb, variant, 114)[0] for rgb, _ in pictures[:8]])
    together = session.run(None, {"images": canvases})
    for index, canvas in enumerate(canvases):
        alone = session.run(None, {"images": canvas[None]})
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], other[index], rtol=1e-4, atol=1e-3)


def test_larger_variants_see_clearly_more(
    session: ort.InferenceSession,
    pictures: list[tuple[Pixels, ImageTruth]],
    manifest: dict[str, Any],
) -> None:
    measured = []
    for variant in (manifest["variants"][0], manifest["variants"][-1]):
        found = []
        for rgb, _ in pictures:
            canvas, scale = on_canvas(rgb, variant, manifest["input"]["fill"])
            boxes, scores, labels = session.run(None, {"images": canvas[None]})
            seen = Detections(boxes[0], scores[0], labels[0])
            found.append(seen.scaled(1 / scale, 1 / scale, rgb.shape[1], rgb.shape[0]))
        report = average_precision([truth for _, truth in pictures], found, len(LABELS))
        measured.append(report.mean)
        assert report.mean == pytest.approx(variant["accuracy"], abs=0.12)
    assert measured[1] > 0.35
    assert measured[0] < measured[1] - 0.2
