"""Decides whether files become a model family: recognises, rewrites, proves, writes.

Blocks for seconds; run it off any event loop. What it finds out is in the manifest it writes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.inference.executor import SCORE_FLOOR
from edgebox.inference.family import Family
from edgebox.inference.importing.files import read_source, size_of
from edgebox.inference.importing.folder import (
    ImportedFamily,
    ImportedVariant,
    family_name,
    move_in,
    unfinished,
    write_family,
)
from edgebox.inference.importing.labels import decoding_for, labels_for
from edgebox.inference.importing.layouts import Layout, Preprocessing
from edgebox.inference.importing.matching import Match
from edgebox.inference.importing.original import Original
from edgebox.inference.importing.parity import SHARE_MIN
from edgebox.inference.importing.reading import cells_of
from edgebox.inference.importing.recognition import (
    Candidate,
    UncertainLayoutError,
    candidates,
    decide,
    trial_size_px,
)
from edgebox.inference.importing.serving import served_model, written
from edgebox.inference.importing.verification import (
    SizePx,
    Subject,
    check_batch_axis,
    check_served,
    open_served,
    times_slower,
)
from edgebox.inference.importing.writing import Rows
from edgebox.inference.zoo import load_family
from edgebox.media.painted_streets import painted_street
from edgebox.vision.detections import Detections

SIZES_PX: tuple[SizePx, ...] = ((320, 320), (416, 416), (512, 512), (640, 640))
"""Default sizes of a file with free sides."""

CLASSIFIER_SIZES_PX: tuple[SizePx, ...] = ((224, 224),)
EMBEDDING_SIZES_PX: tuple[SizePx, ...] = ((128, 256),)
"""Width and height, as person re-identification has it."""
_USUAL_SIZES_PX = {
    "detect": SIZES_PX, "classify": CLASSIFIER_SIZES_PX, "embed": EMBEDDING_SIZES_PX,
}  # fmt: skip

_ACCURACY_LIMIT = 0.6
_ACCURACY_SIDE_PX = 400.0

_HALF_WAY_OUT = ". That is in half precision; without --precision fp16 it may well be taken"

STREETS = ((3, 2.0), (5, 4.0), (11, 1.0))
"""Seed and moment of the synthetic streets that models are verified with, each in another light."""

Progress = Callable[[str, float], None]
Asking = Callable[[Path, Sequence[Candidate]], Layout | None]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import; all are optional."""

    name: str | None = None
    labels: tuple[str, ...] | None = None
    sizes_px: tuple[SizePx, ...] | None = None
    layout: Layout | None = None
    embeds: bool = False
    """The models give embeddings, which their outputs do not tell."""
    licence: str | None = None
    batch: int | None = None
    """1: single pictures only, although the batch axis may allow more."""
    half: bool = False
    """Compute in half precision, if that finds the same."""
    pictures: tuple[NDArray[np.uint8], ...] = ()
    """(h, w, 3) RGB; none: synthetic streets."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    family: Family
    folder: Path
    candidate: Candidate
    """The layout of the first file, and what it found at first sight."""
    compared: int
    """Detections that the served graphs and the originals were found to agree on."""
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Proven:
    """One file, rewritten and compared."""

    source: Path
    candidate: Candidate
    labels: tuple[str, ...]
    licence: str
    content: bytes
    size_bytes: int
    batch: int | None
    sizes_px: tuple[SizePx, ...]
    compared: int
    remarks: tuple[str, ...]


def import_family(
    paths: Sequence[Path],
    models: Path,
    import_options: ImportOptions,
    *,
    taken: Sequence[str] = (),
    ask: Asking | None = None,
    progress: Progress = lambda text, share: None,
) -> Imported:
    """Make a family out of model files.

    Args:
        paths: one file with free sides, or any number of files for the same classes.
        models: the folder of imported families.
        import_options: what the caller specifies.
        taken: names of existing families.
        ask: chooses between possible layouts; None: several are an error.
        progress: called with the present step and the share done.

    Raises:
        ModelError: which file is wrong, and why; nothing was written.
    """
    name = family_name(import_options.name, paths[0])
    imported = (models / name).exists()
    if imported or name in taken:
        instead = f", or remove it first: edgebox models remove {name}" if imported else ""
        raise ModelError(f"there is a family {name!r} already; choose another --name{instead}")
    for path in paths:
        size_of(path)
    proven = []
    for at, path in enumerate(paths):

        def report(text: str, share: float, at: int = at, path: Path = path) -> None:
            progress(f"{text} {path.name}", (at + share) / len(paths))

        proven.append(_prove(path, import_options, ask, report))
    family = _family(name, proven)
    with unfinished(models) as folder:
        write_family(folder, family)
        load_family(folder)
        target = move_in(folder, models, name)
        loaded = load_family(target)
    return Imported(
        loaded, target, proven[0].candidate, sum(each.compared for each in proven), family.remarks
    )


def _prove(
    path: Path, import_options: ImportOptions, ask: Asking | None, progress: Progress
) -> _Proven:
    """Recognise one file, rewrite it, and compare it with itself at every size."""
    progress("reading", 0.0)
    original = Original(read_source(path))
    pictures = import_options.pictures or _streets()
    names = import_options.labels or (None if import_options.embeds else original.source.names)
    progress("recognising", 0.1)
    candidate, alternatives = _recognised(original, pictures, import_options, names, ask)
    found = candidate.match
    labels, assumed = _labels(path, candidate, names)
    decoding = decoding_for(found, labels)
    assert decoding is not None
    subject = Subject(original, found, decoding, pictures)
    progress("trying sizes of", 0.3)
    expected, left_out = _sizes(subject, import_options.sizes_px)
    smallest_px = min(expected, key=math.prod)
    progress("checking batches of", 0.5)
    batch, false_axis = _batch(subject, import_options, smallest_px)
    progress("comparing", 0.6)
    fixed = next(iter(expected)) if len(expected) == 1 else None
    outputs = tuple(tuple(original.outputs[at] for at in sources) for sources in found.outputs)
    rows = Rows(_row_count(found, fixed), found.strides)
    models = [
        served_model(
            original, found.layout, decoding, outputs,
            batch=batch, fixed_px=fixed, rows=rows, half=half,
        )
        for half in ((False, True) if import_options.half else (False,))
    ]  # fmt: skip
    contents = [written(model, str(path)) for model in models]
    sessions = [open_served(content, str(path)) for content in contents]
    content = contents[-1]
    try:
        compared, least = _compared(subject, sessions[-1], expected, batch)
    except ModelError as error:
        raise ModelError(f"{error}{_HALF_WAY_OUT if import_options.half else ''}") from error
    remarks = [
        alternatives,
        assumed,
        false_axis,
        _sensitive(least),
        *left_out,
        *_costs(original, batch, compared),
    ]
    if import_options.half:
        slower = times_slower(sessions[1], sessions[0], smallest_px, batch or 1)
        remarks.append(_half_text(slower))
    return _Proven(
        source=path,
        candidate=candidate,
        labels=labels,
        licence=import_options.licence or original.source.licence or "unknown",
        content=content,
        size_bytes=original.source.size_bytes,
        batch=batch,
        sizes_px=tuple(expected),
        compared=compared,
        remarks=tuple(filter(None, remarks)),
    )


def _batch(
    subject: Subject, import_options: ImportOptions, size_px: SizePx
) -> tuple[int | None, str]:
    """Return the size of the batches that a file runs, and a remark where it is only one.

    Raises:
        ModelError: it declares batches, and mixes up their pictures.
    """
    original = subject.original
    batch = original.batch_declared or import_options.batch
    if batch == 1:
        return 1, ""
    try:
        check_batch_axis(subject, size_px)
    except ModelError as error:
        if original.batch_declared is not None:
            raise
        why = str(error).removeprefix(f"{original.source.path}: ")
        return 1, f"imported for single pictures: {why}"
    return batch, ""


def _compared(
    subject: Subject,
    session: Any,
    expected: Mapping[SizePx, Sequence[Detections]],
    batch: int | None,
) -> tuple[int, float]:
    """Return how many pictures of all sizes were compared, and the least share that agreed.

    Raises:
        ModelError: the rewritten model finds something else than the file.
    """
    checks = [
        check_served(subject, session, size_px, batch, found) for size_px, found in expected.items()
    ]
    return sum(count for count, _ in checks), min(share for _, share in checks)


@cache
def _streets() -> tuple[NDArray[np.uint8], ...]:
    return tuple(painted_street(seed, at_s) for seed, at_s in STREETS)


def _recognised(
    original: Original,
    pictures: Sequence[NDArray[np.uint8]],
    import_options: ImportOptions,
    names: Sequence[str] | None,
    ask: Asking | None,
) -> tuple[Candidate, str]:
    """Return the layout, and a remark where another one was possible."""
    size_px = trial_size_px(original, Preprocessing())
    possible = candidates(
        original,
        pictures,
        size_px,
        names,
        import_options.layout,
        embeds=import_options.embeds,
    )
    if import_options.layout is not None:
        chosen = possible[0]
        return chosen, _although(chosen)
    try:
        chosen = decide(original, possible, names)
    except UncertainLayoutError as error:
        layout = ask(original.source.path, error.candidates) if ask is not None else None
        if layout is None:
            raise
        return next(each for each in possible if each.match.layout is layout), ""
    others = [
        each.name
        for each in possible
        if each is not chosen and each.possible and len(each.doubts) <= len(chosen.doubts)
    ]
    if not others:
        return chosen, _although(chosen)
    return chosen, (
        f"taken to be {chosen.name}; {' or '.join(others)} would fit as well "
        f"{_because(chosen)}: --layout names another"
    )


def _because(chosen: Candidate) -> str:
    if chosen.match.layout.task != "embed":
        return "but found no more on the pictures"
    raw = chosen.match.layout.preprocessing.divisor == 1.0
    return f"but its graph {'normalises' if raw else 'does not normalise'} the pictures itself"


def _although(chosen: Candidate) -> str:
    return f"taken to be {chosen.name}, although {chosen.objections}" if chosen.doubts else ""


def _labels(
    path: Path, candidate: Candidate, names: Sequence[str] | None
) -> tuple[tuple[str, ...], str]:
    sure = [each.above(SCORE_FLOOR).labels for each in candidate.found]
    seen = max((int(labels.max()) for labels in sure if len(labels)), default=-1)
    try:
        return labels_for(candidate.match, names, seen)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _sizes(
    subject: Subject, wanted: Sequence[SizePx] | None
) -> tuple[dict[SizePx, list[Detections]], list[str]]:
    """Return the original's detections at each size it runs at, and remarks about the others.

    Raises:
        ModelError: it does not run at a requested size, or at none of the usual ones.
    """
    original = subject.original
    path = original.source.path
    width, height = original.size_declared_px
    if width is not None and height is not None:
        if wanted and set(wanted) != {(width, height)}:
            raise ModelError(
                f"{path}: takes {width} × {height} px only, as it was exported; leave --sizes out, "
                "or export it with free height and width"
            )
        wanted = ((width, height),)
    elif not wanted:
        usual = _USUAL_SIZES_PX[subject.found.layout.task]
        wanted = tuple(dict.fromkeys((width or w, height or h) for w, h in usual))
        tried = {size: _tried(subject, size) for size in wanted}
        good = {size: found for size, found in tried.items() if isinstance(found, list)}
        if not good:
            good = {(w, h): subject.one_by_one((w, h)) for w, h in [_trial(original)]}
        left_out = [f"{w} × {h} px left out: it does not run there" for w, h in wanted]
        return good, [text for text, s in zip(left_out, wanted, strict=True) if s not in good]
    return {size: subject.one_by_one(size) for size in wanted}, []


def _trial(original: Original) -> SizePx:
    return trial_size_px(original, Preprocessing())


def _tried(subject: Subject, size_px: SizePx) -> list[Detections] | ModelError:
    try:
        return subject.one_by_one(size_px)
    except ModelError as error:
        return error


def _row_count(found: Match, fixed_px: SizePx | None) -> int | None:
    """Return how many rows the outputs always have; None: that changes."""
    if found.strides is None or fixed_px is None:
        return None
    return len(cells_of(found.strides, *fixed_px)) * found.layout.head.anchors


def _sensitive(share: float) -> str:
    """Return a remark about a model that answers a last bit; `share` had to be the same."""
    if share >= SHARE_MIN:
        return ""
    return (
        f"a change of the last bit of its input changes {1.0 - share:.0%} of what it finds, and "
        "the imported graph was allowed to differ as much: measure its accuracy with your pictures"
    )


def _costs(original: Original, batch: int | None, compared: int) -> list[str]:
    """Return remarks about the file's limits and the comparison."""
    remarks = []
    if batch is not None:
        remarks.append(
            f"takes batches of {batch} only: correct, but without what other batches gain on a "
            "GPU; an export with a free batch axis would have it"
        )
    width, height = original.size_declared_px
    if width is not None and height is not None:
        remarks.append(
            f"takes {width} × {height} px only: one variant, nothing smaller for a weak link or a "
            "busy box; an export with free sides, or several files, would have more"
        )
    if not compared:
        remarks.append(
            "nothing was found on the pictures, so that comparing proves little; --picture names "
            "one with something on it"
        )
    return remarks


