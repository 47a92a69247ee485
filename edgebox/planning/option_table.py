"""Owns the options of all cameras as arrays, one row a camera, one column a variant. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.models import Variant, VariantName
from edgebox.planning.allocation import BEST_EFFORT_SERVICE, option_value
from edgebox.planning.options import CameraOptions, Option

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


_SERVICE_WEIGHT = 10.0
"""One camera's service counts so much more than the accuracy times rate of all together."""


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
    accuracy_scale: float
    """Accuracy times rate of all cameras at their largest options."""
    service_scale: float
    """What the service of all cameras counts in `value`; 0: service cannot be given up."""

    @property
    def possible(self) -> Bools:
        """Where there is an option."""
        return np.asarray(self.number >= 0)

    def option(self, cameras: Sequence[CameraOptions], row: int, column: int) -> CameraOptions:
        """Return a camera with the option of a column alone, best effort if that is one."""
        of = cameras[row]
        return of.best_effort() if of.served and self.best_effort[column] else of


def option_table(
    cameras: Sequence[CameraOptions], stay_bonus: float, *, give_up: bool = False
) -> OptionTable:
    """Gather the options of cameras. O(n V).

    Args:
        cameras: what each could be given.
        stay_bonus: by how much more an option counts that is in force.
        give_up: cameras may also become best effort. Then service (`Allocation.service`) is a part
            of an option's value that outweighs all accuracy.
    """
    served = {o.variant.name: o.variant for c in cameras if c.served for o in c.options}
    effort = {
        c.smallest.variant.name: c.smallest.variant for c in cameras if give_up or not c.served
    }

    def rising(variants: dict[VariantName, Variant]) -> list[VariantName]:
        return sorted(variants, key=lambda n: (variants[n].family, variants[n].pixels, n))

    names = rising(served) + rising(effort)
    column = {name: at for at, name in enumerate(rising(served))}
    effort_column = {name: len(served) + at for at, name in enumerate(rising(effort))}
    shape = len(cameras), len(names)
    scale = sum(max(option_value(c, o, 1.0) for o in c.options) for c in cameras)
    weight = _SERVICE_WEIGHT * scale if give_up else 0.0
    table = OptionTable(
        tuple(names),
        np.arange(len(names)) >= len(served),
        np.full(shape, -1, np.int64),
        np.zeros(shape),
        np.full(shape, -np.inf),
        np.full(shape, -np.inf),
        scale,
        weight * len(cameras),
    )

    def put(where: tuple[int, int], at: int, of: CameraOptions, option: Option) -> None:
        serves = of.served and not table.best_effort[where[1]]
        share = option.rate_hz / of.snapshot.camera.rate_hz
        table.number[where] = at
        table.rate_hz[where] = option.rate_hz
        table.value[where] = option_value(of, option, stay_bonus)
        table.value[where] += weight * share * (1.0 if serves else BEST_EFFORT_SERVICE)
        table.compute_ns[where] = option.budget.compute_ns if serves else np.inf

    for row, c in enumerate(cameras):
        if c.served:
            for at, option in enumerate(c.options):
                put((row, column[option.variant.name]), at, c, option)
        if give_up or not c.served:
            option = c.smallest if c.served else c.options[0]
            put((row, effort_column[option.variant.name]), 0, c, option)
    return table
