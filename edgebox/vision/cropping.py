"""Chooses the objects that a later stage of a pipeline takes, and where their crops are. Pure."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.pipelines import CropOrder, PipelineStage
from edgebox.vision.detections import Detections


def taken(
    stage: PipelineStage,
    found: Detections,
    boxes: NDArray[np.float32],
    labels: Sequence[str],
    shape: tuple[int, ...],
    *,
    wanted: NDArray[np.bool_] | None = None,
) -> NDArray[np.intp]:
    """Return the rows of the objects that a stage takes, the preferred ones first.

    Args:
        stage: its filters, its limit and its order.
        found: the objects.
        boxes: (n, 4) xyxy, px of the picture as sent.
        labels: names of the classes.
        shape: (height, width, ...) of the picture as sent.
        wanted: (n,) whether an object may be taken; None: all.
    """
    sides = boxes[:, 2:] - boxes[:, :2]
    keep = (found.scores >= stage.score_min) & (sides.min(axis=1) >= stage.side_min_px)
    if stage.labels:
        numbers = [at for at, label in enumerate(labels) if label in stage.labels]
        keep &= np.isin(found.labels, numbers)
    if wanted is not None:
        keep &= wanted
    if stage.region is not None:
        left, top, right, bottom = stage.region
        centre = (boxes[:, :2] + boxes[:, 2:]) / 2 / np.array((shape[1], shape[0]), np.float32)
        keep &= (centre[:, 0] >= left) & (centre[:, 0] <= right)
        keep &= (centre[:, 1] >= top) & (centre[:, 1] <= bottom)
    rows = np.flatnonzero(keep)
    preferred = found.scores if stage.order is CropOrder.SCORE else sides.prod(axis=1)
    # Equal ones stay in their order, so that the same picture gives the same crops.
    best_first = np.argsort(-preferred[rows], kind="stable")
    return rows[best_first[: stage.crops_max]]


def crop_of(
    box: NDArray[np.float32], margin: float, width_px: int, height_px: int
) -> tuple[int, int, int, int]:
    """Return (left, top, right, bottom) of a crop in px: the box, its margin, within the picture.

    Args:
        box: (4,) xyxy within the picture.
        margin: added at each side, as a share of the box's own side.
        width_px: of the picture.
        height_px: of the picture.
    """
    left, top, right, bottom = map(float, box)
    x, y = (right - left) * margin, (bottom - top) * margin
    x0, y0 = max(0, int(left - x)), max(0, int(top - y))
    x0, y0 = min(x0, width_px - 1), min(y0, height_px - 1)
    x1 = min(width_px, max(x0 + 1, int(np.ceil(right + x))))
    y1 = min(height_px, max(y0 + 1, int(np.ceil(bottom + y))))
    return x0, y0, x1, y1
