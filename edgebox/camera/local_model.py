"""The box's model at the camera: fetched once, checked, kept, opened with ONNX Runtime, measured.

Nothing is fetched unless the box's offer was asked for. Files are kept by their checksums, so a
model that was fetched before is opened without the box.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import Executor as Pool
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import aiohttp
import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.home_folder import expanded
from edgebox.domain.model_family import Variant
from edgebox.inference.executor import come_back
from edgebox.inference.family import MANIFEST, Family, ModelFile, read_manifest
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.link.box_address import http_url
from edgebox.link.detected_frames import DETECTIONS_MAX, DetectedFrame, SentCrop, SentDetection
from edgebox.link.placement_offer import OfferedStage, PlacementOffer
from edgebox.media import jpeg
from edgebox.vision.cropping import crop_of, taken
from edgebox.vision.detections import Detections
from edgebox.vision.letterbox import Placement

FETCH_TIMEOUT_S = 600.0
FILE_BYTES_MAX = 2 << 30
SCORE_MIN = 0.1
"""Objects that score less are not sent; tracking uses none of them."""
RUNS = 5
"""Runs of a variant whose median is its time."""
PERIOD_SHARE = 0.7
"""A variant is quick enough if it takes at most this share of the time between two frames,"""
SLO_SHARE = 0.4
"""and at most this share of the deadline."""

Frame = NDArray[np.uint8]


class LocalModelError(EdgeboxError):
    """The first stage cannot run at this camera."""

    code = "local_model"


def cache_folder() -> Path:
    """Return the folder in which fetched models are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return expanded(cache) / "edgebox" / "models"


async def fetch(
    client: aiohttp.ClientSession, stream_url: str, given: PlacementOffer, cache: Path
) -> Family:
    """Return the family of an offer, fetched from the box unless it is in the cache.

    Args:
        client: for HTTP.
        stream_url: the box's WebSocket for cameras.
        given: its offer.
        cache: folder of fetched families, one folder each.

    Raises:
        LocalModelError: it cannot be fetched, is not what was offered, or cannot be kept.
    """
    files_url = http_url(stream_url, "models/files")
    folder = cache / given.sha256
    try:
        async with asyncio.timeout(FETCH_TIMEOUT_S):
            await _fetch_file(client, files_url, ModelFile(folder / MANIFEST, given.sha256))
            family = await asyncio.to_thread(read_manifest, folder / MANIFEST)
            for file in family.model_files:
                await _fetch_file(client, files_url, file)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise LocalModelError(
            f"the box's model cannot be fetched: {str(error) or 'no answer in time'}"
        ) from None
    except ModelError as error:
        raise LocalModelError(str(error)) from None
    return family


async def _fetch_file(client: aiohttp.ClientSession, url: str, file: ModelFile) -> None:
    if file.path.is_file() and await asyncio.to_thread(_digest, file.path) == file.sha256:
        return
    unfinished = file.path.with_name(f"{file.path.name}.{os.getpid()}.part")
    await asyncio.to_thread(file.path.parent.mkdir, parents=True, exist_ok=True)
    digest, size = sha256(), 0
    try:
        async with client.get(f"{url}/{file.sha256}") as response:
            response.raise_for_status()
            with unfinished.open("wb") as out:
                async for piece in response.content.iter_chunked(1 << 16):
                    size += len(piece)
                    if size > FILE_BYTES_MAX:
                        raise LocalModelError(
                            f"{file.path.name} has more than {FILE_BYTES_MAX} bytes"
                        )
                    digest.update(piece)
                    out.write(piece)
        if digest.hexdigest() != file.sha256:
            raise LocalModelError(f"{file.path.name} came damaged from the box; start again")
        unfinished.replace(file.path)
    finally:
        unfinished.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A variant that is open at this camera."""

    given: PlacementOffer
    family: Family
    variant: Variant
    executor: OnnxExecutor
    pool: Pool
    """One thread that scales, waits for the executor and cuts crops."""
    detect_ns: int
    """Its usual time, crops not included."""

    async def detect(self, rgb: Frame, quality: int, began_ns: int) -> DetectedFrame:
        """Return what the first stage finds on a (h, w, 3) picture, with crops.

        Args:
            rgb: the whole picture as captured.
            quality: of the crops' JPEGs.
            began_ns: when it was decided to detect it here, by `time.monotonic_ns`.

        Raises:
            ModelError: the model failed.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, self._detect, rgb, quality, began_ns)

    def close(self) -> None:
        """Free the model."""
        self.executor.close()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _detect(self, rgb: Frame, quality: int, began_ns: int) -> DetectedFrame:
        found = run_once(self.executor, self.family, self.variant, rgb)
        best = np.argsort(-found.scores, kind="stable")[:DETECTIONS_MAX]
        found = found.select(best)
        crops = cut_crops(rgb, found, self.family.labels, self.given.stages, quality)
        return DetectedFrame(
            time.monotonic_ns() - began_ns,
            self.given.variants.index(self.variant.name),
            tuple(
                SentDetection(label, min(1.0, max(0.0, score)), (x1, y1, x2, y2))
                for label, score, (x1, y1, x2, y2) in zip(
                    found.labels.tolist(), found.scores.tolist(), found.boxes.tolist(), strict=True
                )
            ),
            crops,
        )


