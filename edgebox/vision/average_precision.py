"""Owns the accuracy of detections: average precision as COCO's own tool computes it.

Pure: numpy only, no clock, no I/O. The rules are those of `COCOeval` for boxes (Lin et al. 2014,
and the tool itself, with which a test compares): 101-point interpolation, at most 100 detections
per class and picture, objects by size, crowds that excuse the detections in them. edgebox differs
in one point: matching is done once per picture, so that the values of any resample of the pictures
(Efron's bootstrap) come from the same matches, by weights. Cost: O(detections near an object x
objects x sizes x thresholds) to match, a sort and O(detections x thresholds) per class to report.
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

COCO_THRESHOLDS = tuple(float(value) for value in np.linspace(0.5, 0.95, 10))
RECALL_POINTS: Floats = np.linspace(0.0, 1.0, 101)
SIZES = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
"""Areas of objects in px of the picture, both ends included."""
DETECTIONS_MAX = 100
"""Per class and picture, the best."""
_BOUNDS: Floats = np.array(list(SIZES.values()))  #: (sizes, 2)
_FULL_IOU = 1.0 - 1e-10


@dataclass(frozen=True)
class ImageTruth:
    """The labelled objects of one picture."""

    boxes: Floats  #: (n, 4) xyxy, px
    labels: Ints  #: (n,)
    crowd: Bools  #: (n,) True: finding it, or anything inside it, is neither right nor wrong
    areas: Floats | None = None  #: (n,) px, where outlines are known; None: the boxes'

    def of_label(self, label: int) -> ImageTruth:
        """Return the objects of one label."""
        mine = self.labels == label
        areas = box_areas(self.boxes) if self.areas is None else self.areas
        return ImageTruth(self.boxes[mine], self.labels[mine], self.crowd[mine], areas[mine])


@dataclass(frozen=True)
class PictureMatches:
    """The detections of a picture that match an object, in the order of label, then score."""

    labels: Ints  #: (d,)
    scores: NDArray[np.float32]  #: (d,)
    hits: Bools  #: (sizes, thresholds, d)
    excused: Bools  #: (sizes, thresholds, d) counts neither way
    objects: Ints  #: (sizes, classes) to be found


@dataclass(frozen=True)
class PrecisionReport:
    """Average precision per size, class and IoU threshold."""

    thresholds: tuple[float, ...]
    precision: Floats  #: (sizes, classes, thresholds); NaN where there was nothing to find

    @property
    def per_class(self) -> Floats:
        """Return the precision over objects of all sizes, (classes, thresholds)."""
        whole: Floats = self.precision[0]
        return whole

    @property
    def mean(self) -> float:
        """Return the mean over classes and thresholds; 0.0 if there were no objects."""
        return _mean(self.per_class)

    def mean_at(self, threshold: float) -> float:
        """Return the mean over classes at one of the thresholds.

        Raises:
            ValueError: The threshold is none of the report's.
        """
        at = int(np.argmin(np.abs(np.array(self.thresholds) - threshold)))
        if abs(self.thresholds[at] - threshold) > 1e-9:
            raise ValueError(f"{threshold} is none of the thresholds {self.thresholds}")
        return _mean(self.per_class[:, at])

    def mean_of_size(self, size: str) -> float | None:
        """Return the mean over objects of one of `SIZES`; None: there were none."""
        values = self.precision[list(SIZES).index(size)]
        return None if np.isnan(values).all() else _mean(values)


def _mean(values: Floats) -> float:
    judged = values[~np.isnan(values)]
    return float(judged.mean()) if judged.size else 0.0


def as_boxes(values: ArrayLike) -> Floats:
    """Return boxes as an (n, 4) float64 array, also for n = 0."""
    return np.asarray(values, dtype=np.float64).reshape(-1, 4)


def box_areas(boxes: Floats) -> Floats:
    """Return the (n,) areas of boxes (n, 4)."""
    areas: Floats = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return areas


def too_small_or_hidden(
    boxes: Floats, visible_fraction: Floats, least_height_px: float, least_visible: float
) -> Bools:
    """Return (n,) flags for objects that are to be ignored."""
    heights = boxes[:, 3] - boxes[:, 1]
    return (heights < least_height_px) | (visible_fraction < least_visible)


def average_precision(
    truths: Sequence[ImageTruth],
    found: Sequence[Detections],
    classes: int,
    thresholds: Sequence[float] = COCO_THRESHOLDS,
) -> PrecisionReport:
    """Compare detections with the truth of the same pictures, in the same order.

    Args:
        truths, found: One entry per picture.
        classes: Number of labels; labels run from 0 to classes - 1.
        thresholds: Minimum IoU at which a detection matches an object.

    Raises:
        ValueError: Not as many pictures with detections as with truth.
    """
    if len(truths) != len(found):
        raise ValueError(f"{len(truths)} pictures with truth, {len(found)} with detections")
    matches = [
        match_picture(truth, detections, classes, thresholds)
        for truth, detections in zip(truths, found, strict=True)
    ]
    return Precision(matches, classes, thresholds).report()


def match_picture(
    truth: ImageTruth,
    found: Detections,
    classes: int,
    thresholds: Sequence[float] = COCO_THRESHOLDS,
) -> PictureMatches:
    """Match the detections of a picture with its objects; labels from `classes` on are ignored."""
    shape = (len(SIZES), len(thresholds), 0)
    labels, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    hits, excused = [np.zeros(shape, bool)], [np.zeros(shape, bool)]
    objects = np.zeros((len(SIZES), classes), np.int64)
    for label in np.union1d(truth.labels, found.labels):
        if not 0 <= label < classes:
            continue
        mine = truth.of_label(label)
        theirs = found.select(found.labels == label)
        order = np.argsort(-theirs.scores, kind="stable")[:DETECTIONS_MAX]
        theirs = theirs.select(order)
        ignored = _ignored(mine)
        objects[:, label] = (~ignored).sum(axis=1)
        hit, excuse = _match(mine, as_boxes(theirs.boxes), ignored, thresholds)
        labels.append(theirs.labels)
        scores.append(theirs.scores)
        hits.append(hit)
        excused.append(excuse)
    return PictureMatches(
        np.concatenate(labels),
        np.concatenate(scores),
        np.concatenate(hits, axis=2),
        np.concatenate(excused, axis=2),
        objects,
    )


def _ignored(truth: ImageTruth) -> Bools:
    """Return (sizes, n): crowds, and objects of other sizes."""
    areas = box_areas(truth.boxes) if truth.areas is None else truth.areas
    out: Bools = truth.crowd | _outside(areas)
    return out


def _outside(areas: Floats) -> Bools:
    """Return (sizes, n) flags for areas outside each size range."""
    out: Bools = (areas < _BOUNDS[:, :1]) | (areas > _BOUNDS[:, 1:])
    return out


def _match(
    truth: ImageTruth, boxes: Floats, ignored: Bools, thresholds: Sequence[float]
) -> tuple[Bools, Bools]:
    """Match a picture's detections of one class with its objects, all sizes and thresholds at once.

    The best detection chooses first: of the free objects it overlaps enough, the one it overlaps
    most, and an ignored one only if no other is left. Crowds are never taken; their overlap is the
    share of the detection inside.

    Args:
        truth: (n,) objects of the class.
        boxes: (d, 4), by falling score.
        ignored: (sizes, n).
        thresholds: the minimum overlaps.

    Returns:
        (sizes, thresholds, d) flags: matched an object; ignored.
    """
    shape = (len(SIZES), len(thresholds), len(boxes))
    hits, excused = np.zeros(shape, bool), np.zeros(shape, bool)
    overlaps = _overlaps(boxes, truth)
    least = np.minimum(np.array(thresholds), _FULL_IOU)
    free = np.ones((len(SIZES), len(thresholds), len(truth.boxes)), bool)
    truth_rank = len(truth.boxes) * ~ignored  #: (sizes, n)
    near = overlaps.max(axis=1, initial=0.0) >= least.min()
    size, threshold = np.ogrid[: len(SIZES), : len(thresholds)]
    for at in np.flatnonzero(near):
        # Ties are broken by the last one, as in COCO's tool: ranks rise with the index.
        rank = np.empty(len(truth.boxes), np.int64)
        rank[np.argsort(overlaps[at], kind="stable")] = np.arange(len(rank))
        may = (overlaps[at] >= least[:, None]) & (free | truth.crowd)
        preference = np.where(may, (rank + truth_rank)[:, None, :], -1)
        best = preference.argmax(axis=2)
        got = preference[size, threshold, best] >= 0
        passed_over = ignored[size, best]
        hits[:, :, at] = got & ~passed_over
        excused[:, :, at] = got & passed_over
        free[size, threshold, best] &= ~got
    excused |= ~hits & _outside(box_areas(boxes))[:, None, :]
    return hits, excused


def _overlaps(boxes: Floats, truth: ImageTruth) -> Floats:
    """Return (d, n): IoU with objects, the share of the detection inside with crowds."""
    overlaps: Floats = iou_matrix(boxes, truth.boxes)
    if truth.crowd.any():
        crowds = truth.boxes[truth.crowd]
        low = np.maximum(boxes[:, None, :2], crowds[None, :, :2])
        high = np.minimum(boxes[:, None, 2:], crowds[None, :, 2:])
        shared = np.maximum(high - low, 0.0).prod(axis=2)
        areas = box_areas(boxes)[:, None]
        overlaps[:, truth.crowd] = np.divide(
            shared, areas, out=np.zeros_like(shared), where=areas > 0
        )
    return overlaps


@dataclass(frozen=True)
class _ClassRows:
    """The detections of one class over all pictures, by falling score."""

    picture: Ints  #: (d,)
    hits: Bools  #: (sizes, thresholds, d)
    counted: Bools  #: (sizes, thresholds, d)


class Precision:
    """Matched pictures, from which the precision of all of them or of any resample follows."""

    def __init__(
        self,
        matches: Sequence[PictureMatches],
        classes: int,
        thresholds: Sequence[float] = COCO_THRESHOLDS,
    ) -> None:
        """Sort the detections of each class once."""
        self.pictures = len(matches)
        self._thresholds = tuple(thresholds)
        shape = (len(SIZES), classes)
        #: (pictures, sizes, classes)
        self._objects = np.array([each.objects for each in matches], np.int64).reshape(-1, *shape)
        self._rows: dict[int, _ClassRows] = {}
        if not matches:
            return
        counts = [len(each.labels) for each in matches]
        picture = np.repeat(np.arange(len(matches)), counts)
        labels = np.concatenate([each.labels for each in matches])
        scores = np.concatenate([each.scores for each in matches])
        hits = np.concatenate([each.hits for each in matches], axis=2)
        excused = np.concatenate([each.excused for each in matches], axis=2)
        for label in np.unique(labels):
            mine = np.flatnonzero(labels == label)
            order = mine[np.argsort(-scores[mine], kind="stable")]
            # False positives after the last hit have no effect.
            some = np.flatnonzero(hits[:, :, order].any(axis=(0, 1)))
            order = order[: some[-1] + 1] if some.size else order[:0]
            self._rows[int(label)] = _ClassRows(
                picture[order], hits[:, :, order], ~excused[:, :, order]
            )

    def report(self, weights: Ints | None = None, sizes: int = len(SIZES)) -> PrecisionReport:
        """Return the precision, each picture counted as often as its weight says.

        Args:
            weights: (pictures,) how often; None: each once.
            sizes: only the first so many of `SIZES`.
        """
        if weights is None:
            weights = np.ones(self.pictures, np.int64)
        objects = np.tensordot(weights, self._objects, axes=1)  #: (sizes, classes)
        classes = objects.shape[1]
        out = np.full((sizes, classes, len(self._thresholds)), np.nan)
        for size in range(sizes):
            for label in np.flatnonzero(objects[size]):
                out[size, label] = self._of_class(int(label), size, weights, objects[size, label])
        return PrecisionReport(self._thresholds, out)

    def _of_class(self, label: int, size: int, weights: Ints, objects: int) -> list[float]:
        rows = self._rows.get(label)
        if rows is None:
            return [0.0] * len(self._thresholds)
        times = weights[rows.picture]
        return [
            interpolated_precision(hits, int(objects), times * counted)
            for hits, counted in zip(rows.hits[size], rows.counted[size], strict=True)
        ]


def interpolated_precision(hits: Bools, objects: int, times: Ints | None = None) -> float:
    """Return the average precision of (n,) detections by falling score, for a number of objects.

    Args:
        hits: (n,) found an object.
        objects: how many there are.
        times: (n,) how often each detection counts; None: once.
    """
    if not hits.size:
        return 0.0
    counted = np.ones(len(hits), np.int64) if times is None else times
    true_so_far = np.cumsum(hits * counted)
    all_so_far = np.cumsum(counted)
    precision = true_so_far / np.maximum(all_so_far, 1)
    best_from_here = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(true_so_far / objects, RECALL_POINTS, side="left")
    reached = places < len(hits)
    return float(best_from_here[places[reached]].sum() / len(RECALL_POINTS))


def resamples(rng: np.random.Generator, pictures: int, count: int) -> Ints:
    """Return (count, pictures) weights: each row draws that many pictures with replacement."""
    return rng.multinomial(pictures, np.full(pictures, 1 / pictures), size=count)
