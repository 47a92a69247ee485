"""Owns what training minimises: the focal loss of the heat maps and the boxes' overlap."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from models.street.network import STRIDE_PX

BOX_WEIGHT = 5.0


def heat_loss(logits: Tensor, heat: Tensor, counted: Tensor) -> Tensor:
    """Return CenterNet's penalty-reduced focal loss per object.

    Args:
        logits, heat: (b, classes, h, w).
        counted: (b, h, w), 0 where the answer does not matter.
    """
    chance = logits.sigmoid()
    centre = (heat >= 1.0).float()
    at_centres = functional.logsigmoid(logits) * (1 - chance) ** 2 * centre
    elsewhere = functional.logsigmoid(-logits) * chance**2 * (1 - heat) ** 4 * (1 - centre)
    total = ((at_centres + elsewhere) * counted.unsqueeze(1)).sum()
    return -total / (centre * counted.unsqueeze(1)).sum().clamp(min=1.0)


def box_loss(sides: Tensor, boxes: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean of 1 - GIoU (Rezatofighi et al. 2019).

    Args:
        sides: (b, 4, h, w) predicted distances left, top, right, bottom, px.
        boxes: (b, 4, h, w) true boxes xyxy, px.
        weights: (b, h, w), 0 where no box is asked for.
    """
    batch, row, column = torch.nonzero(weights, as_tuple=True)
    if not len(batch):
        return sides.sum() * 0.0
    weight = weights[batch, row, column]
    left, top, right, bottom = sides[batch, :, row, column].unbind(1)
    x, y = (column + 0.5) * STRIDE_PX, (row + 0.5) * STRIDE_PX
    x0, y0, x1, y1 = boxes[batch, :, row, column].unbind(1)
    px0, py0, px1, py1 = x - left, y - top, x + right, y + bottom
    shared = (torch.minimum(px1, x1) - torch.maximum(px0, x0)).clamp(min=0) * (
        torch.minimum(py1, y1) - torch.maximum(py0, y0)
    ).clamp(min=0)
    union = (px1 - px0) * (py1 - py0) + (x1 - x0) * (y1 - y0) - shared
    hull = (torch.maximum(px1, x1) - torch.minimum(px0, x0)) * (
        torch.maximum(py1, y1) - torch.minimum(py0, y0)
    )
    giou = shared / union.clamp(min=1e-3) - (hull - union) / hull.clamp(min=1e-3)
    return ((1 - giou) * weight).sum() / weight.sum()
