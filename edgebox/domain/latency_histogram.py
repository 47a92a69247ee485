"""Counts durations in buckets, so that the counts of many sources can be added up. Pure.

Quantiles cannot be averaged; counts can be added. With logarithmic buckets a quantile that is read
from added counts is right to sqrt(growth) - 1, whatever was added and in which order. After
DDSketch (Masson, Rim and Lee, VLDB 2019), whose buckets lie between two powers and whose error is
the same; these buckets never merge, because few of them cover the latencies of frames.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

PARTS = ("network", "queue", "inference", "return", "total")
"""The parts of a frame's latency; the last one is the total."""


class Buckets:
    """Ranges of durations, numbered from 0; the last has no upper edge."""

    __slots__ = ("_edges", "count", "edges_ns", "values_ms")

    def __init__(self, edges_ns: Iterable[int], values_ms: Iterable[float] = ()) -> None:
        """Define the buckets.

        Args:
            edges_ns: upper edges, inclusive, rising.
            values_ms: the duration that stands for each bucket; needed for quantiles only.
        """
        self.edges_ns = tuple(edges_ns)
        self.values_ms = tuple(values_ms)
        self.count = len(self.edges_ns) + 1
        self._edges = np.array(self.edges_ns)

    @classmethod
    def logarithmic(cls, growth: float, least_ms: float, count: int) -> "Buckets":
        """Return buckets around powers of `growth`, from about `least_ms` on.

        A duration belongs to the power that is nearest to it as a ratio.
        """
        first = round(math.log(least_ms) / math.log(growth))
        powers = range(first, first + count)
        return cls(
            (math.floor(growth ** (power + 0.5) * 1e6) for power in powers[:-1]),
            (growth**power for power in powers),
        )

    @property
    def relative_error(self) -> float:
        """The maximum relative error of a bucket's value, where buckets are logarithmic."""
        return math.sqrt(self.values_ms[1] / self.values_ms[0]) - 1

    def of_ns(self, durations_ns: Ints) -> Ints:
        """Return the bucket of each duration; an array of any shape, and one like it."""
        return np.searchsorted(self._edges, durations_ns)


METRIC_BUCKETS = Buckets(
    round(ms * 1e6)
    for ms in (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2000, 5000)
)
"""The buckets of Prometheus's histograms; dense where deadlines of cameras usually are."""

HISTORY_BUCKETS = Buckets.logarithmic(growth=1.1, least_ms=0.1, count=128)
"""The buckets of the stored history: right to 5 % from 0.1 ms to 18 s. A few cover a camera."""

SUMMARY_BUCKETS = Buckets.logarithmic(growth=1.02, least_ms=0.01, count=906)
"""The buckets of a camera's summary: right to 1 % from 0.01 ms to 10 minutes."""


def buckets_at(counts: Ints, ranks: Ints) -> Ints:
    """Return the buckets that hold the durations of some ranks.

    Args:
        counts: durations in each bucket, (..., buckets).
        ranks: which of the durations, ordered, from 1 on: (...,).
    """
    found: Ints = np.argmax(np.cumsum(counts, axis=-1) >= ranks[..., None], axis=-1)
    return found


class Histogram:
    """Durations of one kind. `add` takes a few hundred ns."""

    __slots__ = ("buckets", "counts", "sum_ns")

    def __init__(self, buckets: Buckets, counts: Mapping[str, int] | None = None) -> None:
        """Start with nothing, or with the counts that `to_json` returned."""
        self.buckets = buckets
        self.counts = [0] * buckets.count
        """Durations in each bucket, not cumulative."""
        self.sum_ns = 0
        """Sum of what `add` counted."""
        for bucket, count in (counts or {}).items():
            self.counts[int(bucket)] = count

    def add(self, duration_ns: int) -> None:
        """Count a duration; below 0, as clocks of others can make it, counts as 0."""
        duration_ns = max(0, duration_ns)
        self.counts[bisect_left(self.buckets.edges_ns, duration_ns)] += 1
        self.sum_ns += duration_ns

    def quantiles_ms(self, quantiles: Mapping[str, float]) -> dict[str, float]:
        """Return the nearest-rank quantiles by name; empty when nothing was counted."""
        last = sum(self.counts) - 1
        if last < 0:
            return {}
        ranks = np.array([round(q * last) + 1 for q in quantiles.values()])
        found = buckets_at(np.array(self.counts), ranks)
        values_ms = self.buckets.values_ms
        return {
            name: round(values_ms[at], 2)
            for name, at in zip(quantiles, found.tolist(), strict=True)
        }

    def to_json(self) -> dict[str, int]:
        """Return the buckets that are not empty; such objects can be added up key by key."""
        return {str(bucket): count for bucket, count in enumerate(self.counts) if count}
