"""Measures accuracy from end to end: pictures, an executor, profiles, stored reports.

The composition root of `edgebox profile FAMILY --dataset` and similar; inference/accuracy computes
the figures. Results go to the database, where `edgebox serve` finds them.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from edgebox.app.executor_setup import open_one
from edgebox.app.offline_profiling import profiles_of
from edgebox.config.config_file import Config
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.home_folder import given_path
from edgebox.domain.model_family import AccuracyReport, LatencyProfile, Variant, VariantName
from edgebox.domain.picture_size import send_size
from edgebox.domain.source_address import read_address
from edgebox.inference.accuracy.coco_files import find_annotations, read_coco
from edgebox.inference.accuracy.evaluation import (
    Evaluator,
    ReferenceModelEvaluator,
    accuracy_reports,
)
from edgebox.inference.accuracy.inference_run import (
    Fetch,
    Frame,
    best_batch_sizes,
    predict,
    predict_file_by_file,
)
from edgebox.inference.accuracy.labelled import Dataset
from edgebox.inference.accuracy.pruning import PICTURES_MIN
from edgebox.inference.accuracy.yolo_files import find_yaml, read_yolo
from edgebox.inference.family import Family
from edgebox.inference.family_prints import family_print
from edgebox.media.jpeg import decode, probe
from edgebox.media.sources import PICTURE_SUFFIXES, FrameSource, open_source, read_picture
from edgebox.media.video import VideoFileSource
from edgebox.storage.database import Storage
from edgebox.storage.wall_clock import wall_clock_ms

if TYPE_CHECKING:
    from edgebox.client import BoxAccess, Viewed

FRAMES_DEFAULT = 300
"""Default number of frames of a video or a live camera; a folder is used completely."""
LIVE_HZ = 1.0
"""Frame rate of live sources: frames closer together than a second are similar."""
SILENCE_S = 30.0
"""Time limit for a frame of a live camera that is large enough."""
_PROBLEMS_NAMED = 3
_SEED = 0

Progress = Callable[[str, float], None]
Stopping = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class LiveCamera:
    """A camera of a running box, and the number of frames to take."""

    box: "BoxAccess"
    name: str
    wanted: int = FRAMES_DEFAULT


@dataclass(frozen=True, slots=True)
class AccuracyMeasurement:
    """The result of a measurement."""

    family: Family
    evaluator: Evaluator
    interrupted: bool
    accuracy_reports: dict[VariantName, AccuracyReport]
    profiles: tuple[LatencyProfile, ...]
    remarks: tuple[str, ...]
    kept: bool
    """Whether the reports were stored; an F1 never replaces an mAP."""


def read_dataset(place: Path) -> Dataset:
    """Read labelled pictures: COCO's annotations, or YOLO's.

    Raises:
        InvalidInputError: none can be read; the message says why.
    """
    if not place.exists():
        raise InvalidInputError(f"{place}: no such file or folder")
    annotations = find_annotations(place)
    if annotations is not None:
        return read_coco(annotations, place)
    yaml = find_yaml(place)
    if yaml is not None:
        return read_yolo(yaml)
    raise InvalidInputError(
        f"{place}: no annotations here; wanted are COCO's (annotations/*.json, or a .json beside "
        "the pictures) or YOLO's (data.yaml)"
    )


def frames_evaluator(family: Family, source: str, limit: int | None) -> ReferenceModelEvaluator:
    """Return an evaluator for frames of a folder, a video or a source of `edgebox camera`.

    Raises:
        InvalidInputError: there is no such source.
    """
    return ReferenceModelEvaluator(family, *frames_of(source, limit))


def frames_of(
    source: str, limit: int | None, *, shuffled: bool = True
) -> tuple[str, Iterator[Fetch], int]:
    """Return frames of a folder, a video or a source of `edgebox camera`.

    Args:
        source: where they are.
        limit: the most frames; None: all of a folder, `FRAMES_DEFAULT` of others.
        shuffled: whether those of a folder come in a fixed random order; else by name.

    Returns:
        The source in short, what fetches the frames, and how many there will be.

    Raises:
        InvalidInputError: there is no such source.
    """
    path = given_path(source)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in PICTURE_SUFFIXES)
        if not files:
            raise InvalidInputError(f"{path}: no pictures in this folder (.jpg, .png, .bmp, .webp)")
        planned = min(limit or len(files), len(files))
        chosen = random.Random(_SEED).sample(files, planned)
        chosen = chosen if shuffled else sorted(chosen)
        return path.resolve().name, (partial(read_picture, file) for file in chosen), planned
    planned = limit or FRAMES_DEFAULT
    if path.is_file() and path.suffix.lower() not in PICTURE_SUFFIXES:
        video = VideoFileSource(path, None, loop=False)
        return path.name, _held(video.sampled(planned)), planned
    live = open_source(source, LIVE_HZ, loop=False)
    return _shown(source), _held(_taken(live, planned)), planned


def _shown(source: str) -> str:
    """Return what a report may have of a live source's address."""
    return read_address(source)[0].shown if "://" in source else source


