"""Decides how many frames of a camera the box takes: a token bucket at the advised rate.

A camera that obeys its advice never runs out of tokens:

- The rate is the advised one, times `MARGIN`.
- A burst holds at most the frames of one deadline, because a link that stood still longer delivers
  frames that are too late anyway, and those that a camera may send ahead of their acks.
- A lower rate applies one deadline after it was advised. A frame that its camera sent before the
  advice reached it, and that can still be answered in time, arrives by then: the way of the advice
  and the way of the frame together are shorter than the deadline.

Pure: the instants are arguments. O(advices of the last deadline) per frame.
"""

from collections import deque

MARGIN = 1.25
"""The rate is this many times the advised one: sources are not exactly on time."""
JITTER_FRAMES = 3
"""A sender may be two periods behind its schedule and catch up, and a quarter ahead of it."""
_SECOND_NS = 1_000_000_000


class ReceiveBudget:
    """The tokens of one camera."""

    def __init__(self, unacknowledged_max: int) -> None:
        """Start full; `unacknowledged_max`: frames that it may send ahead of their acks."""
        self._ahead = unacknowledged_max + JITTER_FRAMES
        self._rate_hz = 0.0
        self._earlier: deque[tuple[int, float]] = deque()
        """(when it was replaced, rate) of earlier advice, in order of time and of falling rate."""
        self._tokens: float | None = None
        """None: no frame has come yet, so the bucket is full."""
        self._counted_ns = 0

    def advised(self, rate_hz: float, now_ns: int) -> None:
        """Note the rate of new advice."""
        if rate_hz < self._rate_hz:
            # What is lower than a later rate decides nothing: so there are never many.
            while self._earlier and self._earlier[-1][1] <= self._rate_hz:
                self._earlier.pop()
            self._earlier.append((now_ns, self._rate_hz))
        self._rate_hz = rate_hz

    def take(self, now_ns: int, slo_ns: int) -> bool:
        """Take a token for a frame; say whether there was one.

        Args:
            now_ns: the present.
            slo_ns: the last deadline of a frame, counted from its capture.
        """
        tokens = self._refill(now_ns, slo_ns)
        taken = tokens >= 1
        self._tokens = tokens - taken
        return taken

    def _refill(self, now_ns: int, slo_ns: int) -> float:
        # The rate of before the passed time, which is the higher one if it has sunk.
        rate_hz = MARGIN * self._rate_in_force(self._counted_ns, slo_ns)
        passed_s = (now_ns - self._counted_ns) / _SECOND_NS
        self._counted_ns = now_ns
        depth = self._ahead + MARGIN * self._rate_in_force(now_ns, slo_ns) * slo_ns / _SECOND_NS
        if self._tokens is None:
            return depth
        return min(depth, self._tokens + passed_s * rate_hz)

    def _rate_in_force(self, now_ns: int, slo_ns: int) -> float:
        while self._earlier and self._earlier[0][0] < now_ns - slo_ns:
            self._earlier.popleft()
        return max(self._rate_hz, self._earlier[0][1] if self._earlier else 0.0)
