"""Owns what a soak says: slopes of samples over time and how certain they are. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

BLOCKS = 12
_T_95 = 2.228
"""Student's t of a two-sided 95 % interval with `BLOCKS` - 2 degrees of freedom."""
_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that may grow, and how fast it may."""

    name: str
    unit: str
    scale: float
    """Samples are divided by it."""
    bound_per_h: float | None
    """In the unit; None: the slope is told and not judged."""


@dataclass(frozen=True, slots=True)
class Slope:
    """How a quantity developed over the second half of a run."""

    quantity: Quantity
    first: float
    """The mean of the run's first twelfth."""
    half: float
    """The mean of the second half's first twelfth."""
    last: float
    """The mean of the run's last twelfth."""
    highest: float
    per_h: float
    """The slope over the second half."""
    margin_per_h: float
    """Half the width of its 95 % interval."""

    @property
    def verdict(self) -> str:
        """Whether it grows too fast."""
        bound = self.quantity.bound_per_h
        if bound is None:
            return ""
        if self.per_h > bound:
            return "ABOVE"
        return "ok" if self.per_h + self.margin_per_h <= bound else "ok, uncertain"

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        figures = {
            key: round(value, 4)
            for key, value in asdict(self).items()
            if key not in {"quantity", "quantities"}
        }
        about = {"unit": self.quantity.unit, "bound_per_h": self.quantity.bound_per_h}
        return {**about, **figures, "verdict": self.verdict}


def slope_per_h(at_s: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the slope per hour and half the width of its 95 % interval.

    Neighbouring samples resemble each other, so a line through all of them would seem more certain
    than it is. The line goes through the means of `BLOCKS` blocks, each long against what they
    have in common.

    Args:
        at_s: when, rising; at least two samples per block.
        values: as many.
    """
    at_h = np.array([part.mean() for part in np.array_split(np.asarray(at_s) / _PER_HOUR, BLOCKS)])
    means = np.array([part.mean() for part in np.array_split(np.asarray(values, float), BLOCKS)])
    off = at_h - at_h.mean()
    spread = float((off**2).sum())
    slope = float((off * means).sum()) / spread
    left = means - means.mean() - slope * off
    error = float(np.sqrt((left**2).sum() / (BLOCKS - 2) / spread))
    return slope, _T_95 * error


def slopes(
    samples: Sequence[Mapping[str, float]], quantities: Sequence[Quantity]
) -> list[Slope] | None:
    """Return each quantity's slope over the second half; None: there are too few samples.

    Args:
        samples: with `at_s`, in order.
        quantities: those that no sample has are left out.
    """
    if len(samples) < 4 * BLOCKS:
        return None
    found = []
    for quantity in quantities:
        if any(quantity.name not in sample for sample in samples):
            continue
        values = np.array([sample[quantity.name] for sample in samples]) / quantity.scale
        half = len(samples) // 2
        slope, margin = slope_per_h(
            [sample["at_s"] for sample in samples[half:]], values[half:].tolist()
        )
        first, *_, last = np.array_split(values, BLOCKS)
        middle = np.array_split(values[half:], BLOCKS)[0]
        found.append(
            Slope(
                quantity,
                float(first.mean()),
                float(middle.mean()),
                float(last.mean()),
                float(values.max()),
                slope,
                margin,
            )
        )
    return found


def table(found: Sequence[Slope]) -> str:
    """Return the slopes for people."""
    lines = [
        f"{'':16}{'unit':>7}{'at first':>10}{'half-way':>10}{'at last':>10}{'highest':>10}"
        f"{'per hour, second half':>24}{'bound':>8}"
    ]
    for each in found:
        bound = each.quantity.bound_per_h
        slope = f"{each.per_h:+.2f} +- {each.margin_per_h:.2f}"
        lines.append(
            f"{each.quantity.name:16}{each.quantity.unit:>7}{each.first:10.1f}{each.half:10.1f}"
            f"{each.last:10.1f}{each.highest:10.1f}{slope:>24}"
            f"{'' if bound is None else f'{bound:g}':>8}  {each.verdict}"
        )
    return "\n".join(lines)
