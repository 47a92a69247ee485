"""Decides which layouts a model's outputs can have, by shapes and plausible numbers.

Pure. A wrong shape excludes a layout; implausible numbers are evidence against it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.inference.importing.layouts import Head, Layout, Output
from edgebox.inference.importing.reading import (
    Floats,
    activated,
    cells_of,
    corners,
    part_of,
    strides_of,
)
from edgebox.inference.importing.siblings import Sources, is_map, joined, siblings

_SLACK = 1e-3
_CELLS_AWAY_MAX = 3.0
"""Half of all boxes lie nearer than this to the cell that found them."""
_CLASSES_OF_COCO = (80, 91)
_MAP_AXES = 4


@dataclass(frozen=True, slots=True)
class Match:
    """A layout that a model's outputs have the shapes of."""

    layout: Layout
    outputs: tuple[Sources, ...]
    """Which of the model's outputs are each of the head's, in the head's order."""
    classes: int | None
    rows: int | None
    strides: tuple[int, ...] | None
    named: bool
    """Outputs that have usual names have them."""

    def chosen(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the head's outputs among all of the model's."""
        return [joined(arrays, sources) for sources in self.outputs]


def match(
    layout: Layout,
    names: Sequence[str],
    arrays: Sequence[NDArray[Any]],
    roles: frozenset[str],
    size_px: tuple[int, int],
) -> Match | None:
    """Return how a layout fits a model's outputs for one picture; None: it does not.

    Args:
        layout: a row of the table.
        names: of all outputs.
        arrays: all outputs of one picture.
        roles: of the inputs beside the pictures.
        size_px: width and height of the input.
    """
    head = layout.head
    if roles - {"mask"} != layout.inputs - {"mask"}:
        return None
    best: Match | None = None
    # Further outputs are left alone: YOLOv5 also gives its undecoded grids.
    for chosen in _choices(head, arrays, *size_px):
        found = _lengths(head, [joined(arrays, sources) for sources in chosen], *size_px)
        if found is None:
            continue
        rows = found.get("a", found.get("q"))
        strides = None
        if "a" in found:
            strides = strides_of(head, found["a"], *size_px)
        hinted = [
            (o.names, names[at[0]]) for o, at in zip(head.outputs, chosen, strict=True) if o.names
        ]
        named = all(re.fullmatch(pattern, name, re.IGNORECASE) for pattern, name in hinted)
        fits = Match(layout, chosen, found.get("c"), rows, strides, named)
        if named:
            return fits
        best = best or fits
    return best


def _choices(
    head: Head, arrays: Sequence[NDArray[Any]], width_px: int, height_px: int
) -> Iterator[tuple[Sources, ...]]:
    """Yield every way to take a head's outputs from a model's, by each output's own shape."""
    alone = [(at,) for at in range(len(arrays))]
    maps = {at for at, array in enumerate(arrays) if is_map(array, width_px, height_px)}
    together = siblings(arrays, width_px, height_px)
    possible = [
        [
            sources
            for sources in (*together, *alone)
            if _may_be(output, sources, maps)
            and (arrays[sources[0]].ndim < _MAP_AXES or not maps.isdisjoint(sources))
            and _axes_fit(output, joined(arrays, sources).shape, {"n": 1})
        ]
        for output in head.outputs
    ]

    def chosen(at: int, before: tuple[Sources, ...]) -> Iterator[tuple[Sources, ...]]:
        if at == len(possible):
            yield before
            return
        taken = {number for sources in before for number in sources}
        for sources in possible[at]:
            if taken.isdisjoint(sources):
                yield from chosen(at + 1, (*before, sources))

    return chosen(0, ())


def _may_be(output: Output, sources: Sources, maps: set[int]) -> bool:
    """Return whether what comes grid by grid can be this output: only one of rows for cells."""
    by_grid = len(sources) > 1 or not maps.isdisjoint(sources)
    return not by_grid or ("a" in output.axes and not output.columns_first)


def _lengths(
    head: Head, arrays: Sequence[NDArray[Any]], width_px: int, height_px: int
) -> dict[str, int] | None:
    """Return the lengths of a head's named dimensions; None: the shapes do not fit."""
    found: dict[str, int] = {"n": 1}
    for output, array in zip(head.outputs, arrays, strict=True):
        if not _axes_fit(output, array.shape, found):
            return None
        if output.whole and not _is_whole(array):
            return None
    if "a" in found and strides_of(head, found["a"], width_px, height_px) is None:
        return None
    return found


def _axes_fit(output: Output, shape: tuple[int, ...], found: dict[str, int]) -> bool:
    if len(shape) != len(output.axes):
        return False
    for axis, length in zip(output.axes, shape, strict=True):
        if isinstance(axis, int):
            if length != axis:
                return False
            continue
        more, _, letter = axis.rpartition("+")
        value = length - int(more or 0)
        # No rows at all is what a model with NMS inside gives where nothing is.
        if value < (letter != "q") or found.setdefault(letter, value) != value:
            return False
    return True


def _is_whole(array: NDArray[Any]) -> bool:
    return bool(np.issubdtype(array.dtype, np.integer) or (np.round(array) == array).all())


@dataclass(frozen=True, slots=True)
class Doubt:
    """A piece of evidence against a layout."""

    text: str
    grave: bool = True
    """Rules it out; otherwise it is only unusual, as an untrained model may be."""


def doubts(
    found: Match, arrays: Sequence[NDArray[Any]], width_px: int, height_px: int
) -> list[Doubt]:
    """Return the evidence against a layout in the outputs of one picture."""
    head = found.layout.head
    against_all = _leaves_siblings_out(found, arrays, width_px, height_px)
    chosen = found.chosen(arrays)
    if head.pictures is None:
        chosen = [array[0] for array in chosen]
    if not all(np.isfinite(array).all() for array in chosen):
        return [Doubt("not all numbers are finite")]
    against = against_all
    if not found.named:
        against.append(Doubt("the outputs have other names", grave=False))
    if not any(array.size for array in chosen):
        return against
    if head.box_form == "none":
        return against
    against += _doubts_of_scores(head, chosen)
    against += _unusual(found, chosen, width_px, height_px)
    if head.labels is not None:
        labels = part_of(head, chosen, head.labels)
        if not _is_whole(labels) or (labels < -1).any():
            against.append(Doubt("the labels are no whole numbers"))
    if head.box_form != "whole picture":
        against += _doubts_of_boxes(head, chosen, width_px, height_px)
    elif any(array.shape[1:] == (found.classes, 4) for array in arrays):
        against.append(
            Doubt("another output has four numbers for each of its classes, as boxes have")
        )
    return against


def _leaves_siblings_out(
    found: Match, arrays: Sequence[NDArray[Any]], width_px: int, height_px: int
) -> list[Doubt]:
    """Return whether it reads some of the outputs that come one for each stride, not all."""
    groups = siblings(arrays, width_px, height_px)
    read = {at for sources in found.outputs for at in sources}
    left = sum(not read.issuperset(group) for group in groups)
    if left and any(not read.isdisjoint(group) for group in groups):
        outputs = sum(map(len, groups))
        return [Doubt(f"it leaves out some of the {outputs} outputs that are one for each stride")]
    return []


def _doubts_of_scores(head: Head, arrays: Sequence[NDArray[Any]]) -> list[Doubt]:
    raw = part_of(head, arrays, head.scores)
    against = []
    if head.activation == "none":
        if raw.size and (raw.min() < -_SLACK or raw.max() > 1.0 + _SLACK):
            against.append(Doubt("the scores are not from 0 to 1"))
        elif head.box_form == "whole picture" and abs(raw.sum() - 1.0) > 0.01:
            against.append(Doubt("the probabilities do not add up to 1"))
    elif head.box_form == "whole picture" and raw.min() >= 0.0 and abs(raw.sum() - 1.0) < 0.01:
        against.append(Doubt("the scores are probabilities already"))
    if head.objectness is not None:
        objectness = part_of(head, arrays, head.objectness)
        if objectness.min() < -_SLACK or objectness.max() > 1.0 + _SLACK:
            against.append(Doubt("the objectness is not from 0 to 1"))
        elif bool((objectness == 1.0).all()) != head.objectness_is_one:
            against.append(Doubt("the objectness contradicts it"))
    return against


def _too_sure(head: Head, raw: Floats) -> bool:
    if head.activation == "sigmoid":
        return bool(np.median(activated(head, raw).max(axis=-1)) > 0.5)
    return head.background and bool(np.mean(raw.argmax(axis=-1) == raw.shape[-1] - 1) < 0.5)


def _unusual(
    found: Match, arrays: Sequence[NDArray[Any]], width_px: int, height_px: int
) -> list[Doubt]:
    """Return evidence that is rare for a trained model of this layout."""
    head, classes, texts = found.layout.head, found.classes, []
    if _too_sure(head, part_of(head, arrays, head.scores)):
        texts.append("every other row would be sure of something")
    if classes is not None and head.activation != "none":
        kept, other = classes - head.background, classes - (not head.background)
        if kept not in _CLASSES_OF_COCO and other in _CLASSES_OF_COCO:
            texts.append(f"it would score {kept} classes, not {other}")
    usual = found.layout.coco_classes
    if classes in _CLASSES_OF_COCO and usual not in (None, classes):
        texts.append(f"such models score {usual} classes, not {classes}")
    if found.strides is None and found.rows is not None:
        dense = any(
            strides_of(replace(head, anchors=anchors), found.rows, width_px, height_px)
            for anchors in (1, 3)
        )
        if dense:
            texts.append("it has one row for every cell of a grid")
    return [Doubt(text, grave=False) for text in texts]


def _doubts_of_boxes(
    head: Head, arrays: Sequence[NDArray[Any]], width_px: int, height_px: int
) -> list[Doubt]:
    assert head.boxes is not None
    raw = part_of(head, arrays, head.boxes)
    if not len(raw):
        return []
    with np.errstate(over="ignore"):
        boxes = corners(head, raw, width_px, height_px)
    against = []
    sides = boxes[:, 2:] - boxes[:, :2]
    if head.pick != "given" and (sides < -_SLACK).mean() > 0.05:
        against.append(Doubt("boxes have negative sides"))
    if head.pick == "given":
        scored = part_of(head, arrays, head.scores).reshape(-1) > 0.05
        against += _doubts_of_corners(boxes[scored], width_px, height_px)
    elif head.box_form == "bins" and raw[:, 0].min() >= 0.0 and raw[:, 0].max() <= 1.0:
        against.append(Doubt("some of what should be distributions are scores"))
    elif head.relative and (raw.min() < -0.5 or raw.max() > 1.5):
        against.append(Doubt("the boxes are no shares of the picture's sides"))
    rows = len(boxes)
    strides = strides_of(head, rows, width_px, height_px) if _is_dense(head) else None
    if strides is not None and head.box_form != "bins":
        cells = cells_of(strides, width_px, height_px)
        against += _doubts_of_centres((boxes[:, :2] + boxes[:, 2:]) / 2.0, cells, head.anchors)
    return against


def _doubts_of_corners(boxes: Floats, width_px: int, height_px: int) -> list[Doubt]:
    if not len(boxes):
        return []
    sides = boxes[:, 2:] - boxes[:, :2]
    if (sides < -_SLACK).any():
        return [Doubt("boxes have negative sides", grave=False)]
    if boxes.max() <= 2.0:
        return [Doubt("the boxes are shares of the picture's sides, not pixels")]
    if boxes.max() > 3.0 * max(width_px, height_px):
        return [Doubt("the boxes lie outside the picture")]
    return []


def _is_dense(head: Head) -> bool:
    return any("a" in output.axes for output in head.outputs)


def _doubts_of_centres(centres: Floats, cells: Floats, anchors: int) -> list[Doubt]:
    """Return whether boxes are not at their cells; several anchors come in either order."""
    places = (cells[:, :2] + 0.5) * cells[:, 2:]
    strides = cells[:, 2]
    for expected, stride in _orders(places, strides, anchors):
        away = np.abs(centres - expected).max(axis=1) / stride
        if np.median(away) <= _CELLS_AWAY_MAX:
            return []
    return [Doubt("the boxes are not where their cells are")]


def _orders(places: Floats, strides: Floats, anchors: int) -> list[tuple[Floats, Floats]]:
    by_grid = [strides == stride for stride in dict.fromkeys(strides.tolist())]
    grid_by_grid = [np.tile(places[grid], (anchors, 1)) for grid in by_grid]
    strides_by_grid = [np.tile(strides[grid], anchors) for grid in by_grid]
    return [
        (np.concatenate(grid_by_grid), np.concatenate(strides_by_grid)),
        (np.repeat(places, anchors, axis=0), np.repeat(strides, anchors)),
    ]


def why_not(names: Sequence[str], arrays: Sequence[NDArray[Any]], height_px: int) -> str:
    """Describe the apparent kind of a model that no layout fits; empty: unknown."""
    for name, array in zip(names, arrays, strict=True):
        if array.ndim == 4 and max(array.shape[2:]) * 16 >= height_px:
            return (
                f"the output {name!r} {list(array.shape)} is a map over the picture: this is a "
                "segmentation model, or its detections are not decoded; edgebox serves detectors "
                "and classifiers"
            )
    return ""


def segments(names: Sequence[str], arrays: Sequence[NDArray[Any]], height_px: int) -> bool:
    """Return whether the outputs contain masks, as those of segmentation models do."""
    if any(re.search(r"mask|proto", name, re.IGNORECASE) for name in names):
        return True
    # Transformers of Hugging Face give their feature maps, too.
    maps = [a for a in arrays if a.ndim == 4 and a.shape[2] * 4 >= height_px and a.shape[1] >= 8]
    return bool(maps) and any(a.ndim == 3 for a in arrays) and "pred_boxes" not in names
