"""Owns the street detector's network: layers, loss-side raw outputs and in-graph decoding.

One fully convolutional network (regular 3x3 convolutions), an FPN over strides 4..32 and a
CenterNet-style head at stride 4: a heat map per class and the distances from each cell's centre to
the four sides of the box (as in TTFNet, Liu et al. 2020). Limits: sides must be multiples of 32.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.training.layers import ConvUnit, Residual, normalise

LABELS = ("person", "car", "bus", "truck", "motorbike")
STRIDE_PX = 4
SIDE_SCALE_PX = 16.0  # a raw distance of 1.0 means this many input pixels
TOP_K = 100
SUPPRESSION = 0.8  # a better box that covers the same place costs a score exp(-1 / this)


class StreetNet(nn.Module):
    """Normalised images in, heat-map logits and box sides at stride 4 out."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvUnit(3, 16, 2)
        self.stage4 = nn.Sequential(ConvUnit(16, 32, 2), Residual(32))
        self.stage8 = nn.Sequential(ConvUnit(32, 64, 2), Residual(64), Residual(64))
        self.stage16 = nn.Sequential(ConvUnit(64, 96, 2), Residual(96), Residual(96))
        self.stage32 = nn.Sequential(ConvUnit(96, 128, 2), Residual(128))
        width = 48
        self.lateral = nn.ModuleList(nn.Conv2d(c, width, 1) for c in (32, 64, 96, 128))
        self.smooth = nn.ModuleList(ConvUnit(width, width) for _ in range(3))
        self.head = ConvUnit(width, 64)
        self.heat = nn.Conv2d(64, len(LABELS), 1)
        self.sides = nn.Conv2d(64, 4, 1)
        nn.init.constant_(self.heat.bias, -4.6)  # type: ignore[arg-type]  # sigmoid = 0.01
        nn.init.normal_(self.heat.weight, std=0.01)
        nn.init.constant_(self.sides.bias, 0.5)  # type: ignore[arg-type]
        nn.init.normal_(self.sides.weight, std=0.01)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return heat logits (b, 5, h/4, w/4) and sides (b, 4, h/4, w/4): l, t, r, b in px."""
        stages = (self.stage8, self.stage16, self.stage32)
        fine = self.stage4(self.stem(x))
        features = [fine]
        for stage in stages:
            features.append(stage(features[-1]))
        return self.rest(fine, self.merged(features))

    def merged(self, features: Sequence[Tensor]) -> Tensor:
        """Return the FPN's level at stride 8 (b, 48, h/8, w/8) of features at strides 4 to 32."""
        merged: Tensor = self.lateral[3](features[3])
        for level in (2, 1):
            upsampled = functional.interpolate(merged, scale_factor=2.0, mode="nearest")
            merged = self.smooth[level](upsampled + self.lateral[level](features[level]))
        return merged

    def rest(self, fine: Tensor, merged: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `forward` does, from the features at stride 4 and the FPN at stride 8."""
        upsampled = functional.interpolate(merged, scale_factor=2.0, mode="nearest")
        shared = self.head(self.smooth[0](upsampled + self.lateral[0](fine)))
        return self.heat(shared).float(), as_sides(self.sides(shared))


def as_sides(raw: Tensor) -> Tensor:
    """Return distances in px, above 0, from a head's raw output."""
    return functional.softplus(raw.float()) * SIDE_SCALE_PX


class Detector(nn.Module):
    """The exported graph: uint8 NHWC RGB in; boxes, scores and labels out."""

    def __init__(self, network: StreetNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return boxes (b, 100, 4) xyxy px, scores (b, 100) descending, labels (b, 100) int64."""
        return detected(*self.network(normalise(images)))


def detected(logits: Tensor, sides: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return boxes (b, 100, 4) xyxy px, scores (b, 100) descending, labels (b, 100) int64.

    Args:
        logits: of the heat maps, (b, 5, h/4, w/4).
        sides: (b, 4, h/4, w/4): l, t, r, b in px.
    """
    peaks = functional.max_pool2d(logits, 3, 1, 1)
    # A cell that is no local maximum of its class can never be reported (CenterNet's NMS).
    kept = torch.where(logits >= peaks, logits, torch.full_like(logits, -30.0))
    rows, columns = logits.shape[2:]
    best, index = kept.flatten(1).topk(TOP_K, dim=1)
    labels = torch.div(index, rows * columns, rounding_mode="floor")
    cell = index - labels * (rows * columns)
    around, inside = neighbourhood(cell, rows, columns)
    boxes = boxes_at(sides, around, columns)
    of_class = (labels.unsqueeze(2) * (rows * columns) + around).flatten(1)
    heat = logits.flatten(1).gather(1, of_class).view_as(around).sigmoid() * inside
    voted, agreement = vote(boxes, heat)
    scores = suppressed(voted, labels, best.sigmoid() * agreement)
    scores, order = scores.topk(TOP_K, dim=1)
    return (
        voted.gather(1, order.unsqueeze(2).expand(-1, -1, 4)),
        scores,
        labels.gather(1, order),
    )


def neighbourhood(cell: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Return the 3x3 cells around each of (b, k), itself fifth: (b, k, 9), and 1 or 0: inside."""
    row = torch.div(cell, columns, rounding_mode="floor").unsqueeze(2)
    column = cell.unsqueeze(2) - row * columns
    step = torch.arange(9, device=cell.device)
    down = torch.div(step, 3, rounding_mode="floor") - 1
    row, column = row + down, column + (step - 3 * (down + 1) - 1)
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    around = row.clamp(0, rows - 1) * columns + column.clamp(0, columns - 1)
    return around, inside.float()


def boxes_at(sides: Tensor, cell: Tensor, columns: int) -> Tensor:
    """Return the boxes xyxy px (b, k, 9, 4) that cells (b, k, 9) predict."""
    flat = cell.flatten(1).unsqueeze(1).expand(-1, 4, -1)
    left, top, right, bottom = sides.flatten(2).gather(2, flat).unbind(1)
    row = torch.div(cell, columns, rounding_mode="floor").flatten(1)
    x = ((cell.flatten(1) - row * columns).float() + 0.5) * STRIDE_PX
    y = (row.float() + 0.5) * STRIDE_PX
    boxes = torch.stack((x - left, y - top, x + right, y + bottom), dim=2)
    return boxes.view(cell.shape[0], cell.shape[1], 9, 4)


def vote(boxes: Tensor, heat: Tensor) -> tuple[Tensor, Tensor]:
    """Return the boxes (b, k, 4) that neighbours agree on, and how much they agree (b, k), 0..1.

    The cells around a peak predict the same object's box; where they differ, the box is uncertain.
    Their mean, by their heat and their overlap with the peak's own box, is better than the peak's.
    """
    shared = overlap(boxes[:, :, 4:5], boxes)
    weight = (heat * heat * shared**3).unsqueeze(3)
    agreement = (heat * shared).sum(2) / heat.sum(2).clamp(min=1e-6)
    return (boxes * weight).sum(2) / weight.sum(2).clamp(min=1e-9), agreement


def suppressed(boxes: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
    """Return scores (b, k), lower where a better box of the class is at the same place.

    Soft-NMS (Bodla et al. 2017) with a Gaussian, in one step as in Matrix NMS (Wang et al. 2020).
    """
    better = scores.unsqueeze(1) > scores.unsqueeze(2)
    same = labels.unsqueeze(1) == labels.unsqueeze(2)
    shared = overlap(boxes.unsqueeze(2), boxes.unsqueeze(1)) * (better & same).float()
    return scores * torch.exp(-(shared.amax(2) ** 2) / SUPPRESSION)


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """Return the intersection over union of boxes xyxy (..., 4), which broadcast."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = a.unbind(-1), b.unbind(-1)
    width = (torch.minimum(ax1, bx1) - torch.maximum(ax0, bx0)).clamp(min=0)
    height = (torch.minimum(ay1, by1) - torch.maximum(ay0, by0)).clamp(min=0)
    # Sides are never negative, so neither are areas.
    areas = (ax1 - ax0) * (ay1 - ay0) + (bx1 - bx0) * (by1 - by0)
    return width * height / (areas - width * height).clamp(min=1e-6)
