"""Owns the training data: crops of vehicles as a pipeline cuts them, and batches of them.

A crop is cut from the picture as sent: rendered at 1280x720, shrunk to a width from 320 to 1280 px,
JPEG, decoded. Everything follows from the seeds passed in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray

from edgebox.media.jpeg import decode, encode, lay_into, resize_rgb
from edgebox.scene.street_camera import Scene, SceneObject
from models.vehicles.network import ATTRIBUTES, COLOURS, TYPES

Pixels = NDArray[np.uint8]

SOURCE_PX = (1280, 720)
SENT_WIDTHS_PX = (320, 1280)
QUALITIES = (70, 95)
MARGIN_SHARE = 0.35  # of the box's sides, kept around it in a stored crop
STORED_SIDE_MAX_PX = 224  # larger crops are stored smaller
HEIGHT_MIN_PX, VISIBLE_MIN = 7.0, 0.35  # what is smaller or hidden more is not trained on
TRAINING_SEEDS_FROM, HELD_OUT_SEEDS_FROM = 20_000, 920_000


@dataclass(frozen=True)
class VehicleCrop:
    """A piece of a sent picture around a vehicle."""

    rgb: Pixels  #: (h, w, 3): the box and a margin, as far as the picture goes
    box: tuple[float, float, float, float]  # xyxy, px of `rgb`
    height_px: float  # of the box in the picture as sent
    answers: tuple[int, ...]  # for each attribute the index of the true label

    @property
    def side_px(self) -> float:
        """The square root of the box's area in the picture as sent."""
        left, top, right, bottom = self.box
        return self.height_px * math.sqrt((right - left) / (bottom - top))


def answers_of(item: SceneObject) -> tuple[int, int]:
    """Return the indices of a vehicle's type and colour."""
    assert item.colour is not None
    return TYPES.index(item.label), COLOURS.index(item.colour)


def sent_pictures(
    seed: int, moments: int
) -> Iterator[tuple[Pixels, float, tuple[SceneObject, ...]]]:
    """Render a scene at some moments; yield each picture as sent, its scale, and what it shows."""
    scene, rng = Scene(seed, *SOURCE_PX), np.random.default_rng(seed)
    for moment in range(moments):
        frame = scene.render(3.0 + 13.7 * moment)
        low, high = map(math.log, SENT_WIDTHS_PX)
        width = round(math.exp(rng.uniform(low, high)))
        scale = width / SOURCE_PX[0]
        sent = resize_rgb(frame.rgb, width, round(SOURCE_PX[1] * scale))
        yield decode(encode(sent, int(rng.integers(*QUALITIES)))), scale, frame.objects


def vehicle_crops(seed: int, moments: int, visible_min: float = VISIBLE_MIN) -> list[VehicleCrop]:
    """Cut the vehicles out of some pictures of a scene."""
    found = []
    for picture, scale, objects in sent_pictures(seed, moments):
        for item in objects:
            box = np.array(item.box) * scale
            if (
                item.colour is None
                or item.visible_fraction < visible_min
                or box[3] - box[1] < HEIGHT_MIN_PX
            ):
                continue
            found.append(_stored(picture, box, answers_of(item)))
    return found


def _stored(picture: Pixels, box: NDArray[np.float64], answers: tuple[int, ...]) -> VehicleCrop:
    margin = MARGIN_SHARE * (box[2:] - box[:2]) + 2
    left, top = np.maximum(np.floor(box[:2] - margin), 0).astype(int)
    right, bottom = np.ceil(box[2:] + margin).astype(int)
    rgb = picture[top:bottom, left:right]
    smaller = min(1.0, STORED_SIDE_MAX_PX / max(rgb.shape[:2]))
    if smaller < 1.0:
        rgb = resize_rgb(rgb, *(max(1, round(side * smaller)) for side in rgb.shape[1::-1]))
    corners = ((box - (left, top, left, top)) * smaller).tolist()
    return VehicleCrop(rgb.copy(), tuple(corners), float(box[3] - box[1]), answers)


def _of_scene(job: tuple[int, int, float]) -> list[VehicleCrop]:
    return vehicle_crops(*job)


