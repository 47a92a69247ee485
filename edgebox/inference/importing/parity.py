"""Decides whether two ways to run a model give the same detections.

Pure. The best detections of each must be among the other's: same label, nearly the same box and
score. The rest is not compared, because rounding decides which of many equal ones is listed.
Rounding may also decide which of two equally good boxes of an object stays where overlaps are
removed, and whether what scores about `SCORE_MIN` is listed at all.
"""

import numpy as np
from numpy.typing import NDArray

from edgebox.inference.importing.reading import SCORE_MIN
from edgebox.vision.detections import Detections
from edgebox.vision.overlap import iou_matrix

COMPARED_MAX = 20
_IOU_MIN = 0.9
_NEAR_PX = 1.0
_SCORE_DIFFERENCE_MAX = 0.01
DOUBTFUL_MAX = 2 * SCORE_MIN
"""Detections with lower scores may be below `SCORE_MIN` in the other list."""
SHARE_MIN = 0.9
"""A pair of boxes that overlap as much as is just allowed may lose either of them by rounding."""
_SIMILARITY_MIN = 0.999
_EXACT_SHARE_MIN = 0.5
"""Number of detections that must match exactly, although equal boxes may replace each other."""


def disagreement(
    one: Detections,
    other: Detections,
    nms_iou: float | None = None,
    share_min: float = SHARE_MIN,
) -> str:
    """Describe how two lists of detections of one picture differ; empty: not significantly.

    Args:
        one, other: the lists.
        nms_iou: the overlap above which one of two boxes was removed; None: none was.
        share_min: the share of the best detections that must be in both.
    """
    if one.embeddings is not None and other.embeddings is not None:
        return _apart(one.embeddings, other.embeddings)
    for these, those in ((one, other), (other, one)):
        best, found = _best_found(these, those, nms_iou)
        if found.sum() < share_min * len(best):
            at = int(np.flatnonzero(~found)[0])
            box = ", ".join(f"{side:.0f}" for side in best.boxes[at])
            return (
                f"{len(best) - int(found.sum())} of the best {len(best)} detections differ: label "
                f"{best.labels[at]}, score {best.scores[at]:.2f}, box ({box}) is missing"
            )
    return ""


def agreement(one: Detections, other: Detections, nms_iou: float | None = None) -> float:
    """Return the share of the best detections that are in both lists; of embeddings: 1."""
    shares = [
        float(found.mean())
        for these, those in ((one, other), (other, one))
        if len(found := _best_found(these, those, nms_iou)[1])
    ]
    return min(shares, default=1.0) if one.embeddings is None else 1.0


def _best_found(
    these: Detections, those: Detections, nms_iou: float | None
) -> tuple[Detections, NDArray[np.bool_]]:
    best = these.select(np.argsort(-these.scores, kind="stable")[:COMPARED_MAX])
    found = _found_in(best, those, _IOU_MIN)
    if nms_iou is not None and found.sum() >= _EXACT_SHARE_MIN * len(best):
        found = _found_in(best, those, nms_iou)
    return best, found


def _apart(one: NDArray[np.float32], other: NDArray[np.float32]) -> str:
    """Describe how embeddings (n, d) of one picture differ; empty: not significantly."""
    if one.shape != other.shape:
        return f"embeddings are {one.shape}, not {other.shape}"
    similarity = float((one.astype(np.float64) * other).sum(axis=1).min(initial=1.0))
    if similarity >= _SIMILARITY_MIN:
        return ""
    return f"the cosine of the two embeddings is {similarity:.4f}, not at least {_SIMILARITY_MIN}"


def _found_in(these: Detections, those: Detections, iou_min: float) -> NDArray[np.bool_]:
    doubtful: NDArray[np.bool_] = these.scores <= DOUBTFUL_MAX
    if not len(these) or not len(those):
        return doubtful
    distances = np.abs(these.boxes[:, None] - those.boxes[None]).max(axis=2)
    near = (iou_matrix(these.boxes, those.boxes) >= iou_min) | (distances <= _NEAR_PX)
    alike = these.labels[:, None] == those.labels[None]
    scored = np.abs(these.scores[:, None] - those.scores[None]) <= _SCORE_DIFFERENCE_MAX
    out: NDArray[np.bool_] = (near & alike & scored).any(axis=1) | doubtful
    return out
