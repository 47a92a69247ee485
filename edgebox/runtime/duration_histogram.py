"""Counts durations by bucket, as Prometheus has them. A few hundred ns per duration."""

from bisect import bisect_left

BOUNDS_NS = tuple(
    round(ms * 1e6)
    for ms in (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2000, 5000)
)
"""Upper bounds, inclusive; dense where deadlines of cameras usually are."""


class Histogram:
    """Durations since the box started."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        """Start at nothing."""
        self.counts = [0] * (len(BOUNDS_NS) + 1)
        """Durations in each bucket, not cumulative; the last has no bound."""
        self.sum_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count a duration; below 0, as clocks of others can make it, counts as 0."""
        duration_ns = max(0, duration_ns)
        self.counts[bisect_left(BOUNDS_NS, duration_ns)] += 1
        self.sum_ns += duration_ns
