"""Decides which variants of a family are not worth keeping. Pure.

A variant is dominated when another one is no larger (so its pictures cost a link no more), no
slower and at least as accurate as measured, and the measurement rules out that this one is better
by a relevant amount (`GAIN_MIN`). Two variants are compared on the same resamples of the same
pictures. Whether a sample is easy or hard affects both, so the error of the difference is far below
the error of each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import ExecutorId, VariantName

GAIN_MIN = 0.01
"""A gain below it is not worth a slower variant."""
ERRORS = 2.0
"""Standard errors of the bound on a gain: about 2.5 % of the cases exceed it."""
PICTURES_MIN = 20
"""Fewest pictures for a decision."""


@dataclass(frozen=True, slots=True)
class VariantTradeOff:
    """Accuracy and cost of one variant."""

    name: VariantName
    pixels: int
    took_ns: Mapping[ExecutorId, int]
    """P50 of a batch of one, by executor."""
    accuracy: float
    resampled: NDArray[np.float64]  #: (resamples,) the same resamples for all

    def costs_no_more(self, other: "VariantTradeOff") -> bool:
        """Return whether it is no larger than another, and no slower on any executor."""
        return self.pixels <= other.pixels and all(
            took <= other.took_ns[at] for at, took in self.took_ns.items()
        )

    def gain_max(self, other: "VariantTradeOff") -> float:
        """Return how much more accurate than another it may be at most, within the error."""
        differences = self.resampled - other.resampled
        return self.accuracy - other.accuracy + ERRORS * float(differences.std(ddof=1))


def dominated(variants: Sequence[VariantTradeOff], pictures: int) -> dict[VariantName, str]:
    """Return the variants not worth keeping, and why.

    Each of the others is smaller, faster on some executor, or better than every other kept one, as
    far as measured. O(variants²).

    Args:
        variants: variants of one family, on the same executors.
        pictures: number of pictures they were evaluated on.
    """
    reasons: dict[VariantName, str] = {}
    if pictures < PICTURES_MIN:
        return reasons
    kept: list[VariantTradeOff] = []
    for variant in sorted(variants, key=_cheapest_first):
        better = [
            other
            for other in kept
            if other.costs_no_more(variant)
            and other.accuracy >= variant.accuracy
            and variant.gain_max(other) < GAIN_MIN
        ]
        if better:
            reasons[variant.name] = _reason(variant, max(better, key=lambda v: v.accuracy))
        else:
            kept.append(variant)
    return reasons


def _cheapest_first(variant: VariantTradeOff) -> tuple[int, int, float, str]:
    return variant.pixels, sum(variant.took_ns.values()), -variant.accuracy, variant.name


def _reason(variant: VariantTradeOff, other: VariantTradeOff) -> str:
    slowest = max(variant.took_ns, key=lambda at: variant.took_ns[at])
    took_ms, others_ms = variant.took_ns[slowest] / 1e6, other.took_ns[slowest] / 1e6
    return (
        f"{other.name} is no slower ({others_ms:.1f} ms, this {took_ms:.1f} ms) and no less "
        f"accurate ({other.accuracy:.3f}, this {variant.accuracy:.3f})"
    )
