"""Owns the options of all cameras as arrays, one row a camera, one column a variant. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import Variant, VariantName
from edgebox.planning.options import CameraOptions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OptionTable:
    """What every camera could be given: (n, V) for n cameras and V columns."""

    names: tuple[VariantName, ...]
    """The variant of each column, by family and rising size; those of best effort come last."""
    best_effort: Bools
    """(V,): whose cameras have no deadline."""
    number: Ints
    """Which of its camera's options this is, 0 for best effort; -1: none."""
    rate_hz: Floats
    value: Floats
    """Accuracy times rate, more for what is in force; minus infinity: no option."""
    compute_ns: Floats
    """The compute budget; infinite for best effort, minus infinity: no option."""
    raises: Bools
    """Whether it is larger than what its camera has."""
    accuracy_scale: float
    """Accuracy times rate of all cameras at their largest options."""

    @property
    def possible(self) -> Bools:
        """Where there is an option."""
        return np.asarray(self.number >= 0)


def option_table(cameras: Sequence[CameraOptions], stay_bonus: float) -> OptionTable:
    """Gather the options of cameras. O(n V).

    Args:
        cameras: what each could be given.
        stay_bonus: by how much more an option counts that is in force.
    """
    served = _rising(o.variant for c in cameras if c.served for o in c.options)
    effort = _rising(o.variant for c in cameras if not c.served for o in c.options)
    variants = (*served, *effort)
    best_effort = np.arange(len(variants)) >= len(served)
    column = {
        True: {variant.name: at for at, variant in enumerate(served)},
        False: {variant.name: len(served) + at for at, variant in enumerate(effort)},
    }
    # All options one after the other: whose each is, and what it is.
    counts = np.array([len(c.options) for c in cameras])
    starts = np.cumsum(counts) - counts
    rows = np.repeat(np.arange(len(cameras)), counts)
    flat = [
        (column[c.served][o.variant.name], o.rate_hz, o.budget.compute_ns, o.accuracy)
        for c in cameras
        for o in c.options
    ]
    columns = np.array([each[0] for each in flat])
    rate_hz = np.array([each[1] for each in flat])
    compute_ns = np.array([each[2] for each in flat], np.float64)
    value = np.array([each[3] for each in flat]) * rate_hz
    current = [
        -1 if (now := c.snapshot.current) is None else column[c.served].get(now.variant, -1)
        for c in cameras
    ]
    current_px = [np.inf if c.current_px is None else c.current_px for c in cameras]
    pixels = np.array([each.pixels for each in variants])

    stays = columns == np.array(current)[rows]

    def spread(values: NDArray[Any], missing: float) -> NDArray[Any]:
        out = np.full((len(cameras), len(variants)), missing, values.dtype)
        out[rows, columns] = values
        return out

    return OptionTable(
        tuple(each.name for each in variants),
        best_effort,
        number=spread(np.arange(len(rows)) - starts[rows], -1),
        rate_hz=spread(rate_hz, 0.0),
        value=spread(value * np.where(stays, stay_bonus, 1.0), -np.inf),
        compute_ns=spread(np.where(best_effort[columns], np.inf, compute_ns), -np.inf),
        raises=spread(pixels[columns] > np.array(current_px)[rows], False),
        accuracy_scale=float(np.maximum.reduceat(value, starts).sum()),
    )


def _rising(variants: Iterable[Variant]) -> list[Variant]:
    """Return distinct variants by family and rising size."""
    found = {variant.name: variant for variant in variants}
    return sorted(found.values(), key=lambda each: (each.family, each.pixels, each.name))
