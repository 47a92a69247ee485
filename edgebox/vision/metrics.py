"""Owns how good detections are: average precision as COCO counts it.

Pure: numpy only, no clock, no I/O. 101-point interpolation; per class and IoU threshold, then the
mean over both. edgebox differs from COCO's tool in one point: an object marked as ignored (too
small, mostly hidden) excuses any number of detections that overlap it with an IoU of at least 0.5,
also where the threshold in force is stricter, since such an object is not judged at all.
Cost: O(images x classes x (detections x objects + detections x thresholds)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgebox.vision.detections import Detections
from edgebox.vision.overlap import iou_matrix

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]

COCO_THRESHOLDS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
RECALL_POINTS: Floats = np.linspace(0.0, 1.0, 101)
_EXCUSING_IOU = 0.5


@dataclass(frozen=True)
class ImageTruth:
    """What one picture shows."""

    boxes: Floats  #: (n, 4) xyxy, px
    labels: Ints  #: (n,)
    ignored: Bools  #: (n,) True: finding it is neither right nor wrong


@dataclass(frozen=True)
class PrecisionReport:
    """Average precision per class and IoU threshold."""

    thresholds: tuple[float, ...]
    per_class: Floats  #: (classes, thresholds); NaN for a class without a judged object

    @property
    def mean(self) -> float:
        """Return the mean over classes and thresholds; 0.0 where there was nothing to find."""
        return _mean(self.per_class)

    def mean_at(self, threshold: float) -> float:
        """Return the mean over classes at one of the thresholds.

        Raises:
            ValueError: The threshold is none of the report's.
        """
        return _mean(self.per_class[:, self.thresholds.index(threshold)])


def _mean(values: Floats) -> float:
    judged = values[~np.isnan(values)]
    return float(judged.mean()) if judged.size else 0.0


def as_boxes(values: ArrayLike) -> Floats:
    """Return boxes as an (n, 4) float64 array, also for n = 0."""
    return np.asarray(values, dtype=np.float64).reshape(-1, 4)


def too_small_or_hidden(
    boxes: Floats, visible_fraction: Floats, least_height_px: float, least_visible: float
) -> Bools:
    """Return (n,) flags for objects that should be ignored rather than judged."""
    heights = boxes[:, 3] - boxes[:, 1]
    return (heights < least_height_px) | (visible_fraction < least_visible)


def average_precision(
    truths: Sequence[ImageTruth],
    found: Sequence[Detections],
    classes: int,
    thresholds: Sequence[float] = COCO_THRESHOLDS,
) -> PrecisionReport:
    """Judge detections against the truth of the same pictures, in the same order.

    Args:
        truths, found: One entry per picture.
        classes: Number of labels; labels run from 0 to classes - 1.
        thresholds: From which IoU on a detection counts as the object.

    Raises:
        ValueError: Not as many pictures with detections as with truth.
    """
    if len(truths) != len(found):
        raise ValueError(f"{len(truths)} pictures with truth, {len(found)} with detections")
    per_class = [_class_precision(truths, found, label, thresholds) for label in range(classes)]
    return PrecisionReport(
        tuple(thresholds), np.array(per_class, dtype=np.float64).reshape(classes, len(thresholds))
    )


def _class_precision(
    truths: Sequence[ImageTruth],
    found: Sequence[Detections],
    label: int,
    thresholds: Sequence[float],
) -> Floats:
    """Return the (thresholds,) average precisions of one class."""
    scores: list[NDArray[np.float32]] = []
    hits: list[Bools] = []
    excused: list[Bools] = []
    objects = 0
    for truth, detections in zip(truths, found, strict=True):
        mine, theirs = truth.labels == label, detections.labels == label
        ignored = truth.ignored[mine]
        objects += int((~ignored).sum())
        order = np.argsort(-detections.scores[theirs], kind="stable")
        ious = iou_matrix(as_boxes(detections.boxes[theirs][order]), truth.boxes[mine])
        scores.append(detections.scores[theirs][order])
        matched = [match(ious, ignored, threshold) for threshold in thresholds]
        hits.append(np.array([hit for hit, _ in matched]).reshape(len(thresholds), -1))
        excused.append(np.array([excuse for _, excuse in matched]).reshape(len(thresholds), -1))
    if objects == 0:
        return np.full(len(thresholds), np.nan)
    order = np.argsort(-np.concatenate(scores), kind="stable")
    all_hits = np.concatenate(hits, axis=1)[:, order]
    all_excused = np.concatenate(excused, axis=1)[:, order]
    return np.array(
        [
            interpolated_precision(hit[~excuse], objects)
            for hit, excuse in zip(all_hits, all_excused, strict=True)
        ]
    )


def match(ious: Floats, ignored: Bools, threshold: float) -> tuple[Bools, Bools]:
    """Match one picture's detections of a class, best score first, with its objects.

    Each detection takes the judged object it overlaps most among those still free.

    Args:
        ious: (detections, objects), detections by falling score.
        ignored: (objects,).
        threshold: The least IoU that counts.

    Returns:
        (detections,) flags: found an object; counts neither way.
    """
    hits = np.zeros(len(ious), dtype=bool)
    taken = ignored.copy()
    for index, row in enumerate(ious):
        free = np.where(taken, -1.0, row)
        best = int(free.argmax()) if free.size else -1
        if best >= 0 and free[best] >= threshold:
            hits[index] = taken[best] = True
    near_ignored = (ious[:, ignored] >= min(threshold, _EXCUSING_IOU)).any(axis=1)
    return hits, near_ignored & ~hits


def interpolated_precision(hits: Bools, objects: int) -> float:
    """Return the average precision of (n,) detections by falling score, for a number of objects."""
    if not hits.size:
        return 0.0
    true_so_far = np.cumsum(hits)
    precision = true_so_far / np.arange(1, len(hits) + 1)
    best_from_here = np.maximum.accumulate(precision[::-1])[::-1]
    # The first place with at least that recall; the tiny slack undoes rounding in the division.
    places = np.searchsorted(true_so_far / objects, RECALL_POINTS - 1e-12, side="left")
    reached = places < len(hits)
    return float(best_from_here[places[reached]].sum() / len(RECALL_POINTS))
