"""Fits cascades from end to end: pictures, both models, a decider, a file.

The composition root of `edgebox models cascade`; vision/cascade_decider computes, and
inference/cascade_file stores. Every picture is scaled and encoded as a camera sends it for the
large model, and both models run on that one picture, as they do on the box.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgebox.app.accuracy_measurement import FRAMES_DEFAULT, LIVE_HZ, frames_of
from edgebox.app.configured_cascades import part_mistake
from edgebox.app.executor_setup import open_one
from edgebox.config.config_file import Config
from edgebox.domain.cascades import CascadeName, picture_ns
from edgebox.domain.errors import InvalidInputError, ModelError
from edgebox.domain.model_family import LatencyProfile, Variant
from edgebox.domain.picture_size import send_size
from edgebox.inference.accuracy.inference_run import Fetch, Frame
from edgebox.inference.cascade_file import CascadeModel, StoredCascade, write_cascade
from edgebox.inference.executor import come_back
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.media.jpeg import QUALITY_DEFAULT, decode, encode, lay_into, resize_rgb
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.vision.cascade_decider import features, fit_cascade, frame_loss, insist_on_enough
from edgebox.vision.detections import SHOWN_SCORE_MIN, Detections
from edgebox.vision.letterbox import Placement

if TYPE_CHECKING:
    from edgebox.scene.street_camera import Scene

_SCENE_PX = (1280, 720)

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class CascadeSide:
    """One model of a cascade: a variant and its family."""

    family: Family
    variant: Variant


@dataclass(frozen=True, slots=True)
class CascadePictures:
    """Pictures to fit a cascade to."""

    source: str
    fetches: Iterable[Fetch]
    planned: int


def find_side(families: Iterable[Family], wanted: str) -> CascadeSide:
    """Return the model that a person names: FAMILY, FAMILY/VARIANT or VARIANT.

    A family alone means its largest variant.

    Raises:
        ModelError: there is none, or it is no detector.
    """
    known = list(families)
    name, _, within = wanted.partition("/")
    for family in known:
        for variant in reversed(family.variants):
            by_variant = variant.name == (within or name) and (not within or family.name == name)
            if by_variant or (family.name == name and not within):
                if family.task != "detect":
                    raise ModelError(
                        f"{wanted}: a cascade needs detectors, and the task of {family.name} is "
                        f"{family.task}"
                    )
                return CascadeSide(family, variant)
    there = ", ".join(family.name for family in known)
    raise ModelError(
        f"there is no model family or variant {wanted!r} (families: {there}); edgebox models list "
        "shows all variants"
    )


def insist_on_pair(
    small: CascadeSide, large: CascadeSide, profiles: Sequence[LatencyProfile]
) -> None:
    """Check that two models can be a cascade.

    Args:
        small: the model that every picture runs on.
        large: the model that some pictures run on, too.
        profiles: what is known of their times.

    Raises:
        ModelError: they are one and the same, their classes differ, one is the second part of
            another network, or the small one takes as long as the large one.
    """
    if small.variant.name == large.variant.name:
        raise ModelError(
            f"both models are {small.variant.name}: a cascade needs two; name the small one and "
            "the large one"
        )
    models = [CascadeModel.of(side.family, side.variant.name) for side in (small, large)]
    known = {side.family.name: side.family for side in (small, large)}
    if mistake := part_mistake(known, *models):
        raise ModelError(mistake)
    if small.family.labels != large.family.labels:
        raise ModelError(
            f"{small.family.name} and {large.family.name} have different classes: "
            f"{_difference(small.family.labels, large.family.labels)}; the models of a cascade "
            "must find the same classes, in the same order"
        )
    if large.family.after is None:  # the parts of one network run in their own order
        _insist_on_order(small, large, profiles)


def _insist_on_order(
    small: CascadeSide, large: CascadeSide, profiles: Sequence[LatencyProfile]
) -> None:
    """Check that the small model is the cheaper one, as far as sizes or measured times say it."""
    first, second = small.variant, large.variant
    shas = [side.family.files[side.variant.name].sha256 for side in (small, large)]
    if shas[0] == shas[1] and first.pixels >= second.pixels:
        raise ModelError(
            f"{first.name} has no fewer pixels than {second.name}: name the small model first"
        )
    first_ns, second_ns = (picture_ns(profiles, each.name) for each in (first, second))
    if first_ns is not None and second_ns is not None and first_ns >= second_ns:
        raise ModelError(
            f"{first.name} takes {first_ns / 1e6:.1f} ms a picture and {second.name} "
            f"{second_ns / 1e6:.1f}, so a cascade saves nothing: name the small model first"
        )


def _difference(small: tuple[str, ...], large: tuple[str, ...]) -> str:
    for at, (one, other) in enumerate(zip(small, large, strict=False)):
        if one != other:
            return f"class {at} is {one!r} in one and {other!r} in the other"
    return f"one has {len(small)}, the other {len(large)}"


def pictures_of(source: str, limit: int | None) -> CascadePictures:
    """Return the pictures of a folder, a video, a scene or another source.

    Raises:
        InvalidInputError: there is no such source.
    """
    if source.startswith("scene:"):
        planned = limit or FRAMES_DEFAULT
        return CascadePictures(source, _scene(source, planned), planned)
    return CascadePictures(*frames_of(source, limit, shuffled=False))


def _scene(source: str, count: int) -> Iterator[Fetch]:
    """Yield pictures of a scene, a second apart; nobody has to wait for these seconds."""
    from edgebox.scene.street_camera import Scene  # noqa: PLC0415 - only who wants it pays for it

    seed = source.removeprefix("scene:") or "0"
    if not seed.isdecimal():
        raise InvalidInputError(f"{source}: a scene's seed must be a whole number, as in scene:7")
    scene = Scene(int(seed), *_SCENE_PX)
    return (partial(_rendered, scene, at) for at in range(count))


def _rendered(scene: "Scene", at: int) -> Frame:
    return scene.render(at / LIVE_HZ).rgb


def fit(
    config: Config,
    sides: tuple[CascadeSide, CascadeSide],
    pictures: CascadePictures,
    name: str,
    progress: Progress,
) -> tuple[StoredCascade, Path]:
    """Run both models over pictures, fit a decider, and store it. Blocks.

    Args:
        config: of the box.
        sides: the small model and the large one, which `insist_on_pair` lets pass.
        pictures: to fit to.
        name: of the cascade.
        progress: told what is done, and the share of it.

    Raises:
        EdgeboxError: the models or the pictures cannot be used, or the file cannot be written.
    """
    small, large = sides
    insist_on_enough(pictures.planned)
    rows, losses, what = [], [], f"running {small.variant.name} and {large.variant.name}"
    problems: list[str] = []
    with ExitStack() as opened:
        executors: dict[str, OnnxExecutor] = {}
        for side in sides:
            if side.family.name not in executors:
                executor = opened.enter_context(closing(open_one(config, side.family)))
                executors[side.family.name] = executor
            _prepare(executors[side.family.name], side)
        for at, fetch in enumerate(islice(pictures.fetches, pictures.planned)):
            progress(what, at / pictures.planned)
            try:
                sent = _as_sent(fetch(), large.variant)
            except InvalidInputError as error:
                problems.append(str(error))
                continue
            ours, theirs = _both_found([executors[s.family.name] for s in sides], sides, sent)
            height_px, width_px = sent.shape[:2]
            rows.append(features(ours, width_px, height_px, SHOWN_SCORE_MIN))
            losses.append(frame_loss(ours, theirs, len(small.family.labels), SHOWN_SCORE_MIN))
    progress(what, 1.0)
    if not rows:
        first = f": {problems[0]}" if problems else ""
        raise InvalidInputError(f"{pictures.source}: no picture could be read{first}")
    fitted = fit_cascade(np.array(rows), np.array(losses))
    stored = StoredCascade(
        CascadeName(name),
        CascadeModel.of(small.family, small.variant.name),
        CascadeModel.of(large.family, large.variant.name),
        fitted.decider,
        fitted.curve,
        SHOWN_SCORE_MIN,
        pictures.source,
        len(rows),
        fitted.calibration_error,
        wall_clock_ms(),
    )
    return stored, write_cascade(config.inference.models_folder, stored)


def _prepare(executor: OnnxExecutor, side: CascadeSide) -> None:
    if not executor.is_loaded(side.variant.name):
        executor.load(side.family.files[side.variant.name].path)
    executor.warm([side.variant.name], side.family.batch_sizes(1))


def _as_sent(rgb: Frame, large: Variant) -> Frame:
    width_px, height_px = send_size(rgb.shape[1], rgb.shape[0], large)
    return decode(encode(resize_rgb(rgb, width_px, height_px), QUALITY_DEFAULT))


def _both_found(
    executors: Sequence[OnnxExecutor], sides: tuple[CascadeSide, CascadeSide], sent: Frame
) -> tuple[Detections, Detections]:
    """Return what both models find on a picture; the second part of a network goes on."""
    small, large = sides
    first, placement = _ran(executors[0], small, sent)
    if large.family.after is None:
        second, placed = _ran(executors[1], large, sent)
    else:
        placed, (size,) = placement, large.family.batch_sizes(1)
        name = large.variant.name
        order = executors[1].submit(name, [first.features_of(0)], size)
        second = come_back(order, executors[1], name)
    height_px, width_px = sent.shape[:2]
    return (
        placement.to_source(first.detections[0], width_px, height_px),
        placed.to_source(second.detections[0], width_px, height_px),
    )


def _ran(executor: OnnxExecutor, side: CascadeSide, sent: Frame) -> tuple[BatchResult, Placement]:
    """Run a model on a picture; return where that lay on the canvas, too."""
    variant, spec = side.variant, side.family.input
    canvas = np.empty((variant.height_px, variant.width_px, 3), np.uint8)
    laid = lay_into(sent, canvas, spec.fill, spec.fit)
    placement = Placement.on_canvas(
        laid.width_px, laid.height_px, variant.width_px, variant.height_px, spec.fit
    )
    (size,) = side.family.batch_sizes(1)
    ran = come_back(executor.submit(variant.name, [canvas], size), executor, variant.name)
    return ran, placement
