"""Owns the overlap of boxes, the measure behind suppression and accuracy alike.

Pure: numpy only.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=np.floating[Any])


def iou_matrix(a: NDArray[F], b: NDArray[F]) -> NDArray[F]:
    """Return the intersection over union of every box of `a` (n, 4) with every box of `b` (m, 4).

    Boxes are xyxy; a box without area has an IoU of 0 with everything. Returns (n, m) of
    the boxes' own type.
    """
    corner_low = np.maximum(a[:, None, :2], b[None, :, :2])
    corner_high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    sides = np.maximum(corner_high - corner_low, 0.0)
    shared = sides[..., 0] * sides[..., 1]
    area_a = np.prod(np.maximum(a[:, 2:] - a[:, :2], 0.0), axis=1)
    area_b = np.prod(np.maximum(b[:, 2:] - b[:, :2], 0.0), axis=1)
    union = area_a[:, None] + area_b[None, :] - shared
    out: NDArray[F] = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0.0)
    return out
