"""Owns the vehicle classifier's network: layers, and the graph that is exported.

Fully convolutional (3x3 convolutions, strides 2 to 16), the mean over what is left of the picture,
and one linear layer for each attribute. Limits: sides must be multiples of 16.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from edgebox.scene.colour_names import COLOUR_NAMES
from models.training.layers import ConvUnit, Residual, normalise

TYPES = ("car", "bus", "truck", "motorbike")
COLOURS = COLOUR_NAMES
ATTRIBUTES = (("type", TYPES), ("colour", COLOURS))


class VehicleNet(nn.Module):
    """Normalised crops in, the logits of all labels out, attribute after attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            ConvUnit(3, 16, 2),
            ConvUnit(16, 32, 2),
            Residual(32),
            ConvUnit(32, 64, 2),
            Residual(64),
            ConvUnit(64, 80, 2),
            Residual(80),
        )
        self.answers = nn.Linear(80, sum(len(labels) for _, labels in ATTRIBUTES))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (b, labels) for (b, 3, h, w)."""
        answers: Tensor = self.answers(self.features(x).mean((2, 3)).float())
        return answers


class Classifier(nn.Module):
    """The exported graph: uint8 NHWC RGB in, logits out."""

    def __init__(self, network: VehicleNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (b, labels)."""
        logits: Tensor = self.network(normalise(images))
        return logits


def of_attributes(values: Tensor) -> tuple[Tensor, ...]:
    """Return the columns (b, n) of each attribute."""
    return torch.split(values, [len(labels) for _, labels in ATTRIBUTES], dim=1)
