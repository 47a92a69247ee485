"""Decides which variants of a family are not worth keeping. Pure.

A variant is set aside when another one is no larger (so its pictures cost a link no more), takes no
longer, was measured at least as accurate, and the measurement rules out that this one is better by
what matters (`GAIN_MIN`). Two variants are
compared on the same resamples of the same pictures, since most of what makes a sample easy or hard
is common to both: the error of the difference is far below that of each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import ExecutorId, VariantName

GAIN_MIN = 0.01
"""A gain below it is not worth a slower variant."""
ERRORS = 2.0
"""Standard errors that a gain may hide in: some 2.5 % of the cases are beyond."""
PICTURES_MIN = 20
"""Fewer say nothing about the pictures that were not taken."""


@dataclass(frozen=True, slots=True)
class VariantTradeOff:
    """One variant in the balance."""

    name: VariantName
    pixels: int
    took_ns: Mapping[ExecutorId, int]
    """P50 of a batch of one, by executor."""
    accuracy: float
    resampled: NDArray[np.float64]  #: (resamples,) the same resamples for all

    def costs_no_more(self, other: "VariantTradeOff") -> bool:
        """Say whether it is no larger than another, and takes no longer anywhere."""
        return self.pixels <= other.pixels and all(
            took <= other.took_ns[at] for at, took in self.took_ns.items()
        )

    def gain_max(self, other: "VariantTradeOff") -> float:
        """Return how much more accurate than another it may be at most, within the error."""
        differences = self.resampled - other.resampled
        return self.accuracy - other.accuracy + ERRORS * float(differences.std(ddof=1))


def dominated(variants: Sequence[VariantTradeOff], pictures: int) -> dict[VariantName, str]:
    """Return the variants not worth keeping, and why.

    Of the others each is smaller, faster somewhere, or better than every other that is kept, as
    far as can be told. O(variants²).

    Args:
        variants: of one family, on the same executors.
        pictures: how many they were judged on.
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
