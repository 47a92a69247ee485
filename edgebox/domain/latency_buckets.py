"""Decides the buckets in which latencies are counted, so that counts can be added up. Pure.

Quantiles cannot be averaged; counts can be added. Bucket k holds the latencies that are nearest, as
a ratio, to growth^k ms. So a quantile read from added counts has a relative error of at most
sqrt(growth) - 1, whatever was added and in which order. After DDSketch (Masson, Rim and Lee, VLDB
2019), whose buckets lie between two powers and whose error is the same. edgebox never merges
buckets, because latencies fit into few.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PARTS = ("network", "queue", "inference", "return", "total")
"""The parts of a frame's latency; the last one is the total."""


@dataclass(frozen=True, slots=True)
class LogBuckets:
    """Buckets in powers of `growth`, numbered from 0; the first and the last are unbounded."""

    growth: float
    least_ms: float
    count: int

    @property
    def error(self) -> float:
        """The maximum relative error of a value."""
        return math.sqrt(self.growth) - 1

    @property
    def _first(self) -> int:
        return round(math.log(self.least_ms) / math.log(self.growth))

    def of_ns(self, latencies_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the bucket of each latency; an array of any shape, and one like it."""
        least_ns = self.least_ms * 1e6
        powers = np.log(np.maximum(latencies_ns, least_ns) / 1e6) / math.log(self.growth)
        numbers: npt.NDArray[np.int64] = np.rint(powers).astype(np.int64) - self._first
        return np.clip(numbers, 0, self.count - 1)

    def values_ms(self) -> npt.NDArray[np.float64]:
        """Return the value that represents each bucket: (count,) float64, rising."""
        return np.power(self.growth, np.arange(self.count, dtype=np.float64) + self._first)


HISTORY_BUCKETS = LogBuckets(growth=1.1, least_ms=0.1, count=128)
"""The buckets of stored history: right to 5 % from 0.1 ms to 18 s; a camera needs only a few."""
