"""Owns the building blocks of the networks that are trained here."""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

Module = TypeVar("Module", bound=nn.Module)


class ConvUnit(nn.Module):
    """A 3x3 convolution, batch normalisation and ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, relu: bool = True) -> None:
        super().__init__()
        self.conv: nn.Module = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(outputs)
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        """Return (b, outputs, h / stride, w / stride)."""
        y: Tensor = self.norm(self.conv(x))
        return functional.relu(y, inplace=True) if self.relu else y

    def fuse(self) -> None:
        """Fold the normalisation into the convolution (for inference only)."""
        if isinstance(self.norm, nn.BatchNorm2d) and isinstance(self.conv, nn.Conv2d):
            self.conv = fuse_conv_bn_eval(self.conv, self.norm)
            self.norm = nn.Identity()


class Residual(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = ConvUnit(channels, channels)
        self.second = ConvUnit(channels, channels, relu=False)
        # A new block changes nothing at first: training starts faster, and from shallower nets.
        nn.init.zeros_(self.second.norm.weight)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the input's shape."""
        return functional.relu(x + self.second(self.first(x)))


def fused(network: Module) -> Module:
    """Fold every batch normalisation, in place; call after eval()."""
    for module in network.modules():
        if isinstance(module, ConvUnit):
            module.fuse()
    return network


def normalise(images: Tensor) -> Tensor:
    """Map uint8-valued (b, h, w, 3) images to floats (b, 3, h, w) of about unit variance."""
    return images.permute(0, 3, 1, 2).float() * (1.0 / 64.0) - 1.75
