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
        self._slot_ns: int | None = None
        """The instant at which the last frame that passed was due."""
        self._passed_ns = 0
        """The capture of that frame."""

    def due(self, captured_ns: int, rate_hz: float) -> bool:
        """Return whether a frame is due at the rate of now, and count it if so."""
        period_ns = round(min(1e9 / rate_hz, PERIOD_MAX_NS))
        if self._slot_ns is None:
            # The first frame may be late (a source warms up), so it does not set the phase.
            due_ns = captured_ns - 2 * period_ns
        else:
            # Counted from the last frame, at the rate of now: a camera that was slowed down does
            # not wait for the end of a slow period when it may go on, nor for the quarter of one
            # by which its last frame was early.
            slot_ns = min(self._slot_ns, self._passed_ns + period_ns // 4)
            due_ns = self._next_ns(slot_ns, period_ns)
        # A quarter of a period early is jitter of the source; more is a faster source. A frame
        # up to two periods late does not delay those after it, so jitter costs no frames.
        if captured_ns < due_ns - period_ns // 4:
            return False
        self._slot_ns, self._passed_ns = max(due_ns, captured_ns - 2 * period_ns), captured_ns
        return True

    def _next_ns(self, slot_ns: int, period_ns: int) -> int:
        """Return when the frame after a slot is due, steered towards the phase."""
        due_ns = slot_ns + period_ns
        if self._phase is None:
            return due_ns
        # Less than half a period off to either side.
        half_ns = period_ns // 2
        wanted_ns = round(self._phase * period_ns)
        off_ns = (wanted_ns - due_ns + half_ns) % period_ns - half_ns
        most_ns = period_ns // _STEERED
        return due_ns + max(-most_ns, min(most_ns, off_ns))
