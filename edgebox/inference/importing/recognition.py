"""Decides which layout a model has, by trial on pictures, and says when that is not certain."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.inference.importing.labels import decoding_for, labels_for, scored_classes
from edgebox.inference.importing.layouts import (
    EMBEDDING_LAYOUTS,
    LAYOUTS,
    Layout,
    Preprocessing,
)
from edgebox.inference.importing.matching import Doubt, Match, doubts, match, segments, why_not
from edgebox.inference.importing.original import Arrays, Original
from edgebox.inference.importing.reading import Decoding, read
from edgebox.inference.tensors import Canvas
from edgebox.media.jpeg import lay_into
from edgebox.vision.detections import Detections

SIZES_TRIED_PX = (640, 416, 320, 224, 800, 1024)
"""Side lengths that are tried first on a model that declares free sides."""

_SURE = 0.3
"""Scores above it are evidence that a model is fed and read rightly."""
_FAR_MORE = 1.5
_EVIDENCE_MIN = 0.5
_EMBEDDING_STEP = 64
"""Embeddings are usually multiples of it long; numbers of classes rarely are."""
_EMBEDDING_NAMES = r"embed|feat|descriptor|reid"
_OTHER_TASKS = ("segment", "pose", "obb", "depth")


@dataclass(frozen=True)
class Candidate:
    """A layout the model may have."""

    match: Match
    doubts: tuple[Doubt, ...]
    found: tuple[Detections, ...]
    """Its detections on each picture, in input px."""
    labels: tuple[str, ...] = ()
    """Names of its labels, as far as known."""

    @property
    def name(self) -> str:
        """The layout's name."""
        return self.match.layout.name

    @property
    def possible(self) -> bool:
        """Whether no evidence excludes it."""
        return not any(doubt.grave for doubt in self.doubts)

    @property
    def objections(self) -> str:
        """Reasons against it."""
        return "; ".join(doubt.text for doubt in self.doubts)

    @cached_property
    def evidence(self) -> float:
        """The number of confident detections."""
        return float(
            sum(np.maximum(each.scores.astype(float) - _SURE, 0.0).sum() for each in self.found)
        )

    def summary(self) -> str:
        """Return a short description of the detections."""
        if self.match.layout.task == "embed":
            return f"embeddings of length {self.match.classes}"
        sure = [
            (float(score), int(label))
            for each in self.found
            for score, label in zip(each.scores, each.labels, strict=True)
            if score >= _SURE
        ]
        names = [
            f"{self.labels[label] if label < len(self.labels) else label} {score:.2f}"
            for score, label in sorted(sure, reverse=True)[:4]
        ]
        more = f" and {len(sure) - 4} more" if len(sure) > 4 else ""
        return (", ".join(names) + more) if names else "nothing with confidence"


class UncertainLayoutError(ModelError):
    """Several layouts are possible; the caller may let a person choose."""

    def __init__(self, message: str, candidates: Sequence[Candidate]) -> None:
        """List the possible layouts; `candidates` has the most likely first."""
        super().__init__(message)
        self.candidates = tuple(candidates)


def trial_size_px(original: Original, how: Preprocessing) -> tuple[int, int]:
    """Return a width and height the model really runs at.

    Raises:
        ModelError: it runs at none of the tried sizes.
    """
    width, height = original.size_declared_px
    hint = original.source.size_px
    tried = [(hint[1], hint[0])] if hint else []
    tried += [(side, side) for side in SIZES_TRIED_PX]
    failure = None
    for other_width, other_height in tried:
        size = (width or other_width, height or other_height)
        blank = np.full((size[1], size[0], 3), how.fill, np.uint8)
        try:
            original.run([blank] * (original.batch_declared or 1), how)
        except ModelError as error:
            failure = failure or error
        else:
            return size
    assert failure is not None
    raise failure


def on_canvas(picture: NDArray[np.uint8], how: Preprocessing, size_px: tuple[int, int]) -> Canvas:
    """Return a picture on a canvas, prepared for a layout."""
    canvas = np.empty((size_px[1], size_px[0], 3), np.uint8)
    lay_into(picture, canvas, how.fill, how.fit)
    return canvas


def run_one(
    original: Original, canvas: Canvas, how: Preprocessing, *, nudged_to: float | None = None
) -> Arrays:
    """Run one picture; where a batch is fixed, it is filled with the same one."""
    batch = original.batch_declared or 1
    outputs = original.run([canvas] * batch, how, nudged_to=nudged_to)
    if batch == 1:
        return outputs
    return [array[:1] if array.shape[0] == batch else _rows_of_first(array) for array in outputs]


def _rows_of_first(array: NDArray[Any]) -> NDArray[Any]:
    lists = array.ndim == 2 and array.shape[1] == 7
    return array[array[:, 0] == 0] if lists else array


