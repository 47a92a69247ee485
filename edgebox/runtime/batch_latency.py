"""Measures what batches really take, by variant, batch size and executor.

To be held against the profiles by people; what decides is in `scheduling.drift`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import ExecutorId, VariantName

SAMPLES = 256
"""Recent batches that are remembered of each."""

SHOWN = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class ObservedTimes:
    """Recent batches of one kind."""

    executor: ExecutorId
    variant: VariantName
    batch_size: int
    count: int
    """Batches that the quantiles are of."""
    quantiles_ns: tuple[int, ...]
    """One per entry of `SHOWN`."""


class _Ring:
    __slots__ = ("count", "took_ns")

    def __init__(self) -> None:
        self.took_ns: NDArray[np.int64] = np.zeros(SAMPLES, np.int64)
        self.count = 0


class Observed:
    """Recent execution times. Bounded by what there is: executors, variants and batch sizes."""

    def __init__(self) -> None:
        """Start with nothing measured."""
        self._rings: dict[tuple[ExecutorId, VariantName, int], _Ring] = {}

    def ran(
        self, variant: VariantName, executor: ExecutorId, batch_size: int, took_ns: int
    ) -> None:
        """Take in a batch; `batch_size` includes padding."""
        ring = self._rings.setdefault((executor, variant, batch_size), _Ring())
        ring.took_ns[ring.count % SAMPLES] = took_ns
        ring.count += 1

    def times(self) -> Iterator[ObservedTimes]:
        """Yield what was measured, in order of the names."""
        for (executor, variant, size), ring in sorted(self._rings.items(), key=lambda kv: kv[0]):
            count = min(ring.count, SAMPLES)
            found = np.quantile(ring.took_ns[:count], SHOWN)
            quantiles_ns = tuple(round(float(each)) for each in found)
            yield ObservedTimes(executor, variant, size, count, quantiles_ns)
