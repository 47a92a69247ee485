"""Owns how networks are trained here: AdamW, the learning rate's course, the weights' average."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

WARM_UP = 0.03  # share of the run
AVERAGE_DECAY, AVERAGE_EVERY = 0.992, 4

Network = TypeVar("Network", bound=nn.Module)


class AveragedTraining(Generic[Network]):
    """A network, the running average of its weights, and the optimiser.

    Args:
        network: as it begins.
        peak_rate: the largest learning rate.
    """

    def __init__(self, network: Network, peak_rate: float) -> None:
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.average: Network = copy.deepcopy(self.network)
        self.steps = 0
        self._norms_fixed = False
        self._peak_rate = peak_rate
        self._optimiser = torch.optim.AdamW(
            self.network.parameters(), peak_rate, weight_decay=0.01, fused=True
        )

    def load(self, checkpoint: Path) -> None:
        """Take the weights of an earlier run; blocks that it did not have change nothing yet."""
        weights = {**self.network.state_dict(), **torch.load(checkpoint)}
        self.network.load_state_dict(weights)
        self.average.load_state_dict(weights)

    def save(self, checkpoint: Path) -> None:
        """Write the averaged weights."""
        torch.save(self.average.state_dict(), checkpoint)

    def fix_norms(self) -> None:
        """Go on from the average, and normalise by its statistics instead of each batch's, once.

        Where a batch has pictures of one size, its statistics are that size's; a network that is
        used at several sizes must come to terms with one for all.
        """
        if self._norms_fixed:
            return
        self._norms_fixed = True
        self.network.load_state_dict(self.average.state_dict())
        for module in self.network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()

    def descend(self, loss: Tensor, progress: float) -> None:
        """Take one step down a loss, at a share of the run that is done, 0..1."""
        for group in self._optimiser.param_groups:
            group["lr"] = self._peak_rate * rate_share(progress)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
        self._optimiser.step()
        self.steps += 1
        if self.steps % AVERAGE_EVERY == 0:
            self._follow()

    @torch.no_grad()
    def _follow(self) -> None:
        rounds = self.steps // AVERAGE_EVERY
        decay = min(AVERAGE_DECAY, (1 + rounds) / (10 + rounds))
        mine = list(self.average.state_dict().values())
        theirs = list(self.network.state_dict().values())
        flowing = [index for index, value in enumerate(mine) if value.is_floating_point()]
        torch._foreach_lerp_([mine[i] for i in flowing], [theirs[i] for i in flowing], 1 - decay)


def rate_share(progress: float) -> float:
    """Return the learning rate as a share of its peak: a short rise, then a cosine's fall."""
    if progress < WARM_UP:
        return 0.05 + 0.95 * progress / WARM_UP
    rest = (progress - WARM_UP) / (1 - WARM_UP)
    return 0.005 + 0.995 * 0.5 * (1 + math.cos(math.pi * min(rest, 1.0)))


def with_other_light(x: Tensor, strength: float = 1.0) -> Tensor:
    """Return normalised images with other contrast, brightness and tint.

    Args:
        x: (b, 3, h, w).
        strength: 1.0 changes the light as much as the hours of a day do.
    """
    count = x.shape[0]
    gain = 1 + strength * 0.2 * (2 * torch.rand(count, 1, 1, 1) - 1)
    brighter = 0.3 * (2 * torch.rand(count, 1, 1, 1) - 1)
    return x * gain + strength * (brighter + 0.12 * torch.randn(count, 3, 1, 1))