def candidates(
    original: Original,
    pictures: Sequence[NDArray[np.uint8]],
    size_px: tuple[int, int],
    labels: Sequence[str] | None,
    forced: Layout | None = None,
    *,
    embeds: bool = False,
) -> list[Candidate]:
    """Return the layouts the model may have, the most likely first; `embeds`: of embeddings.

    Raises:
        ModelError: there is none, or the model does something else than detecting.
    """
    task = original.source.task
    if task in _OTHER_TASKS:
        raise ModelError(
            f"{original.source.path}: is a model for {task!r}, by its own metadata; edgebox serves "
            "detectors and classifiers"
        )
    plain = Preprocessing()
    first = run_one(original, on_canvas(pictures[0], plain, size_px), plain)
    embeds = embeds or (forced is not None and forced.task == "embed")
    if not embeds and segments(original.outputs, first, size_px[1]):
        raise ModelError(
            f"{original.source.path}: is a segmentation model (its outputs are "
            f"{_shapes(original.outputs, first)}); edgebox serves detectors and classifiers"
        )
    roles = frozenset(extra.role for extra in original.extras)
    tried = [forced] if forced else list(EMBEDDING_LAYOUTS if embeds else LAYOUTS)
    matches = [
        found
        for layout in tried
        if (found := match(layout, original.outputs, first, roles, size_px)) is not None
    ]
    if not matches:
        raise ModelError(_nothing_fits(original, first, size_px, tried))
    if labels is not None:
        fitting = [each for each in matches if decoding_for(each, labels) is not None]
        matches = fitting or matches
    runs: dict[Preprocessing, list[Arrays]] = {}
    out: list[Candidate] = []
    failures: list[str] = []
    for each in matches:
        how = each.layout.preprocessing
        if how not in runs:
            canvases = [on_canvas(picture, how, size_px) for picture in pictures]
            runs[how] = [run_one(original, canvas, how) for canvas in canvases]
        try:
            out.append(_candidate(each, runs[how], size_px, labels))
        except (ModelError, ValueError, IndexError, ArithmeticError) as error:
            failures.append(f"{each.layout.name}: {error}")
    if not out:
        raise ModelError(
            f"{original.source.path}: its outputs {_shapes(original.outputs, first)} fit no "
            f"layout; those of such shapes cannot be read ({'; '.join(failures)})"
        )
    if labels is None and not embeds and forced is None:
        out += _embeddings_instead(original, out, pictures, size_px)
    return sorted(out, key=lambda c: (not c.possible, len(c.doubts), -c.evidence))


def _candidate(
    found: Match,
    runs: Sequence[Arrays],
    size_px: tuple[int, int],
    labels: Sequence[str] | None,
) -> Candidate:
    if scored_classes(found) == 0:
        raise ValueError("it would score no class but the background")
    against = dict.fromkeys(doubt for run in runs for doubt in doubts(found, run, *size_px))
    names = labels if labels is not None and decoding_for(found, labels) else None
    names, _ = labels_for(found, names, -1)
    decoding = decoding_for(found, None if scored_classes(found) is None else names)
    assert decoding is not None
    detections = []
    for run in runs:
        with np.errstate(all="ignore"):
            detections += read(decoding, found.chosen(run), *size_px, batch=1)
    return Candidate(found, tuple(against), tuple(detections), names)


def _embeddings_instead(
    original: Original,
    possible: Sequence[Candidate],
    pictures: Sequence[NDArray[np.uint8]],
    size_px: tuple[int, int],
) -> list[Candidate]:
    """Return the ways to read a nameless list of numbers as an embedding, if it may well be one."""
    logits = [c for c in possible if c.possible and c.name == "classifier"]
    if not logits or not _may_embed(original, logits[0].match):
        return []
    raw = original.normalises()
    (layout,) = (each for each in EMBEDDING_LAYOUTS if (each.preprocessing.divisor == 1.0) == raw)
    return candidates(original, pictures[:1], size_px, None, layout, embeds=True)


def _may_embed(original: Original, found: Match) -> bool:
    name = original.outputs[found.outputs[0][0]]
    length = found.classes or 0
    return bool(re.search(_EMBEDDING_NAMES, name, re.IGNORECASE)) or (
        length >= _EMBEDDING_STEP and length % _EMBEDDING_STEP == 0
    )


def _nothing_fits(
    original: Original, arrays: Arrays, size_px: tuple[int, int], tried: Sequence[Layout]
) -> str:
    path, shapes = original.source.path, _shapes(original.outputs, arrays)
    if len(tried) == 1:
        return f"{path}: has not the outputs of the layout {tried[0].name!r}; it has {shapes}"
    if tried[0].task == "embed":
        return f"{path}: an embedding model gives [pictures, numbers]; this one gives {shapes}"
    reason = why_not(original.outputs, arrays, size_px[1])
    if reason:
        return f"{path}: {reason}"
    known = ", ".join(layout.name for layout in LAYOUTS)
    return f"{path}: its outputs {shapes} fit no layout edgebox knows ({known})"


