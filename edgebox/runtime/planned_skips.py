"""Tells which of the frames that a camera did not send its advice had ordered.

A camera that captures 5 frames/s and is advised to send 2 leaves out 3 of them on purpose. Those
are no misses. The camera need not say which they are: of the frames that it captured in some time,
the plan asked for the advised rate times that time, and for none beyond.

Pure: instants are arguments. O(1) per frame.
"""

_TOLERANCE_FRAMES = 2.0
"""How far captures may run ahead of the rate, or behind it: jitter, and advice on its way."""
_ROUNDING = 1e-6


class PlannedSkips:
    """The account of one connection."""

    def __init__(self, rate_hz: float, now_ns: int) -> None:
        """Begin at a hello.

        Args:
            rate_hz: what the camera would like to send.
            now_ns: the present, on the clock of all instants here.
        """
        self._wanted_hz = rate_hz
        self._rate_hz = rate_hz
        self._until_ns = now_ns
        self._excess = -1.0
        """Frames captured so far beyond those that the plan asked for. The first is wanted at
        once."""

    def advised(self, rate_hz: float, now_ns: int) -> None:
        """Note another rate; it holds from now on."""
        self._advance(now_ns)
        self._rate_hz = min(self._wanted_hz, rate_hz)

    def take(self, captured: int, skipped: int, at_ns: int) -> int:
        """Return how many of the frames not sent were ordered.

        Args:
            captured: frames captured since the last call.
            skipped: those of them that were not sent.
            at_ns: when the last of them was captured.
        """
        self._advance(at_ns)
        self._excess += captured
        ordered = min(skipped, max(0, int(self._excess + _ROUNDING)))
        left = self._excess - ordered
        self._excess = max(-_TOLERANCE_FRAMES, min(_TOLERANCE_FRAMES, left))
        return ordered

    def _advance(self, now_ns: int) -> None:
        """Take off what the plan asks for until now."""
        if now_ns <= self._until_ns:
            return
        self._excess -= self._rate_hz * (now_ns - self._until_ns) / 1e9
        self._until_ns = now_ns
