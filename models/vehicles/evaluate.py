"""Owns the judgement of an exported classifier on held-out scenes, one input size at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from models.training.course import replaces
from models.training.graph_files import open_session
from models.vehicles.data import (
    HELD_OUT_SEEDS_FROM,
    VehicleCrop,
    cut,
    cut_crops,
    jittered,
    load_crops,
)
from models.vehicles.export import SIDES_PX, VariantScore, write_manifest
from models.vehicles.network import ATTRIBUTES

HEIGHT_MIN_PX, VISIBLE_MIN = 10.0, 0.5  # what is smaller or hidden more is not judged
HEIGHTS_PX = (10, 14, 20, 32, 64, 10_000)
"""Limits of the ranges that are told apart, of the vehicle's height in the picture as sent."""
SIDES_FROM_PX = (0, 12, 16, 24, 40, 72)
"""Where the ranges begin for which the manifest has an accuracy, of the square root of the
vehicle's area in the picture as sent."""
BATCH = 16
CHECK_SIDE_PX = 64
_RUNS = 100


@dataclass(frozen=True)
class Judged:
    """One variant's result."""

    score: VariantScore
    by_height: tuple[float, ...]  # every attribute right, for each range of HEIGHTS_PX
    alone_ms: float  # median with one thread
    batch_ms: float  # the same of BATCH crops together


def held_out(file: Path, scenes: int, workers: int) -> list[VehicleCrop]:
    """Return the crops of some scenes that training never sees; kept in a file."""
    seeds = range(HELD_OUT_SEEDS_FROM, HELD_OUT_SEEDS_FROM + scenes)
    cut_crops(file, seeds, 4, workers, visible_min=VISIBLE_MIN)
    return [crop for crop in load_crops(file) if crop.height_px >= HEIGHT_MIN_PX]


def judge(session: ort.InferenceSession, crops: Sequence[VehicleCrop], side_px: int) -> Judged:
    """Judge one input size, on boxes as an imperfect detector gives them."""
    rng = np.random.default_rng(1)
    canvases = [cut(crop, jittered(crop, rng), side_px) for crop in crops]
    logits = np.concatenate(
        [
            session.run(None, {"images": np.stack(canvases[at : at + 64])})[0]
            for at in range(0, len(canvases), 64)
        ]
    )
    right = right_answers(logits, crops)
    both = right.all(axis=1)
    heights = np.array([crop.height_px for crop in crops])
    ranges = np.digitize(heights, HEIGHTS_PX[1:-1])
    return Judged(
        VariantScore(
            side_px,
            float(both.mean()),
            tuple(right.mean(axis=0).tolist()),
            by_side(np.array([crop.side_px for crop in crops]), both),
        ),
        tuple(float(both[ranges == at].mean()) for at in range(len(HEIGHTS_PX) - 1)),
        _median_ms(session, 1, side_px),
        _median_ms(session, BATCH, side_px),
    )


def by_side(
    sides_px: NDArray[np.float64], right: NDArray[np.bool_]
) -> tuple[tuple[float, float], ...]:
    """Return the mean side of each range of `SIDES_FROM_PX`, and the share of right answers there.

    Args:
        sides_px: (n,), the square root of each object's area in the picture as sent.
        right: (n,), whether its answer is right.
    """
    ranges = np.digitize(sides_px, SIDES_FROM_PX[1:])
    of_ranges = (ranges == at for at in range(len(SIDES_FROM_PX)))
    return tuple(
        (float(sides_px[of].mean()), float(right[of].mean())) for of in of_ranges if of.any()
    )


def right_answers(logits: NDArray[np.float32], crops: Sequence[VehicleCrop]) -> NDArray[np.bool_]:
    """Return (n, attributes): which answers are right."""
    ends = np.cumsum([len(labels) for _, labels in ATTRIBUTES])
    parts = np.split(logits, ends[:-1], axis=1)
    answers: NDArray[np.int64] = np.stack([part.argmax(axis=1) for part in parts], axis=1)
    return answers == np.array([crop.answers for crop in crops])


def _median_ms(session: ort.InferenceSession, batch: int, side_px: int) -> float:
    images = np.zeros((batch, side_px, side_px, 3), np.uint8)
    spent = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        session.run(None, {"images": images})
        spent.append(time.perf_counter() - began)
    return float(np.median(spent)) * 1e3


def judge_all(path: Path, crops: Sequence[VehicleCrop]) -> list[Judged]:
    """Judge an exported classifier at every size and print the table of the model card."""
    session = open_session(path)
    click.echo(f"{len(crops)} crops")
    judged = [judge(session, crops, side) for side in SIDES_PX]
    for item in judged:
        score = item.score
        cells = (
            f"vehicles-{score.side_px}",
            *(f"{share:.3f}" for share in (*score.of_attributes, score.accuracy)),
            *(f"{share:.2f}" for share in item.by_height),
            f"{item.alone_ms:.2f}",
            f"{item.batch_ms:.2f}",
        )
        click.echo(f"| {' | '.join(cells)} |")
    return judged


def put_in_place(
    candidate: Path, judged: Sequence[Judged], out: Path, crops: Sequence[VehicleCrop]
) -> None:
    """Write the classifier and its manifest, unless the one in place is judged to be better."""
    place = out / "vehicles.onnx"
    new = next(item.score.accuracy for item in judged if item.score.side_px == CHECK_SIDE_PX)

    def accuracy(path: Path) -> float:
        return judge(open_session(path), crops, CHECK_SIDE_PX).score.accuracy

    if not replaces(place, new, accuracy, CHECK_SIDE_PX):
        return
    place.write_bytes(candidate.read_bytes())
    write_manifest(place, out / "family.toml", [item.score for item in judged])
    click.echo(f"wrote {place} and its manifest")