def _shapes(names: Sequence[str], arrays: Sequence[NDArray[Any]]) -> str:
    return ", ".join(
        f"{name} {list(array.shape)}" for name, array in zip(names, arrays, strict=True)
    )


def _nearest(original: Original, possible: Sequence[Candidate]) -> str:
    """Describe a model whose outputs have the shapes of layouts, but not their numbers."""
    nearest = min(possible, key=lambda each: sum(doubt.grave for doubt in each.doubts))
    reasons = "; ".join(doubt.text for doubt in nearest.doubts if doubt.grave)
    return (
        f"{original.source.path}: fits no layout; nearest is {nearest.name} "
        f"({nearest.match.layout.title}), but {reasons}. If it is that all the same, say so with "
        f"--layout {nearest.name}"
    )


def _is_unfounded(original: Original, each: Candidate, names: Sequence[str] | None) -> bool:
    """Return whether nothing but its shape speaks for a detector's layout."""
    found = each.match
    if found.layout.task != "detect" or each.evidence > 0.0:
        return False
    if names is not None and decoding_for(found, names) is not None:
        return False
    # Boxes that were seen to be where their cells are; distributions are there by themselves.
    at_cells = found.strides is not None and found.layout.head.box_form != "bins"
    hinted = found.named and any(output.names for output in found.layout.head.outputs)
    return not at_cells and not hinted


def decide(
    original: Original, possible: Sequence[Candidate], names: Sequence[str] | None = None
) -> Candidate:
    """Return the layout the model has; `names` are its labels, if known.

    Raises:
        UncertainLayoutError: it may have one of several, or one with doubts.
    """
    clean = [each for each in possible if each.possible]
    if not clean:
        raise ModelError(_nearest(original, possible))
    tasks = {each.match.layout.task for each in clean}
    if "embed" in tasks and len(tasks) > 1:
        raise UncertainLayoutError(
            f"{original.source.path}: gives {clean[0].match.classes} numbers for a picture, which "
            "have no names: an embedding (import it with --task embed), or the scores of a "
            "classifier (name its classes with --labels FILE, or give --layout classifier)",
            clean,
        )
    if clean[0].match.layout.task == "embed":
        # Numbers do not tell how they are fed, but a graph that normalises pictures wants them raw.
        raw = original.normalises()
        return next(
            each for each in clean if (each.match.layout.preprocessing.divisor == 1.0) == raw
        )
    fewest = min((len(each.doubts) for each in clean), default=0)
    clean = [each for each in clean if len(each.doubts) == fewest]
    by_name = {each.name: each for each in clean}
    likely = []
    for each in clean:
        rather = by_name.get(each.match.layout.rather)
        if rather is None:
            likely.append(each)
        elif _finds_far_more(each, rather):
            by_name.pop(rather.match.layout.name)
            likely = [other for other in likely if other is not rather] + [each]
    if all(_is_unfounded(original, each, names) for each in likely):
        raise UncertainLayoutError(
            f"{original.source.path}: its layout is not certain: it could be "
            f"{' or '.join(each.name for each in likely)}, but nothing was found on the pictures "
            "that would prove it; name pictures with something on them (--picture), its classes "
            "(--labels), or the layout (--layout)",
            likely,
        )
    if original.source.task == "classify" and "classifier_ultralytics" in by_name:
        likely = [by_name["classifier_ultralytics"]]
    if len(likely) == 1:
        return likely[0]
    likely.sort(key=lambda each: -each.evidence)
    if len(likely) > 1 and _finds_far_more(likely[0], likely[1]):
        return likely[0]
    shown = likely or list(possible)
    if len(shown) == 1:
        problem = f"it could be {shown[0].match.layout.name!r}, but {shown[0].objections}"
    else:
        each_finds = "; ".join(f"{each.name} (would find {each.summary()})" for each in shown)
        problem = f"it could be any of these: {each_finds}"
    raise UncertainLayoutError(
        f"{original.source.path}: its layout is not certain: {problem}; name it with --layout",
        shown,
    )


def _finds_far_more(one: Candidate, other: Candidate) -> bool:
    return one.evidence > max(_EVIDENCE_MIN, _FAR_MORE * other.evidence)


def decoded(
    found: Match,
    decoding: Decoding,
    arrays: Arrays,
    size_px: tuple[int, int],
    batch: int,
) -> list[Detections]:
    """Return the detections in the model's outputs, decoded in numpy."""
    with np.errstate(all="ignore"):
        return read(decoding, found.chosen(arrays), *size_px, batch=batch)
