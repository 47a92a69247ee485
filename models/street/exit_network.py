"""Owns the street detector's exit heads: answers from a part of the network.

A head decides at stride 8, where a convolution costs a quarter, and gives four cells of stride 4
for each of its own (sub-pixel convolution, Shi et al. 2016). It sees the fine features of stride 4
through a 2x2 convolution of stride 2. The network that it is an exit of stays as it is: what the
second part answers is what the whole network answers.

The exit head is Jellyfish's and BranchyNet's idea (Teerapittayanon et al. 2016); ours is of a
detector, so what exits is a whole picture.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.street.network import LABELS, StreetNet, as_sides, detected
from models.training.layers import ConvUnit, Residual, normalise

PLACES = ("stage8", "level8")
"""After the stage of stride 8, or after the FPN's level of stride 8."""
_WIDTH = 48


class ExitHead(nn.Module):
    """Features in, heat-map logits and box sides at stride 4 out, as the network's own."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.detail = nn.Conv2d(32, _WIDTH, 2, 2)
        if place == "stage8":
            self.lateral = nn.Conv2d(64, _WIDTH, 1)
            self.down16 = nn.Sequential(ConvUnit(64, _WIDTH, 2), Residual(_WIDTH))
            self.down32 = nn.Sequential(ConvUnit(_WIDTH, _WIDTH, 2), Residual(_WIDTH))
        self.head = ConvUnit(_WIDTH, 64)
        self.raw = nn.Conv2d(64, 4 * (len(LABELS) + 4), 1)
        nn.init.normal_(self.raw.weight, std=0.01)
        with torch.no_grad():
            assert self.raw.bias is not None
            self.raw.bias[: 4 * len(LABELS)] = -4.6  # sigmoid = 0.01
            self.raw.bias[4 * len(LABELS) :] = 0.5

    def forward(self, fine: Tensor, coarse: Tensor) -> tuple[Tensor, Tensor]:
        """Return heat logits (b, 5, h/4, w/4) and sides (b, 4, h/4, w/4), px.

        Args:
            fine: features of stride 4, (b, 32, h/4, w/4).
            coarse: at stride 8, of the head's place.
        """
        merged = coarse
        if self.place == "stage8":
            wide = self.down16(coarse)
            wide = wide + functional.interpolate(self.down32(wide), scale_factor=2.0)
            merged = self.lateral(coarse) + functional.interpolate(wide, scale_factor=2.0)
        seen = functional.relu(merged + self.detail(fine))
        raw = functional.pixel_shuffle(self.raw(self.head(seen)), 2)
        return raw[:, : len(LABELS)].float(), as_sides(raw[:, len(LABELS) :])


def coarse_of(network: StreetNet, place: str, eighth: Tensor, fine: Tensor) -> Tensor:
    """Return what a head at a place sees at stride 8.

    Args:
        network: the whole one.
        place: of the head.
        eighth: features of stride 8.
        fine: features of stride 4.
    """
    if place == "stage8":
        return eighth
    sixteenth = network.stage16(eighth)
    return network.merged([fine, eighth, sixteenth, network.stage32(sixteenth)])


class FirstPart(nn.Module):
    """The graph up to the exit: uint8 NHWC RGB in; the exit's answer and two features out."""

    def __init__(self, network: StreetNet, head: ExitHead) -> None:
        super().__init__()
        self.network, self.head = network, head

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return boxes, scores and labels as `detected` does, and features of strides 4 and 8."""
        fine = self.network.stage4(self.network.stem(normalise(images)))
        eighth = self.network.stage8(fine)
        coarse = coarse_of(self.network, self.head.place, eighth, fine)
        return (*detected(*self.head(fine, coarse)), fine, coarse)


class SecondPart(nn.Module):
    """The graph after the exit: the features in; boxes, scores and labels of the whole out."""

    def __init__(self, network: StreetNet, place: str) -> None:
        super().__init__()
        self.network, self.place = network, place

    def forward(self, fine: Tensor, coarse: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return boxes, scores and labels as `detected` does."""
        if self.place == "stage8":
            coarse = coarse_of(self.network, "level8", coarse, fine)
        return detected(*self.network.rest(fine, coarse))
