"""Decides which pictures a cascade sends on to its large model, from the small one's output.

Pure: numpy only. The expected loss (1 - F1 against the large model at IoU 0.5) is a logistic
function of features of the detections (`features`), fitted with fractional labels (Papke and
Wooldridge 1996) by Newton's method with an L2 penalty. Pictures are held out in blocks of
neighbours: frames of one video are alike, and a decider that has seen the frame before would be too
certain. What it says of the held-out ones is recalibrated by a line in logits (Platt 1999), and
measured: the curve of share, threshold and loss. Ours differs from deciders that judge one softmax
(as in Wang et al. 2018): a detector's picture has any number of scores, so they are summarised.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.cascades import CascadeCurve, CascadePoint, Decider
from edgebox.domain.errors import InvalidInputError
from edgebox.vision.average_precision import DETECTIONS_MAX, ImageTruth, as_boxes, match_picture
from edgebox.vision.detections import Detections
from edgebox.vision.overlap import iou_matrix

Floats = NDArray[np.float64]

SCORE_MIN = 0.05
"""Detections below it are not looked at: executors do not report them."""
IOU = 0.5
FEATURES = (
    "log_shown",
    "log_hidden",
    "log_unsure",
    "unsure_mean",
    "log_missing",
    "score_max",
    "score_mean",
    "score_min",
    "hidden_max",
    "log_small",
    "side_mean",
    "side_min",
    "overlap_mean",
    "covered",
)
"""In the order of a picture's features."""
BLOCKS = 5
PICTURES_MIN = 40
"""Fewer pictures say too little about when the models differ."""
POINTS = 10
"""Parts of equal share that a curve is divided into."""
_L2 = 1.0
"""The penalty on the squared weights of standardised features, as if so many pictures said 0."""
_STEPS_MAX = 50
_UNSURE_WIDTH = 0.1
_SMALL_SIDE = 1 / 20
_LOGIT_MAX = 30.0
_DIGITS = 5


def features(
    found: Detections, width_px: float, height_px: float, score_shown: float
) -> NDArray[np.float64]:
    """Return the features of a picture, in the order of `FEATURES`. O(n^2) for n shown objects.

    Args:
        found: what the small model found, in px of the picture.
        width_px: of the picture.
        height_px: of the picture.
        score_shown: detections that score less are not part of an answer.
    """
    scores = found.scores.astype(np.float64)
    best = np.argsort(-scores, kind="stable")[:DETECTIONS_MAX]
    best = best[scores[best] >= SCORE_MIN]
    scores = scores[best]
    is_shown = scores >= score_shown
    shown, hidden = scores[is_shown], scores[~is_shown]
    # The logistic of the distance from what is shown: 4 p (1 - p) is 1 at the border, 0 far off.
    p = 1 / (1 + np.exp(-(scores - score_shown) / _UNSURE_WIDTH))
    unsure = 4 * p * (1 - p)
    boxes = found.boxes[best][is_shown].astype(np.float64)
    areas = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0), axis=1)
    areas = areas / max(1.0, width_px * height_px)
    sides = np.sqrt(areas)
    overlaps = iou_matrix(boxes, boxes)
    np.fill_diagonal(overlaps, 0.0)
    nearest = overlaps.max(axis=1, initial=0.0)
    return np.array(
        (
            np.log1p(len(shown)),
            np.log1p(len(hidden)),
            np.log1p(unsure.sum()),
            _mean(unsure),
            np.log1p((1 - shown).sum()),
            scores.max(initial=0.0),
            _mean(shown),
            shown.min(initial=1.0),
            hidden.max(initial=0.0),
            np.log1p((sides < _SMALL_SIDE).sum()),
            _mean(sides),
            sides.min(initial=1.0),
            _mean(nearest),
            min(1.0, float(areas.sum())),
        )
    )


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def frame_loss(small: Detections, large: Detections, classes: int, score_shown: float) -> float:
    """Return 1 - F1 of what one model shows against what the other shows; 0 if neither shows any.

    Args:
        small: what is compared, in px of the picture.
        large: what it is compared with, in px of the same picture.
        classes: the number of labels of both.
        score_shown: detections that score less do not count.
    """
    ours, theirs = small.above(score_shown), large.above(score_shown)
    both = len(ours) + len(theirs)
    if not both:
        return 0.0
    truth = ImageTruth(as_boxes(theirs.boxes), theirs.labels, np.zeros(len(theirs), bool))
    hits = int(match_picture(truth, ours, classes, (IOU,)).hits[0].sum())
    return 1.0 - 2.0 * hits / both


def expected_losses(decider: Decider, rows: Floats) -> Floats:
    """Return (n,) expected losses in (0, 1) of pictures with features (n, d)."""
    return logistic(_logits(decider, rows))


def expected_loss(
    decider: Decider, found: Detections, width_px: float, height_px: float, score_shown: float
) -> float:
    """Return the expected loss of a picture; the arguments after the first are of `features`."""
    row = features(found, width_px, height_px, score_shown)
    return float(expected_losses(decider, row[None, :])[0])


def _logits(decider: Decider, rows: Floats) -> Floats:
    out: Floats = rows @ np.array(decider.weights) + decider.bias
    return out


@dataclass(frozen=True, slots=True)
class FittedCascade:
    """A decider and what it does on pictures that were held out from it."""

    decider: Decider
    curve: CascadeCurve
    calibration_error: float
    """The mean distance of expected from measured loss, over tenths of the held-out pictures."""


def insist_on_enough(count: int) -> None:
    """Check that a cascade can be fitted to so many pictures.

    Raises:
        InvalidInputError: there are less than `PICTURES_MIN`.
    """
    if count < PICTURES_MIN:
        raise InvalidInputError(f"a cascade needs at least {PICTURES_MIN} pictures, not {count}")


