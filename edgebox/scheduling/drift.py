"""Decides when batches have left their profile for good, and by how much.

Pure. Every batch gives the ratio of the time it took to the profile's median. A watch looks at the
last `WINDOW`: when `NEEDED` of them lie above `SLOW` (or below `FAST`) and that stays so for
`drift_after_ns`, they have drifted.

It is the sign test. A profile that holds puts at most half of the batches on one side of its
median, whatever their distribution, so 96 of 128 lie above `SLOW` >= 1 by chance with a
probability below 1e-8 (the binomial tail), and with real spreads far less. Where things have
changed so much that 19 of 20 batches lie beyond the bound, the first `WINDOW` batches show it with
a probability above 1 - 1e-12; `drift_after_ns` more must pass. A median of ratios would react
to as many, but says nothing about its own errors.

Limits: what changes by less than the bounds is left to the slowdown (`calibration`), which follows
any excess within seconds and forgets it as quickly.
"""

from collections import deque
from dataclasses import dataclass
from statistics import median

WINDOW = 128
NEEDED = 96
SLOW = 1.25
FAST = 0.8
HORIZON_NS = 600_000_000_000
"""Older batches tell nothing of now."""

MEANWHILE_MIN = 16
"""So many batches of another variant, while one was seen to drift, tell whether it does, too."""


@dataclass(frozen=True, slots=True)
class Drifted:
    """What a watch has found."""

    ratio: float
    """Median of the times taken by those of the profile."""
    since_ns: int
    """When the first of the batches ended that show it."""
    seen_ns: int
    """From when on it was seen: all that ran later ran under it."""


class DriftDetector:
    """The last batches of one variant on one executor. O(1) per batch, but where it drifts."""

    def __init__(self, after_ns: int) -> None:
        """Watch for what lasts so long."""
        self._after_ns = after_ns
        self._ratios: deque[float] = deque()
        self._ended_ns: deque[int] = deque()
        self._slow = 0
        self._fast = 0
        self._side = 0
        """Where they have drifted to: 1 slower, -1 faster, 0 nowhere."""
        self._seen_ns = 0
        """Since when they have been seen there."""
        self._since_ns = 0

    def add(self, ratio: float, now_ns: int) -> Drifted | None:
        """Take a batch in; return what it proves, and begin anew then."""
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
        """Forget every batch: they were held against another profile."""
        self._ratios.clear()
        self._ended_ns.clear()
        self._slow = self._fast = self._side = 0

    def since(self, from_ns: int) -> float | None:
        """Return the median ratio of the batches since an instant; None: too few have run."""
        pairs = zip(self._ratios, self._ended_ns, strict=True)
        ratios = [ratio for ratio, ended_ns in pairs if ended_ns >= from_ns]
        return median(ratios) if len(ratios) >= MEANWHILE_MIN else None
