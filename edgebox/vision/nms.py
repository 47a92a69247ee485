"""Decides which of several overlapping boxes stay: greedy non-maximum suppression per class.

Pure: numpy only.
"""

import numpy as np
from numpy.typing import NDArray

from edgebox.vision.overlap import iou_matrix


def class_aware_nms(
    boxes: NDArray[np.float32],
    scores: NDArray[np.float32],
    labels: NDArray[np.int64],
    iou_max: float,
    keep_max: int = 300,
) -> NDArray[np.int64]:
    """Return the indices to keep, best score first.

    Greedy: the best box stays, every box of its class that overlaps it by more than `iou_max` is
    removed, and so on. Ties in score are broken by the lower index. Boxes of different classes
    never suppress each other; comparing labels, rather than shifting each class apart by an offset,
    keeps float32 coordinates exact. O(n k) for n boxes and k kept ones, in numpy.

    Args:
        boxes: (n, 4) float32 xyxy.
        scores: (n,) float32.
        labels: (n,) int64.
        iou_max: overlap above which the box with the lower score is removed.
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
