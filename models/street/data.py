"""Owns the training data: rendered scenes on disk, and random views of them as batches.

Everything follows from the seeds passed in. Limits: rendered pictures are kept uncompressed
(3.5 MB each with the half-size copy), so that a random view costs little.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import IterableDataset

from edgebox.scene.street_camera import Scene
from models.street.network import LABELS, STRIDE_PX

SOURCE_PX = (1280, 720)
FILL = 114
LARGEST_FROM_HALF = 0.31  # up to this scale the half-size copy looks the same
LEAST_VISIBLE = 0.3  # what is hidden more is neither asked for nor held against the detector
LARGEST_WHOLE_PX = 650  # wider inputs are only trained on in crops
LEAST_SIDE_PX = 2.2  # in the detector's input; what is smaller is left out of training
TRAINING_SEEDS_FROM, HELD_OUT_SEEDS_FROM = 1_000, 900_000


@dataclass(frozen=True)
class Truth:
    """What one picture shows."""

    boxes: NDArray[np.float32]  #: (n, 4) xyxy, source px
    labels: NDArray[np.int64]  #: (n,)
    visible: NDArray[np.float32]  #: (n,) share of each object that shows, 0..1


def render_moments(seed: int, moments: int) -> list[tuple[NDArray[np.uint8], Truth]]:
    """Render a scene at some moments, far enough apart that the traffic has changed."""
    scene = Scene(seed, *SOURCE_PX)
    rendered = []
    for moment in range(moments):
        frame = scene.render(3.0 + 13.7 * moment)
        truth = Truth(
            np.array([o.box for o in frame.objects], dtype=np.float32).reshape(-1, 4),
            np.array([LABELS.index(o.label) for o in frame.objects], dtype=np.int64),
            np.array([o.visible_fraction for o in frame.objects], dtype=np.float32),
        )
        rendered.append((frame.rgb, truth))
    return rendered


def _render_into(job: tuple[Path, int, int, int, int]) -> tuple[int, list[Truth]]:
    folder, index, seed, moments, pictures = job
    full, half = _open(folder, pictures, "r+")
    truths = []
    for number, (rgb, truth) in enumerate(render_moments(seed, moments)):
        at = index * moments + number
        full[at] = rgb
        half[at] = np.asarray(Image.fromarray(rgb).reduce(2))
        truths.append(truth)
    return index, truths


def _open(folder: Path, pictures: int, mode: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    width, height = SOURCE_PX
    shapes = ((pictures, height, width, 3), (pictures, height // 2, width // 2, 3))
    full, half = (
        np.memmap(folder / name, np.uint8, mode, shape=shape)  # type: ignore[call-overload]
        for name, shape in zip(("full.bin", "half.bin"), shapes, strict=True)
    )
    return full, half


def render_scenes(folder: Path, first_seed: int, scenes: int, moments: int, workers: int) -> None:
    """Render scenes into a folder, unless there are some already."""
    done = folder / "truth.npz"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    pictures = scenes * moments
    _open(folder, pictures, "w+")
    jobs = [(folder, i, first_seed + i, moments, pictures) for i in range(scenes)]
    truths: list[Truth] = [Truth(*(np.empty(0),) * 3)] * pictures  # type: ignore[arg-type]
    with (
        Pool(workers) as pool,
        click.progressbar(
            pool.imap_unordered(_render_into, jobs), length=scenes, label="rendering"
        ) as rendered,
    ):
        for index, found in rendered:
            truths[index * moments : (index + 1) * moments] = found
    np.savez(
        done,
        boxes=np.concatenate([t.boxes for t in truths]),
        labels=np.concatenate([t.labels for t in truths]),
        visible=np.concatenate([t.visible for t in truths]),
        counts=np.array([len(t.labels) for t in truths]),
    )


class RenderedScenes:
    """Random access to a rendered training set."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / "truth.npz") as stored:
            boxes, labels, visible = stored["boxes"], stored["labels"], stored["visible"]
            ends = np.cumsum(stored["counts"])
        starts = [0, *ends[:-1]]
        self.truths = [
            Truth(boxes[a:b], labels[a:b], visible[a:b]) for a, b in zip(starts, ends, strict=True)
        ]
        # Pictures with rare classes come up to four times as often as those without.
        kinds = np.array([1 + len({2, 3, 4} & set(truth.labels.tolist())) for truth in self.truths])
        self.shares = kinds / kinds.sum()
        # Plain reads of whole rows: mapped files cost a page fault every 4 KiB.
        self._files = tuple((folder / name).open("rb", 0) for name in ("full.bin", "half.bin"))

    def __len__(self) -> int:
        return len(self.truths)

    def whole(self, index: int) -> NDArray[np.uint8]:
        """Read a picture, (h, w, 3)."""
        return self.rows(index, 1.0, 0.0, float(SOURCE_PX[1]))[0]

    def rows(
        self, index: int, scale: float, top: float, bottom: float
    ) -> tuple[NDArray[np.uint8], float, float]:
        """Read rows of the smallest stored copy that suffices for a scale.

        Args:
            index: Which picture.
            scale: What it will be shrunk to.
            top, bottom: Which rows are needed at least, in source px.

        Returns:
            The rows (h, w, 3), the copy's own scale, and the first row's place in the copy.
        """
        level = 1 if scale <= LARGEST_FROM_HALF else 0
        width, height = SOURCE_PX[0] >> level, SOURCE_PX[1] >> level
        first = max(0, math.floor(top / 2**level))
        last = min(height, math.ceil(bottom / 2**level))
        offset = (index * height + first) * width * 3
        raw = os.pread(self._files[level].fileno(), (last - first) * width * 3, offset)
        return np.frombuffer(raw, np.uint8).reshape(last - first, width, 3), 0.5**level, first