def _half_text(slower: float) -> str:
    speed = f"{slower:.1f} times as long" if slower >= 1.05 else f"{slower:.2f} of the time"
    return (
        "computes in half precision: half the memory for weights, meant for GPUs; on this "
        f"machine's CPU a picture takes {speed}"
    )


def _family(name: str, proven: Sequence[_Proven]) -> ImportedFamily:
    """Combine verified files into a family.

    Raises:
        ModelError: their classes or layouts differ.
    """
    first = proven[0]
    layout = first.candidate.match.layout
    for other in proven[1:]:
        how, same = other.candidate.match.layout.preprocessing, layout.preprocessing
        if other.candidate.match.layout.task != layout.task:
            problem = "does something else"
        elif other.labels != first.labels:
            problem = "finds other labels"
        elif (
            layout.task == "embed"
            and other.candidate.match.classes != first.candidate.match.classes
        ):
            problem = f"gives embeddings of another length ({other.candidate.match.classes})"
        elif (how.fit, how.fill) != (same.fit, same.fill):
            problem = f"lays pictures into its input in another way ({how.fit}, not {same.fit})"
        elif None not in (other.batch, first.batch) and other.batch != first.batch:
            problem = f"takes batches of {other.batch}, not of {first.batch}"
        else:
            continue
        raise ModelError(f"{other.source}: {problem} than {first.source}: no family of both")
    several = len(proven) > 1
    files: dict[str, bytes] = {}
    variants: dict[str, ImportedVariant] = {}
    smallest_bytes = min(each.size_bytes for each in proven)
    for number, each in enumerate(proven, 1):
        file = f"{name}-{number}.onnx" if several else f"{name}.onnx"
        files[file] = each.content
        for width, height in each.sizes_px:
            plain = f"{name}-{width}" if width == height else f"{name}-{width}x{height}"
            called = plain if plain not in variants else f"{plain}-{number}"
            accuracy = assumed_accuracy(width * height, each.size_bytes / smallest_bytes)
            variants[called] = ImportedVariant(called, width, height, file, accuracy)
    remarks = dict.fromkeys(
        f"{each.source.name}: {text}" if several else text
        for each in proven
        for text in each.remarks
    )
    return ImportedFamily(
        name=name,
        layout=layout,
        licence=", ".join(dict.fromkeys(each.licence for each in proven)),
        description=layout.title,
        labels=first.labels,
        sources=tuple(each.source.name for each in proven),
        remarks=tuple(remarks),
        files=files,
        variants=tuple(variants.values()),
        embedding_length=first.candidate.match.classes if layout.task == "embed" else None,
    )


def assumed_accuracy(pixels: int, weights_ratio: float) -> float:
    """Return an estimate that rises with a variant's cost; only the order of variants counts.

    Args:
        pixels: of the input.
        weights_ratio: bytes of the file by those of the smallest one of the family.
    """
    side_px = math.sqrt(pixels) * weights_ratio**0.25
    return _ACCURACY_LIMIT * (1.0 - math.exp(-side_px / _ACCURACY_SIDE_PX))