def cut_crops(
    file: Path,
    seeds: Sequence[int],
    moments: int,
    workers: int,
    *,
    visible_min: float = VISIBLE_MIN,
) -> None:
    """Write the crops of some scenes into one file, unless it is there already."""
    if file.exists():
        return
    found: list[VehicleCrop] = []
    with (
        Pool(workers) as pool,
        click.progressbar(
            pool.imap(_of_scene, [(seed, moments, visible_min) for seed in seeds]),
            length=len(seeds),
            label="rendering",
        ) as scenes,
    ):
        for crops in scenes:
            found += crops
    partial = file.with_suffix(".partial.npz")
    np.savez(
        partial,
        pixels=np.concatenate([crop.rgb.ravel() for crop in found]),
        shapes=np.array([crop.rgb.shape[:2] for crop in found]),
        boxes=np.array([crop.box for crop in found]),
        heights=np.array([crop.height_px for crop in found]),
        answers=np.array([crop.answers for crop in found]),
    )
    partial.replace(file)


def load_crops(file: Path) -> list[VehicleCrop]:
    """Read the crops that `cut_crops` wrote."""
    with np.load(file) as stored:
        pixels, shapes = stored["pixels"], stored["shapes"]
        rest = zip(stored["boxes"], stored["heights"], stored["answers"], strict=True)
    ends = np.cumsum(3 * shapes.prod(axis=1))
    return [
        VehicleCrop(
            pixels[end - 3 * height * width : end].reshape(height, width, 3),
            tuple(box.tolist()),
            float(tall),
            tuple(answers.tolist()),
        )
        for end, (height, width), (box, tall, answers) in zip(ends, shapes, rest, strict=True)
    ]


def cut(crop: VehicleCrop, box: NDArray[np.float64], side_px: int) -> Pixels:
    """Return the canvas (side, side, 3) for a box xyxy, px of the crop, as a pipeline makes it."""
    limits = np.array(crop.rgb.shape[1::-1])
    left, top = np.clip(np.floor(box[:2]), 0, limits - 2).astype(int)
    right, bottom = np.clip(np.ceil(box[2:]), (left + 2, top + 2), limits).astype(int)
    canvas = np.empty((side_px, side_px, 3), np.uint8)
    lay_into(np.ascontiguousarray(crop.rgb[top:bottom, left:right]), canvas, fit="stretch")
    return canvas


def jittered(crop: VehicleCrop, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the crop's box as an imperfect detector would give it, with a margin; xyxy px.

    Each side is off by up to about a tenth of the box, and the margin is up to a fifth.
    """
    box = np.array(crop.box)
    sides = np.tile(box[2:] - box[:2], 2)
    margin = rng.uniform(0.0, 0.2)
    outwards = np.array((-1, -1, 1, 1)) * margin
    return box + sides * (outwards + rng.normal(0.0, 0.05, 4).clip(-0.12, 0.12))


class Batches(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
    """Endless batches of crops, all of a batch of one size: canvases and answers."""

    def __init__(
        self, crops: Sequence[VehicleCrop], sides_px: Sequence[int], pixels: int, seed: int
    ) -> None:
        self._crops, self._sides_px, self._pixels = crops, sides_px, pixels
        self._rng = np.random.default_rng(seed)
        answers = np.array([crop.answers for crop in crops])
        kinds = answers[:, 0] * len(ATTRIBUTES[1][1]) + answers[:, 1]
        # Rare kinds come more often than their number would have it.
        shares = 1 / np.sqrt(np.bincount(kinds)[kinds])
        self._shares = np.cumsum(shares / shares.sum())

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        rng = self._rng
        while True:
            side = int(rng.choice(self._sides_px))
            count = min(192, max(16, self._pixels // side**2))
            picked = np.searchsorted(self._shares, rng.random(count)).clip(0, len(self._crops) - 1)
            crops = [self._crops[index] for index in picked]
            canvases = np.stack([cut(crop, jittered(crop, rng), side) for crop in crops])
            mirrored = rng.random(count) < 0.5
            canvases[mirrored] = canvases[mirrored][:, :, ::-1]
            answers = np.array([crop.answers for crop in crops])
            yield torch.from_numpy(canvases), torch.from_numpy(answers)