def run_once(executor: OnnxExecutor, family: Family, variant: Variant, rgb: Frame) -> Detections:
    """Return what a variant finds on a (h, w, 3) picture, in its px. Blocks.

    Raises:
        ModelError: it failed.
    """
    canvas = np.empty((variant.height_px, variant.width_px, 3), np.uint8)
    spec = family.input
    jpeg.lay_into(rgb, canvas, spec.fill, spec.fit)
    height_px, width_px = rgb.shape[:2]
    placement = Placement.on_canvas(
        width_px, height_px, variant.width_px, variant.height_px, spec.fit
    )
    future = executor.submit(variant.name, [canvas], family.batch_size_fixed or 1)
    result = come_back(future, executor, f"a frame of {variant.name}")
    return placement.to_source(result.detections[0], width_px, height_px)


def cut_crops(
    rgb: Frame,
    found: Detections,
    labels: Sequence[str],
    stages: Sequence[OfferedStage],
    quality: int,
) -> tuple[SentCrop, ...]:
    """Return the crops of a picture's objects that later stages take, as JPEGs.

    They are cut from the whole picture, and scaled down to a stage's input.

    Args:
        rgb: (h, w, 3).
        found: its objects, in px of it.
        labels: names of the classes.
        stages: the later stages.
        quality: of the JPEGs.
    """
    crops = []
    height_px, width_px = rgb.shape[:2]
    for at, offered in enumerate(stages):
        rows = taken(offered.stage, found, found.boxes, labels, rgb.shape) if len(found) else ()
        for row in map(int, rows):
            area = crop_of(found.boxes[row], offered.stage.margin, width_px, height_px)
            left, top, right, bottom = area
            pixels = np.ascontiguousarray(rgb[top:bottom, left:right])
            pixels = jpeg.resize_rgb(pixels, *offered.crop_size_px(right - left, bottom - top))
            crops.append(SentCrop(at, row, area, jpeg.encode(pixels, quality)))
    return tuple(crops)


def open_model(
    family: Family, given: PlacementOffer, size_px: tuple[int, int], rate_hz: float, slo_ns: int
) -> LocalModel:
    """Open the largest variant that is quick enough here; measures for a second or so. Blocks.

    If none is, it is the smallest.

    Args:
        family: of the offer.
        given: the offer.
        size_px: (width, height) of this camera's pictures.
        rate_hz: frames per second that it would like to send.
        slo_ns: deadline of its frames.

    Raises:
        LocalModelError: it cannot run here.
    """
    limit_ns = min(PERIOD_SHARE * 1e9 / rate_hz, SLO_SHARE * slo_ns)
    picture = np.full((size_px[1], size_px[0], 3), 114, np.uint8)
    try:
        executor = OnnxExecutor(0, [family], score_floor=SCORE_MIN)
    except ModelError as error:
        raise LocalModelError(str(error)) from None
    try:
        ladder = [family.variant(name) for name in given.variants]
        best, best_ns = ladder[0], 0
        for variant in sorted(ladder, key=lambda each: each.pixels):
            took_ns = _measured(executor, family, variant, picture, limit_ns)
            if best_ns and took_ns > limit_ns:
                break
            best, best_ns = variant, took_ns
    except ModelError as error:
        executor.close()
        raise LocalModelError(str(error)) from None
    pool = ThreadPoolExecutor(1, thread_name_prefix="detect")
    return LocalModel(given, family, best, executor, pool, best_ns)


def _measured(
    executor: OnnxExecutor, family: Family, variant: Variant, picture: Frame, limit_ns: float
) -> int:
    """Return the median time of a variant; after a first run, which opens and allocates."""
    run_once(executor, family, variant, picture)
    took_ns: list[int] = []
    while len(took_ns) < RUNS and not (len(took_ns) == 1 and took_ns[0] > 2 * limit_ns):
        began_ns = time.monotonic_ns()
        run_once(executor, family, variant, picture)
        took_ns.append(time.monotonic_ns() - began_ns)
    return round(statistics.median(took_ns))
