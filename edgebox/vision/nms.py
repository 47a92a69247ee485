"""Decides which of several overlapping boxes stay: greedy non-maximum suppression per class.

Pure: numpy only.
"""

import numpy as np
from numpy.typing import NDArray


def iou_matrix(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the intersection over union of every box of `a` (n, 4) with every box of `b` (m, 4).

    Boxes are xyxy; a box without area has an IoU of 0 with everything. Returns (n, m) float32.
    """
    corner_low = np.maximum(a[:, None, :2], b[None, :, :2])
    corner_high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    sides = np.maximum(corner_high - corner_low, 0.0)
    shared = sides[..., 0] * sides[..., 1]
    area_a = np.prod(np.maximum(a[:, 2:] - a[:, :2], 0.0), axis=1)
    area_b = np.prod(np.maximum(b[:, 2:] - b[:, :2], 0.0), axis=1)
    union = area_a[:, None] + area_b[None, :] - shared
    out: NDArray[np.float32] = np.divide(
        shared, union, out=np.zeros_like(shared), where=union > 0.0
    )
    return out


def class_aware_nms(
    boxes: NDArray[np.float32],
    scores: NDArray[np.float32],
    labels: NDArray[np.int64],
    iou_max: float,
    keep_max: int = 300,
) -> NDArray[np.int64]:
    """Return the indices to keep, best score first.

    Greedy: the best box stays, every box of its class that overlaps it by more than `iou_max`
    goes, and so on. Ties in score go to the lower index. Boxes of different classes never
    suppress each other; comparing labels, rather than shifting each class apart by an offset,
    keeps float32 coordinates exact. O(n k) for n boxes and k kept ones, in numpy.

    Args:
        boxes: (n, 4) float32 xyxy.
        scores: (n,) float32.
        labels: (n,) int64.
        iou_max: overlap above which the lesser box goes.
        keep_max: stop after this many.
    """
    left = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(left) and len(kept) < keep_max:
        best = left[0]
        kept.append(int(best))
        left = left[1:]
        overlap = iou_matrix(boxes[best : best + 1], boxes[left])[0]
        left = left[(overlap <= iou_max) | (labels[left] != labels[best])]
    return np.array(kept, dtype=np.int64)
