"""Decides which captured frames are due at a rate. Pure."""

PERIOD_MAX_NS = 3_600_000_000_000
"""Maximum period, however low the rate: a frame an hour, so that no wire number overflows."""


class RateGate:
    """Lets frames through at a rate; jitter of the source costs no frames."""

    def __init__(self) -> None:
        self._due_ns: int | None = None

    def due(self, captured_ns: int, rate_hz: float) -> bool:
        """Return whether a frame is due, and count it if so."""
        period_ns = round(min(1e9 / rate_hz, PERIOD_MAX_NS))
        if self._due_ns is None:
            # The first frame may be late (a source warms up), so it does not set the phase.
            self._due_ns = captured_ns - 2 * period_ns
        # A quarter of a period early is jitter of the source; more is a faster source. A frame
        # up to two periods late does not delay those after it, so jitter costs no frames.
        if captured_ns < self._due_ns - period_ns // 4:
            return False
        self._due_ns = max(self._due_ns, captured_ns - 2 * period_ns) + period_ns
        return True
