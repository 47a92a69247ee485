"""Runs variants on pictures as a camera would have sent them.

Each picture is scaled to the size a camera would send, encoded as a JPEG of the advised quality,
decoded into the variant's canvas and run, in batches of the size with the highest throughput.
Threads prepare pictures while others are inferred. Limits: it does not evaluate the detections.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import count, islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import InvalidInputError, ModelError
from edgebox.domain.model_family import LatencyProfile, Variant, VariantName
from edgebox.domain.picture_size import send_size
from edgebox.inference.executor import Executor
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.family import Family, InputSpec
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.media.jpeg import QUALITY_DEFAULT, decode_into, encode, resize_rgb
from edgebox.vision.detections import Detections
from edgebox.vision.letterbox import Placement

Frame = NDArray[np.uint8]  #: (height, width, 3) RGB
Fetch = Callable[[], Frame]
"""Reads a picture when it is needed, in a thread."""

_T = TypeVar("_T")
_Results = Mapping[VariantName, list[Future[BatchResult]]]
_THREADS = 2
_GROUP_MAX = 16
_HELD_MAX = 32
"""Pictures that are held while the files of a family are loaded one after the other. It is two
groups: enough to keep loading short compared with running, and no more memory than two groups in
transit take."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """One picture, and what each variant found on it."""

    number: int
    """Its number in the sequence of pictures."""
    size_px: tuple[int, int]
    found: Mapping[VariantName, Detections]
    """Detections in px of the picture."""
    problem: str = ""
    """Why it could not be read; empty: it was read."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    size_px: tuple[int, int]
    canvases: Mapping[VariantName, Frame]
    placements: Mapping[VariantName, Placement]
    problem: str = ""


def best_batch_sizes(profiles: Iterable[LatencyProfile]) -> dict[VariantName, int]:
    """Return the batch size with the most pictures per second, by variant."""
    return {
        profile.variant: max(
            profile.batch_sizes, key=lambda size: size / profile.quantile_ns(size, 0.5)
        )
        for profile in profiles
    }


def predict(
    executor: Executor,
    family: Family,
    batch_sizes: Mapping[VariantName, int],
    pictures: Iterable[Fetch],
) -> Iterator[Predictions]:
    """Run every variant over every picture, in order.

    The work stops when iteration stops: at most two groups of pictures are in progress.

    Raises:
        ModelError: a batch failed.
    """
    group = min(_GROUP_MAX, max(batch_sizes.values()))
    numbers = count()
    underway: deque[tuple[list[_Prepared], _Results]] = deque()
    with ThreadPoolExecutor(_THREADS, "edgebox-prepare") as threads:
        for fetches in _grouped(pictures, group):
            prepared = list(threads.map(lambda fetch: _prepare(fetch, family), fetches))
            results = _submit(executor, family.variants, batch_sizes, prepared)
            underway.append((prepared, results))
            if len(underway) > 1:
                yield from _answers(*underway.popleft(), numbers)
    while underway:
        yield from _answers(*underway.popleft(), numbers)


def predict_file_by_file(
    executor: OnnxExecutor,
    family: Family,
    batch_sizes: Mapping[VariantName, int],
    pictures: Iterable[Fetch],
) -> Iterator[Predictions]:
    """Run as `predict` does, with one file of the family in memory at a time.

    For limited memory. Every `_HELD_MAX` pictures each file is loaded once; a
    family of one file keeps it.

    Raises:
        ModelError: a file cannot be loaded, or a batch failed.
    """
    numbers = count()
    files = family.model_files
    with ThreadPoolExecutor(_THREADS, "edgebox-prepare") as threads:
        for fetches in _grouped(pictures, _HELD_MAX):
            prepared = list(threads.map(lambda fetch: _prepare(fetch, family), fetches))
            results: dict[VariantName, list[Future[BatchResult]]] = {}
            for file in files:
                executor.load(file.path)
                variants = [v for v in family.variants if family.files[v.name] == file]
                ran = _submit(executor, variants, batch_sizes, prepared)
                wait(future for futures in ran.values() for future in futures)
                if len(files) > 1:
                    executor.unload(file.path)
                results |= ran
            yield from _answers(prepared, results, numbers)


def _grouped(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    rest = iter(items)
    while group := list(islice(rest, size)):
        yield group


def _prepare(fetch: Fetch, family: Family) -> _Prepared:
    try:
        rgb = fetch()
    except InvalidInputError as error:
        return _Prepared((0, 0), {}, {}, str(error))
    size = (rgb.shape[1], rgb.shape[0])
    canvases, placements = {}, {}
    for variant in family.variants:
        canvases[variant.name], placements[variant.name] = as_sent(rgb, variant, family.input)
    return _Prepared(size, canvases, placements)


def as_sent(rgb: Frame, variant: Variant, spec: InputSpec) -> tuple[Frame, Placement]:
    """Return the canvas of a picture sent for a variant, and the picture's place on the canvas."""
    width, height = send_size(rgb.shape[1], rgb.shape[0], variant)
    jpeg = encode(resize_rgb(rgb, width, height), QUALITY_DEFAULT)
    canvas = np.empty((variant.height_px, variant.width_px, 3), np.uint8)
    decode_into(jpeg, canvas, spec.fill, spec.fit)
    placed = Placement.on_canvas(width, height, variant.width_px, variant.height_px, spec.fit)
    return canvas, placed


def _submit(
    executor: Executor,
    variants: Iterable[Variant],
    batch_sizes: Mapping[VariantName, int],
    prepared: list[_Prepared],
) -> dict[VariantName, list[Future[BatchResult]]]:
    good = [each for each in prepared if not each.problem]
    return {
        variant.name: [
            executor.submit(
                variant.name,
                [each.canvases[variant.name] for each in part],
                batch_sizes[variant.name],
            )
            for part in _grouped(good, batch_sizes[variant.name])
        ]
        for variant in variants
    }


def _answers(
    prepared: list[_Prepared],
    results: _Results,
    numbers: Iterator[int],
) -> Iterator[Predictions]:
    found = {
        name: iter([seen for each in futures for seen in _detections(each.result())])
        for name, futures in results.items()
    }
    for each in prepared:
        here = {
            name: placed.to_source(next(found[name]), *each.size_px)
            for name, placed in each.placements.items()
        }
        yield Predictions(next(numbers), each.size_px, here, each.problem)


def _detections(result: BatchResult) -> list[Detections]:
    """Return what was found in a batch.

    Raises:
        ModelError: the answer to a picture makes no sense.
    """
    for refused in result.refused.values():
        raise ModelError(refused.text)
    return result.detections
