"""Owns the options of all cameras as arrays, one row a camera, one column a variant. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.models import VariantName
from edgebox.planning.allocation import option_value
from edgebox.planning.options import CameraOptions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OptionTable:
    """What every camera could be given: (n, V) for n cameras and V variants."""

    names: tuple[VariantName, ...]
    """The variants, by family and rising size."""
    number: Ints
    """Which of its camera's options this is; -1: none."""
    rate_hz: Floats
    value: Floats
    """Accuracy times rate, more for what is in force; minus infinity: no option."""
    compute_ns: Floats
    """The compute budget; infinite for best effort, minus infinity: no option."""

    @property
    def possible(self) -> Bools:
        """Where there is an option."""
        return self.number >= 0


def option_table(cameras: Sequence[CameraOptions], stay_bonus: float) -> OptionTable:
    """Gather the options of cameras. O(n V)."""
    variants = {option.variant.name: option.variant for c in cameras for option in c.options}
    names = tuple(sorted(variants, key=lambda n: (variants[n].family, variants[n].pixels, n)))
    column = {name: at for at, name in enumerate(names)}
    shape = len(cameras), len(names)
    number = np.full(shape, -1, np.int64)
    rate_hz = np.zeros(shape)
    value, compute_ns = np.full(shape, -np.inf), np.full(shape, -np.inf)
    for row, c in enumerate(cameras):
        for at, option in enumerate(c.options):
            where = row, column[option.variant.name]
            number[where] = at
            rate_hz[where] = option.rate_hz
            value[where] = option_value(c, option, stay_bonus)
            compute_ns[where] = option.budget.compute_ns if c.served else np.inf
    return OptionTable(names, number, rate_hz, value, compute_ns)
