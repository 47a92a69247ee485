"""Decides when batches have left their profile permanently, and by how much.

Pure. Every batch gives the ratio of its time to the profile's median. A detector considers the last
`WINDOW` ratios. When `NEEDED` of them are above `SLOW` (or below `FAST`), and that lasts for
`drift_after_ns`, the batches have drifted.

This is the sign test. If a profile holds, at most half of the batches are on one side of its
median, whatever their distribution. Then 96 of 128 are above `SLOW` >= 1 with a probability below
1e-8 (the binomial tail), and with real spreads far less. If the change is so large that 19 of 20
batches are beyond the bound, the first `WINDOW` batches show it with a probability above 1 - 1e-12,
followed by the delay of `drift_after_ns`. A median of ratios would react to as many batches, but
gives no error probability.

Limits: changes smaller than the bounds are left to the slowdown (`calibration`), which follows any
excess within seconds and forgets it as fast.
"""

from collections import deque
from dataclasses import dataclass
from statistics import median

WINDOW = 128
NEEDED = 96
SLOW = 1.25
FAST = 0.8
HORIZON_NS = 600_000_000_000
"""Older batches are ignored."""

MEANWHILE_MIN = 16
"""Number of batches of another variant, run while one variant drifted, that are enough to say
whether the other one drifted too."""


@dataclass(frozen=True, slots=True)
class Drifted:
    """A drift that a detector has found."""

    ratio: float
    """Median of the times relative to the profile."""
    since_ns: int
    """When the first of the batches that show it ended."""
    seen_ns: int
    """When it was first seen: all later batches ran under it."""


class DriftDetector:
    """The last batches of one variant on one executor. O(1) per batch unless it drifts."""

    def __init__(self, after_ns: int) -> None:
        """Detect changes that last at least this long."""
        self._after_ns = after_ns
        self._ratios: deque[float] = deque()
        self._ended_ns: deque[int] = deque()
        self._slow = 0
        self._fast = 0
        self._side = 0
        """Direction of the drift: 1 slower, -1 faster, 0 none."""
        self._seen_ns = 0
        """Since when the batches have been on that side."""
        self._since_ns = 0

    def add(self, ratio: float, now_ns: int) -> Drifted | None:
        """Add a batch; return the drift it proves, and then start again."""
        while self._ratios and (
            len(self._ratios) == WINDOW or self._ended_ns[0] < now_ns - HORIZON_NS
        ):
            self._ended_ns.popleft()
            self._count(self._ratios.popleft(), -1)
        self._ratios.append(ratio)
        self._ended_ns.append(now_ns)
        self._count(ratio, 1)
        side = (self._slow >= NEEDED) - (self._fast >= NEEDED)
        if side != self._side:
            self._side, self._seen_ns, self._since_ns = side, now_ns, self._ended_ns[0]
        if side == 0 or len(self._ratios) < WINDOW or now_ns - self._seen_ns < self._after_ns:
            return None
        drifted = Drifted(median(list(self._ratios)[-NEEDED:]), self._since_ns, self._seen_ns)
        self.clear()
        return drifted

    def _count(self, ratio: float, by: int) -> None:
        self._slow += by * (ratio > SLOW)
        self._fast += by * (ratio < FAST)

    def clear(self) -> None:
        """Forget every batch, because they were compared with another profile."""
        self._ratios.clear()
        self._ended_ns.clear()
        self._slow = self._fast = self._side = 0

    def since(self, from_ns: int) -> float | None:
        """Return the median ratio of the batches since an instant; None: too few have run."""
        pairs = zip(self._ratios, self._ended_ns, strict=True)
        ratios = [ratio for ratio, ended_ns in pairs if ended_ns >= from_ns]
        return median(ratios) if len(ratios) >= MEANWHILE_MIN else None