def _taken(source: FrameSource, count: int) -> Iterator[Frame]:
    """Yield some frames of a live source, then close it."""
    try:
        yield from islice(source.frames(), count)
    finally:
        source.close()


def _held(frames: Iterator[Frame]) -> Iterator[Fetch]:
    """Return functions that fetch the frames of an iterator."""
    return (partial(_same, frame) for frame in frames)


def _same(frame: Frame) -> Frame:
    return frame


def camera_evaluator(
    family: Family, camera: LiveCamera, progress: Progress, stopping: Stopping
) -> ReferenceModelEvaluator:
    """Return an evaluator for live frames of a box's camera; receives them first.

    Raises:
        InvalidInputError: no camera, its frames are too small or too few, or the family has one
            variant.
        SubscriptionRefusedError: the box cannot be reached, or does not show its cameras.
    """
    _insist_on_comparing(family, f"camera {camera.name}", camera.wanted)
    jpegs = asyncio.run(_collect(family.variants[-1], camera, progress, stopping))
    fetches = (partial(decode, jpeg) for jpeg in jpegs)
    return ReferenceModelEvaluator(family, f"camera {camera.name}", fetches, len(jpegs))


async def _collect(
    largest: Variant, camera: LiveCamera, progress: Progress, stopping: Stopping
) -> list[bytes]:
    """Receive frames of a camera that are large enough for the largest variant."""
    from edgebox.client import (  # noqa: PLC0415 - only who watches a camera pays for it
        next_within,
        watched_camera,
    )

    whole: list[bytes] = []
    small_px = (0, 0)
    last_frame_s = time.monotonic()
    async with watched_camera(camera.box, camera.name, LIVE_HZ) as frames:
        while len(whole) < camera.wanted and not stopping():
            seen = await next_within(frames, SILENCE_S)
            if seen is None or time.monotonic() - last_frame_s > SILENCE_S:
                break
            if _is_whole(seen, largest):
                whole.append(seen.jpeg)
                last_frame_s = time.monotonic()
                progress(f"frames of {camera.name}", len(whole) / camera.wanted)
            else:
                small_px = probe(seen.jpeg)
    if not whole and max(small_px):
        raise InvalidInputError(
            f"{camera.name} sends {small_px[0]} × {small_px[1]} px at present, less than "
            f"{largest.name} needs, so the accuracy of the larger variants cannot be measured: "
            "take its frames from the source (--frames with a video, a folder or its rtsp address)"
        )
    if not whole:
        raise InvalidInputError(f"{camera.box.server}: no frame of {camera.name} arrived")
    return whole


def _is_whole(seen: "Viewed", largest: Variant) -> bool:
    width, height = probe(seen.jpeg)
    least = send_size(seen.width_px, seen.height_px, largest)
    return width >= least[0] and height >= least[1]


