"""Owns the options of all cameras as arrays, one row a camera, one column a variant. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import Variant, VariantName
from edgebox.planning.allocation import option_value, raises
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
    names = (*served, *effort)
    column = {(True, name): at for at, name in enumerate(served)}
    column |= {(False, name): len(served) + at for at, name in enumerate(effort)}
    shape = len(cameras), len(names)
    table = OptionTable(
        names,
        np.arange(len(names)) >= len(served),
        np.full(shape, -1, np.int64),
        np.zeros(shape),
        np.full(shape, -np.inf),
        np.full(shape, -np.inf),
        np.zeros(shape, np.bool_),
        sum(max(option_value(c, o, 1.0) for o in c.options) for c in cameras),
    )
    for row, c in enumerate(cameras):
        for at, option in enumerate(c.options):
            where = row, column[c.served, option.variant.name]
            table.number[where] = at
            table.rate_hz[where] = option.rate_hz
            table.value[where] = option_value(c, option, stay_bonus)
            table.raises[where] = raises(c, option)
            table.compute_ns[where] = option.budget.compute_ns if c.served else np.inf
    return table


def _rising(variants: Iterable[Variant]) -> tuple[VariantName, ...]:
    """Return the names of variants by family and rising size."""
    found = {variant.name: variant for variant in variants}
    return tuple(sorted(found, key=lambda n: (found[n].family, found[n].pixels, n)))
