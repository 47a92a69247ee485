"""Makes the bundled detector compute in half precision, and judges both on synthetic streets."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

from benchmarks.gpu_points import opened
from edgebox.domain.model_family import Variant
from edgebox.inference.accuracy.inference_run import as_sent
from edgebox.inference.executor import come_back
from edgebox.inference.family import Family
from edgebox.inference.importing.fp16 import halve, single_precision
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import Provider
from edgebox.inference.zoo import load_family
from edgebox.scene.street_camera import Scene, SceneFrame
from edgebox.vision.average_precision import (
    ImageTruth,
    as_boxes,
    average_precision,
    too_small_or_hidden,
)
from edgebox.vision.detections import Detections

SCENES_FROM = 900_000
"""The first seed of scenes that training never saw."""
MOMENT_S = 3.0
LEAST_HEIGHT_PX, LEAST_VISIBLE = 12.0, 0.5
"""What is smaller, or mostly hidden, is not judged."""
SCORE_FLOOR = 0.001
"""Average precision ranks detections by score, so it needs nearly all of them."""


def halved(family: Family, folder: Path) -> Family:
    """Write a family of one file in half precision, as an import would; return it.

    Args:
        family: its file has its operators in one graph.
        folder: made.
    """
    file = family.model_files[0]
    model = onnx.load(str(file.path))
    rounded = halve(model.graph, 0, len(model.graph.node), single_precision(model))
    assert rounded, "nothing of the bundled detector could be computed in half precision"
    folder.mkdir()
    content = model.SerializeToString()
    (folder / file.path.name).write_bytes(content)
    manifest = (file.path.parent / "family.toml").read_text(encoding="utf-8")
    manifest = manifest.replace(file.sha256, hashlib.sha256(content).hexdigest())
    (folder / "family.toml").write_text(manifest, encoding="utf-8")
    return load_family(folder)


def streets(count: int) -> list[SceneFrame]:
    """Return pictures of 1280 x 720 px of that many scenes, and what is on them."""
    return [Scene(SCENES_FROM + number, 1280, 720).render(MOMENT_S) for number in range(count)]


def precision(
    family: Family, provider: Provider, variants: Sequence[Variant], frames: Sequence[SceneFrame]
) -> dict[str, float]:
    """Return the mAP of variants on pictures that come as a camera sends them.

    Raises:
        ModelError: a batch failed.
    """
    executor = opened(family, provider, score_floor=SCORE_FLOOR)
    try:
        truths = [_truth(frame, family.labels) for frame in frames]
        return {
            variant.name: average_precision(
                truths,
                [_found(executor, family, variant, frame) for frame in frames],
                len(family.labels),
            ).mean
            for variant in variants
        }
    finally:
        executor.close()


def _found(
    executor: OnnxExecutor, family: Family, variant: Variant, frame: SceneFrame
) -> Detections:
    canvas, placed = as_sent(frame.rgb, variant, family.input)
    future = executor.submit(variant.name, [canvas], 1)
    result = come_back(future, executor, f"a picture of {variant.name}")
    height_px, width_px = frame.rgb.shape[:2]
    return placed.to_source(result.detections[0], width_px, height_px)


def _truth(frame: SceneFrame, labels: Sequence[str]) -> ImageTruth:
    boxes = as_boxes([each.box for each in frame.objects])
    numbers = np.array([labels.index(each.label) for each in frame.objects], np.int64)
    visible = np.array([each.visible_fraction for each in frame.objects])
    excused = too_small_or_hidden(boxes, visible, LEAST_HEIGHT_PX, LEAST_VISIBLE)
    return ImageTruth(boxes, numbers, excused)
