"""Joins what a model gives grid by grid: one tensor for each stride, or maps over the picture.

Pure. Siblings are tensors of equal columns whose rows are the cells of different grids; they are
read as one tensor, the finest grid first.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STRIDES = (4, 8, 16, 32, 64, 128)
_ANCHORS = (1, 2, 3)

Sources = tuple[int, ...]
"""The model's outputs that are one tensor, by number."""


def is_map(array: NDArray[Any], width_px: int, height_px: int) -> bool:
    """Return whether a tensor is a map [n, columns, h, w] over the cells of a grid."""
    grids = {(-(-height_px // stride), -(-width_px // stride)) for stride in _STRIDES}
    return array.ndim == 4 and array.shape[2:] in grids


def joined(arrays: Sequence[NDArray[Any]], sources: Sources) -> NDArray[Any]:
    """Return some outputs as one tensor: rows of maps, and of siblings one after the other."""
    rows = [_rows(arrays[at]) for at in sources]
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)


def _rows(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 4:
        return array
    return array.reshape(*array.shape[:2], -1).transpose(0, 2, 1)


def siblings(arrays: Sequence[NDArray[Any]], width_px: int, height_px: int) -> list[Sources]:
    """Return the sets of outputs that are one for each grid, finest first."""
    by_columns: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, array in enumerate(arrays):
        if array.ndim == 3 or is_map(array, width_px, height_px):
            _, rows, columns = _rows(array).shape
            by_columns[columns][rows].append(at)
    found = []
    for by_rows in by_columns.values():
        counts = sorted(by_rows, reverse=True)
        several = {len(places) for places in by_rows.values()}
        if len(counts) < 2 or len(several) != 1 or not _are_grids(counts, width_px, height_px):
            continue
        found += list(zip(*(by_rows[count] for count in counts), strict=True))
    return found


def _are_grids(counts: Sequence[int], width_px: int, height_px: int) -> bool:
    cells = {-(-height_px // stride) * -(-width_px // stride) for stride in _STRIDES}
    return any(
        all(count % anchors == 0 and count // anchors in cells for count in counts)
        for anchors in _ANCHORS
    )