@dataclass(frozen=True)
class ViewSize:
    """One shape of training batches: the simulated input width and the crop taken from it."""

    input_width_px: int
    crop_px: tuple[int, int]  # width, height; multiples of 32
    batch: int


def choose_view_size(rng: np.random.Generator) -> ViewSize:
    """Draw an input width, log-uniform, and whether to crop; a batch has about the same pixels.

    Crops show more pictures at the same cost, whole pictures show what is larger than a crop.
    Widths beyond the largest variant's are for near objects: in a street they are rare.
    """
    width = round(math.exp(rng.uniform(math.log(116), math.log(900))))
    canvas = (-(-width // 32) * 32, -(-width * 9 // (16 * 32)) * 32)
    crops = width > LARGEST_WHOLE_PX or rng.random() < 0.5
    crop = (min(canvas[0], 320), min(canvas[1], 256)) if crops else canvas
    return ViewSize(width, crop, min(36, round(16 * 65_536 / (crop[0] * crop[1]))))


def random_view(
    scenes: RenderedScenes, size: ViewSize, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], Truth]:
    """Return a random crop (h, w, 3) of a picture as the detector would get it, and its truth."""
    index = int(rng.choice(len(scenes), p=scenes.shares))
    scale = size.input_width_px / SOURCE_PX[0] * math.exp(rng.uniform(-0.06, 0.06))
    whole = (round(SOURCE_PX[0] * scale), round(SOURCE_PX[1] * scale))
    wide, tall = min(size.crop_px[0], whole[0]), min(size.crop_px[1], whole[1])
    left, top = _corner(scenes.truths[index], scale, (wide, tall), whole, rng)
    rows, stored, first = scenes.rows(index, scale, top / scale, (top + tall) / scale)
    factor = stored / scale
    start = math.floor(left * factor)
    part = rows[:, start : math.ceil((left + wide) * factor)]
    box = (
        left * factor - start,
        max(top * factor - first, 0.0),
        min((left + wide) * factor - start, part.shape[1]),
        min((top + tall) * factor - first, part.shape[0]),
    )
    method = Image.Resampling.BILINEAR if rng.random() < 0.7 else Image.Resampling.BOX
    view = Image.fromarray(np.ascontiguousarray(part)).resize((wide, tall), method, box)
    pixels = _with_jpeg(view, rng)
    canvas = np.full((size.crop_px[1], size.crop_px[0], 3), FILL, dtype=np.uint8)
    canvas[:tall, :wide] = pixels
    truth = _seen_through(scenes.truths[index], scale, (left, top, wide, tall))
    if rng.random() < 0.5:
        canvas[:, :wide] = canvas[:, :wide][:, ::-1]
        truth.boxes[:, [0, 2]] = wide - truth.boxes[:, [2, 0]]
    return canvas, truth


def _corner(
    truth: Truth,
    scale: float,
    crop: tuple[int, int],
    whole: tuple[int, int],
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Return where to crop: mostly around one of the objects, now and then anywhere."""
    corner = rng.integers(0, np.array(whole) - crop + 1)
    if len(truth.labels) and rng.random() < 0.8:
        # Rare classes and large objects are sought out more often than their numbers would have it.
        frequency = np.bincount(truth.labels, minlength=len(LABELS))[truth.labels]
        heights = np.clip(truth.boxes[:, 3] - truth.boxes[:, 1], 10, 250)
        share = np.sqrt(heights) / frequency**0.75
        box = truth.boxes[rng.choice(len(share), p=share / share.sum())] * scale
        middle = (box[:2] + box[2:]) / 2
        corner = np.round(middle - rng.random(2) * crop).astype(int).clip(0, np.array(whole) - crop)
    return int(corner[0]), int(corner[1])


def _with_jpeg(view: Image.Image, rng: np.random.Generator) -> NDArray[np.uint8]:
    if rng.random() < 0.3:
        return np.asarray(view)
    buffer = io.BytesIO()
    view.save(buffer, "JPEG", quality=int(rng.integers(62, 96)))
    return np.asarray(Image.open(buffer))


def _seen_through(truth: Truth, scale: float, window: tuple[int, int, int, int]) -> Truth:
    """Return the truth within a window (left, top, width, height) of the scaled picture."""
    left, top, wide, tall = window
    boxes = truth.boxes * scale - np.array((left, top, left, top), dtype=np.float32)
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    boxes[:, 0::2] = boxes[:, 0::2].clip(0, wide)
    boxes[:, 1::2] = boxes[:, 1::2].clip(0, tall)
    sides = boxes[:, 2:] - boxes[:, :2]
    share = np.prod(sides, axis=1) / np.maximum(area, 1e-6)
    kept = (sides.min(axis=1) > 0.5) & (share > 0.02)
    visible = truth.visible * np.where(share < 0.25, 0.5, 1.0)
    return Truth(boxes[kept], truth.labels[kept], visible[kept].astype(np.float32))


@dataclass(frozen=True)
class Targets:
    """What the network should answer for one view of (h, w) px; maps are at stride 4."""

    heat: NDArray[np.float32]  #: (classes, h/4, w/4); 1 at centres, falling off around them
    ignored: NDArray[np.float32]  #: (h/4, w/4); 0 where the answer does not matter, else 1
    boxes: NDArray[np.float32]  #: (4, h/4, w/4) xyxy px, where weights > 0
    weights: NDArray[np.float32]  #: (h/4, w/4); sums to about 1 per object


def draw_targets(truth: Truth, view_px: tuple[int, int]) -> Targets:
    """Draw a view's targets: elliptical bells in proportion to the boxes (TTFNet, section 3)."""
    columns, rows = view_px[0] // STRIDE_PX, view_px[1] // STRIDE_PX
    targets = Targets(
        np.zeros((len(LABELS), rows, columns), np.float32),
        np.ones((rows, columns), np.float32),
        np.zeros((4, rows, columns), np.float32),
        np.zeros((rows, columns), np.float32),
    )
    sides = truth.boxes[:, 2:] - truth.boxes[:, :2]
    counted = (truth.visible >= LEAST_VISIBLE) & (sides.min(axis=1) >= LEAST_SIDE_PX)
    for box in truth.boxes[~counted] / STRIDE_PX:
        span = slice(int(box[1]), math.ceil(box[3])), slice(int(box[0]), math.ceil(box[2]))
        targets.ignored[span] = 0
    for index in np.argsort(-sides.prod(axis=1)):  # small objects are drawn over large ones
        if counted[index]:
            _draw_bell(targets, truth.boxes[index], int(truth.labels[index]))
    return targets


def _draw_bell(targets: Targets, box: NDArray[np.float32], label: int) -> None:
    rows, columns = targets.weights.shape
    middle_x = (box[0] + box[2]) / 2 / STRIDE_PX - 0.5
    middle_y = (box[1] + box[3]) / 2 / STRIDE_PX - 0.5
    reach = 0.54 / 2 * (box[2:] - box[:2]) / STRIDE_PX
    peak = (
        min(max(round(float(middle_x)), 0), columns - 1),
        min(max(round(float(middle_y)), 0), rows - 1),
    )
    across, down = max(int(reach[0]), 0), max(int(reach[1]), 0)
    x = np.arange(max(peak[0] - across, 0), min(peak[0] + across, columns - 1) + 1)
    y = np.arange(max(peak[1] - down, 0), min(peak[1] + down, rows - 1) + 1)
    spread = np.maximum((2 * np.array((across, down)) + 1) / 6.0, 0.35)
    bell = np.exp(
        -((x[None, :] - peak[0]) ** 2) / (2 * spread[0] ** 2)
        - (y[:, None] - peak[1]) ** 2 / (2 * spread[1] ** 2)
    ).astype(np.float32)
    span = slice(y[0], y[-1] + 1), slice(x[0], x[-1] + 1)
    np.maximum(targets.heat[label][span], bell, out=targets.heat[label][span])
    targets.boxes[(slice(None), *span)] = box[:, None, None]
    targets.weights[span] = bell / bell.sum()
    targets.ignored[span] = 1


class Batches(IterableDataset):  # type: ignore[type-arg]
    """Endless batches of random views, all of a batch of one size."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        worker = torch.utils.data.get_worker_info()
        rng = np.random.default_rng((self._seed, worker.id if worker else 0))
        scenes = RenderedScenes(self._folder)
        while True:
            size = choose_view_size(rng)
            views = [random_view(scenes, size, rng) for _ in range(size.batch)]
            targets = [draw_targets(truth, size.crop_px) for _, truth in views]
            yield (
                torch.from_numpy(np.stack([pixels for pixels, _ in views])),
                torch.from_numpy(np.stack([t.heat for t in targets])),
                torch.from_numpy(np.stack([t.ignored for t in targets])),
                torch.from_numpy(np.stack([t.boxes for t in targets])),
                torch.from_numpy(np.stack([t.weights for t in targets])),
            )
