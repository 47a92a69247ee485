"""Decides which captured frames are due at a rate. Pure."""

PERIOD_MAX_NS = 3_600_000_000_000
"""Maximum period, however low the rate: a frame an hour, so that no wire number overflows."""
_GOLDEN = (5**0.5 - 1) / 2
_STEERED = 8
"""A frame is moved by at most this part of a period towards its phase: the rate stays even."""


def spread_phase(number: int) -> float:
    """Return the phase of one of many cameras, in periods; any first few are spread evenly."""
    return number * _GOLDEN % 1


class RateGate:
    """Lets frames through at a rate; jitter of the source costs no frames."""

    def __init__(self, phase: float | None = None) -> None:
        """Let the first frame through.

        Args:
            phase: where in the period, of the clock of captures, frames are due after a while, so
                that cameras of one rate take turns; None: where the first frame was.
        """
        self._phase = phase
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
        if self._phase is not None:
            # Less than half a period off to either side.
            half_ns = period_ns // 2
            wanted_ns = round(self._phase * period_ns)
            off_ns = (wanted_ns - self._due_ns + half_ns) % period_ns - half_ns
            most_ns = period_ns // _STEERED
            self._due_ns += max(-most_ns, min(most_ns, off_ns))
        return True
