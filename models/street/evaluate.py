"""Owns the accuracy_report of an exported detector on held-out scenes, one input size at a time.

The path is a camera's: render 1280x720, shrink to the canvas, JPEG, decode, infer.
"""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from PIL import Image

from edgebox.vision.average_precision import (
    ImageTruth,
    PrecisionReport,
    average_precision,
    too_small_or_hidden,
)
from edgebox.vision.detections import Detections
from models.street.data import (
    FILL,
    HELD_OUT_SEEDS_FROM,
    SOURCE_PX,
    RenderedScenes,
    Truth,
    render_scenes,
)
from models.street.export import VariantScore, canvas_height_px
from models.street.network import LABELS

# What is smaller in the 1280x720 source, or mostly hidden, is excused as a crowd is, not judged.
LEAST_HEIGHT_PX, LEAST_VISIBLE = 12.0, 0.5


@dataclass(frozen=True)
class Judged:
    """One variant's result."""

    score: VariantScore
    report: PrecisionReport
    latency_ms: float  # median of one inference with one thread


def held_out(folder: Path, scenes: int, workers: int) -> list[tuple[NDArray[np.uint8], Truth]]:
    """Return two pictures of each of some scenes that training never sees; kept in a folder."""
    render_scenes(folder, HELD_OUT_SEEDS_FROM, scenes, 2, workers)
    stored = RenderedScenes(folder)
    return [(stored.whole(index), truth) for index, truth in enumerate(stored.truths)]


def as_received(
    rgb: NDArray[np.uint8], width_px: int, quality: int
) -> tuple[NDArray[np.uint8], float]:
    """Return the canvas (h, w, 3) for a picture sent at a variant's size, and its scale."""
    canvas = np.full((canvas_height_px(width_px), width_px, 3), FILL, dtype=np.uint8)
    scale = min(width_px / SOURCE_PX[0], canvas.shape[0] / SOURCE_PX[1])
    size = (round(SOURCE_PX[0] * scale), round(SOURCE_PX[1] * scale))
    buffer = io.BytesIO()
    Image.fromarray(rgb).resize(size, Image.Resampling.BILINEAR).save(
        buffer, "JPEG", quality=quality
    )
    canvas[: size[1], : size[0]] = np.asarray(Image.open(buffer))
    return canvas, scale


def judge(
    session: ort.InferenceSession,
    pictures: Sequence[tuple[NDArray[np.uint8], Truth]],
    width_px: int,
) -> Judged:
    """Judge one input size."""
    truths, found, spent = [], [], []
    for index, (rgb, truth) in enumerate(pictures):
        canvas, scale = as_received(rgb, width_px, 80 + index % 11)
        began = time.perf_counter()
        boxes, scores, labels = session.run(["boxes", "scores", "labels"], {"images": canvas[None]})
        spent.append(time.perf_counter() - began)
        here = Detections(boxes[0], scores[0], labels[0])
        found.append(here.scaled(1 / scale, 1 / scale, *SOURCE_PX))
        excused = too_small_or_hidden(
            truth.boxes.astype(np.float64), truth.visible, LEAST_HEIGHT_PX, LEAST_VISIBLE
        )
        truths.append(ImageTruth(truth.boxes.astype(np.float64), truth.labels, excused))
    report = average_precision(truths, found, len(LABELS))
    score = VariantScore(
        width_px, canvas_height_px(width_px), report.mean, report.mean_at(0.5), report.mean_at(0.75)
    )
    return Judged(score, report, float(np.median(spent)) * 1e3)


def worth_offering(judged: Sequence[Judged]) -> list[VariantScore]:
    """Return the variants, by rising size, that are more accurate than every smaller one."""
    kept: list[VariantScore] = []
    for item in judged:
        if not kept or item.score.accuracy > kept[-1].accuracy:
            kept.append(item.score)
    return kept