def assess(
    config: Config,
    family: Family,
    evaluator: Evaluator,
    progress: Progress,
    stopping: Stopping,
    *,
    keep_all: bool = False,
) -> AccuracyMeasurement:
    """Run every variant on the evaluator's pictures; store the reports unless interrupted.

    Blocks. Latencies come from the database, or are measured first.

    Raises:
        EdgeboxError: the model, the pictures or the database cannot be used.
    """
    if evaluator.kind == "F1":
        _insist_on_comparing(family, evaluator.source, evaluator.planned)
    executor = open_one(config, family, score_floor=evaluator.score_min)
    try:
        profiles = asyncio.run(profiles_of(config, executor, family, progress))
        interrupted = False
        if executor.memory_limit_bytes:
            predictions_of = predict_file_by_file
        else:
            executor.warm([v.name for v in family.variants], family.batch_sizes(1))
            predictions_of = predict
        for prediction in predictions_of(
            executor, family, best_batch_sizes(profiles), evaluator.fetches()
        ):
            evaluator.take(prediction)
            progress(
                f"running {family.name}", min(1.0, (prediction.number + 1) / evaluator.planned)
            )
            if stopping():
                interrupted = prediction.number + 1 < evaluator.planned
                break
    finally:
        executor.close()
    if evaluator.kind == "F1" and not interrupted:
        _insist_on_comparing(family, evaluator.source, evaluator.pictures)
    measured = evaluator.measured(lambda share: progress("evaluating", share))
    took_ns = {p.variant: {p.executor: p.quantile_ns(p.batch_sizes[0], 0.5)} for p in profiles}
    found = accuracy_reports(
        evaluator, family.variants, measured, took_ns, wall_clock_ms(), keep_all=keep_all
    )
    kept = not interrupted and asyncio.run(_remember(config, family, found))
    remarks = [*evaluator.remarks, *_problems(evaluator)]
    if not kept and not interrupted:
        remarks.append(
            f"{family.name} has an mAP measured with labels, which stays: this F1 is not kept"
        )
    return AccuracyMeasurement(
        family, evaluator, interrupted, found, tuple(profiles), tuple(remarks), kept
    )


def _insist_on_comparing(family: Family, source: str, pictures: int) -> None:
    """Refuse to compare a variant with itself, or variants on a handful of pictures.

    Raises:
        InvalidInputError: the family has one variant, or there are too few pictures.
    """
    if len(family.variants) == 1:
        raise InvalidInputError(
            f"{family.name} has one variant, and there is nothing to compare it with; labelled "
            "pictures (--dataset) measure how good it is"
        )
    if pictures < PICTURES_MIN:
        raise InvalidInputError(
            f"{source}: {pictures} pictures are too few to compare variants; give at least "
            f"{PICTURES_MIN}"
        )


async def _remember(
    config: Config, family: Family, found: dict[VariantName, AccuracyReport]
) -> bool:
    """Store reports, but no F1 in place of an mAP; return whether they are stored."""
    storage = await Storage.open(config.storage.file)
    try:
        before = await storage.load_accuracy_reports(family.name, family.sha256)
        labelled = any(each.kind == "mAP" for each in before.values())
        if labelled and any(each.kind == "F1" for each in found.values()):
            return False
        storage.save_accuracy_reports(family.name, family.sha256, found)
    finally:
        await storage.close()
    return True


def remembered(
    config: Config, families: Sequence[Family]
) -> tuple[list[Family], list[LatencyProfile]]:
    """Return families with their accuracy reports on this box, and the newest latencies.

    Raises:
        StorageError: the database cannot be used.
    """
    file = config.storage.file
    if not Path(file).exists():  # a query does not create a database
        return list(families), []
    return asyncio.run(_remembered(file, families))


async def _remembered(
    file: str, families: Sequence[Family]
) -> tuple[list[Family], list[LatencyProfile]]:
    storage = await Storage.open(file)
    try:
        judged = [
            each.with_reports(await storage.load_accuracy_reports(each.name, each.sha256))
            for each in families
        ]
        newest = [
            found
            for family in families
            for found in await storage.load_newest_profiles(family_print(family))
        ]
    finally:
        await storage.close()
    return judged, newest


def _problems(evaluator: Evaluator) -> list[str]:
    named = [f"not evaluated: {problem}" for problem in evaluator.problems[:_PROBLEMS_NAMED]]
    more = len(evaluator.problems) - len(named)
    if more:
        named.append(f"and {more} more pictures could not be evaluated")
    if evaluator.pictures < PICTURES_MIN:
        named.append(
            f"{evaluator.pictures} pictures are too few to estimate accuracy and error; below "
            f"{PICTURES_MIN} pictures no variant is taken as dominated"
        )
    return named