def fit_cascade(rows: Floats, losses: Floats) -> FittedCascade:
    """Fit a decider, and measure it on held-out pictures.

    Args:
        rows: (n, d) features of the pictures, neighbours in time beside each other.
        losses: (n,) what the small model lost on each, in [0, 1].

    Raises:
        InvalidInputError: there are less than `PICTURES_MIN` pictures, or both models said the same
            on all of them.
    """
    insist_on_enough(len(losses))
    if losses.max() <= 0:
        raise InvalidInputError(
            f"both models found the same on all {len(losses)} pictures: there is nothing to learn, "
            "and the large model gains nothing here; take other pictures, or the small model only"
        )
    held_out = np.empty(len(losses))
    for block in np.array_split(np.arange(len(losses)), BLOCKS):
        rest = np.ones(len(losses), bool)
        rest[block] = False
        held_out[block] = _logits(fit(rows[rest], losses[rest]), rows[block])
    slope, shift = line(held_out, losses)
    expected = logistic(slope * held_out + shift)
    decider = _recalibrated(fit(rows, losses), slope, shift)
    return FittedCascade(
        decider, measured_curve(expected, losses), calibration_error(expected, losses)
    )


def fit(rows: Floats, losses: Floats) -> Decider:
    """Fit a logistic function to fractional labels by Newton's method, with an L2 penalty.

    Args:
        rows: (n, d) features.
        losses: (n,) labels in [0, 1].
    """
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    standard = np.column_stack(((rows - mean) / scale, np.ones(len(rows))))
    penalty = np.full(standard.shape[1], _L2)
    penalty[-1] = 1e-6
    weights = _newton(standard, losses, penalty)
    per_feature = weights[:-1] / scale
    return Decider(tuple(per_feature.tolist()), float(weights[-1] - per_feature @ mean))


def _recalibrated(decider: Decider, slope: float, shift: float) -> Decider:
    """Return the decider whose logits are `slope` times those of another plus `shift`."""
    weights = tuple(round(slope * weight, _DIGITS) for weight in decider.weights)
    return Decider(weights, round(slope * decider.bias + shift, _DIGITS))


def line(logits: Floats, losses: Floats) -> tuple[float, float]:
    """Return slope and shift of the line in logits that fits labels best; it does not fall."""
    columns = np.column_stack((logits, np.ones(len(logits))))
    slope, shift = _newton(columns, losses, np.array((1e-3, 1e-6))).tolist()
    if slope > 0.05:
        return slope, shift
    # What is learned says nothing on held-out pictures: nearly all have the mean loss.
    flat = 0.05
    shift = float(_newton(np.ones((len(losses), 1)), losses, np.array((1e-6,)))[0])
    return flat, shift - flat * float(logits.mean())


def _newton(columns: Floats, labels: Floats, penalty: Floats) -> Floats:
    """Minimise the logistic loss of labels in [0, 1] plus a penalty on the squared weights.

    The problem is convex. A step that does not lower the objective is halved.
    """

    def objective(weights: Floats) -> float:
        logits = columns @ weights
        # log(1 + e^x) - label x, without overflow
        loss = np.logaddexp(0.0, logits) - labels * logits
        return float(loss.sum() + 0.5 * (penalty * weights**2).sum())

    weights, on_diagonal = np.zeros(columns.shape[1]), np.diag(penalty)
    value = objective(weights)
    for _ in range(_STEPS_MAX):
        p = logistic(columns @ weights)
        gradient = columns.T @ (p - labels) + penalty * weights
        hessian = (columns * (p * (1 - p))[:, None]).T @ columns + on_diagonal
        step = np.linalg.solve(hessian, gradient)
        size, moved = 1.0, weights - step
        after = objective(moved)
        while size > 1e-6 and after > value:
            size /= 2
            moved = weights - size * step
            after = objective(moved)
        if after > value - 1e-10 * max(1.0, abs(value)):
            break
        weights, value = moved, after
    return weights


def logistic(logits: Floats) -> Floats:
    """Return the logistic function of some numbers, in (0, 1)."""
    out: Floats = 1 / (1 + np.exp(-np.clip(logits, -_LOGIT_MAX, _LOGIT_MAX)))
    return out


def logit(values: Floats) -> Floats:
    """Return the inverse of the logistic function, of numbers in (0, 1)."""
    out: Floats = np.log(values / (1 - values))
    return out


def measured_curve(expected: Floats, losses: Floats, parts: int = POINTS) -> CascadeCurve:
    """Return share, threshold and loss of pictures that are sent on by their expected loss.

    Args:
        expected: (n,) expected losses of held-out pictures, in [0, 1].
        losses: (n,) measured losses of the same.
        parts: of equal share.
    """
    n = len(losses)
    order = np.argsort(-expected, kind="stable")
    falling = expected[order]
    kept = np.concatenate((losses[order][::-1].cumsum()[::-1], (0.0,))) / n
    points = []
    for part in range(parts + 1):
        sent = round(n * part / parts)
        threshold = float(falling[sent]) if sent < n else 0.0
        loss = round(float(kept[sent]), _DIGITS)
        points.append(CascadePoint(round(threshold, _DIGITS), part / parts, loss))
    return CascadeCurve(tuple(points))


def calibration_error(expected: Floats, losses: Floats, bins: int = 10) -> float:
    """Return the mean distance of expected from measured loss, over bins of equal size."""
    order = np.argsort(expected, kind="stable")
    parts: Sequence[NDArray[np.int64]] = np.array_split(order, min(bins, len(order)))
    distances = [
        len(part) * abs(float(expected[part].mean() - losses[part].mean())) for part in parts
    ]
    return sum(distances) / len(losses)
