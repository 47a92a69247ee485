"""Decides when a picture of a pulled source was captured, on the box's clock.

A network camera stamps each picture with its own media clock, and may say in RTCP sender reports
which time of day a stamp is (RFC 3550, section 6.4.1). If that time is plausible, it is used: both
clocks are set by NTP then. It is not if a picture is from the future, or if by it every picture of
the last seconds came too late for any answer: that is evidence against the clock, not against the
pictures. One that is late among others that are not was delayed.

The time of day of a stamp changes at once only where somebody sets the camera's clock or the box's.
No picture gets older by that: the reports are taken as if the clock had not been set.

Without reports the offset of the media clock is bounded from above, as for a camera that answers no
pings (`stamps.py`): a picture left the camera before it arrived, by at least the network path, and
the picture with the least delay of the last seconds bounds all others.

What a camera needs to encode a picture is in the reported time only; nothing else knows it.

Pure: the instants are arguments.
"""

from collections import deque
from collections.abc import Callable

from edgebox.domain.source_settings import CaptureTimes
from edgebox.link.stamps import StampClock

FUTURE_MAX_NS = 50_000_000
"""A report may be ahead by this much: clocks that are set by NTP differ by less."""
AGE_MAX_NS = 2_000_000_000
"""A picture that a report makes older than this says that the camera's clock is not set."""
WINDOW_NS = 10_000_000_000
"""For how long a picture that came in time speaks for the clock."""

SET_NS = 100_000_000
"""A report that moves by more from one picture to the next says that a clock was set: clocks drift
by less than a millisecond between two reports."""


class CaptureClock:
    """The media clock of one connection to a source."""

    def __init__(self, path_ns: int, late_ns: Callable[[], int] = lambda: AGE_MAX_NS) -> None:
        """Begin with a connection.

        Args:
            path_ns: how long the way from the camera takes.
            late_ns: returns at which age a picture is too old for an answer.
        """
        self.times = CaptureTimes.ARRIVAL
        """What the last capture time came from."""
        self._path_ns = path_ns
        self._late_ns = late_ns
        self._stamps = StampClock()
        self._offset_ns: int | None = None
        """From the last stamp to the time that was reported of it."""
        self._set_back_ns = 0
        """By how much a clock was set so that pictures look older."""
        self._ages = deque[tuple[int, int]]()
        """Arrivals and ages by the reports, of the last seconds: no later one is younger."""

    def captured_ns(self, arrival_ns: int, stamp_ns: int | None, reported_ns: int | None) -> int:
        """Return when a picture was captured: never after its arrival.

        Args:
            arrival_ns: when it arrived.
            stamp_ns: the camera's stamp on its media clock; None: it has none.
            reported_ns: the capture by the camera's sender reports, on the box's clock; None: there
                was no report yet.
        """
        left_by_ns = arrival_ns - self._path_ns
        bound_ns = left_by_ns
        if stamp_ns is not None:
            bound_ns, _ = self._stamps.bounded(stamp_ns, stamp_ns, left_by_ns)
            if reported_ns is not None:
                reported_ns = self._steady(stamp_ns, reported_ns)
                if arrival_ns - reported_ns < -FUTURE_MAX_NS:  # nor was it set back from there
                    self._offset_ns, self._set_back_ns = None, 0
        if reported_ns is not None and self._is_plausible(arrival_ns, arrival_ns - reported_ns):
            self.times = CaptureTimes.REPORTS
            return min(reported_ns, left_by_ns)
        wrong = reported_ns is not None
        self.times = CaptureTimes.WRONG_CLOCK if wrong else CaptureTimes.ARRIVAL
        return bound_ns

    def _steady(self, stamp_ns: int, reported_ns: int) -> int:
        """Return what would be reported if no clock had been set so that pictures look older."""
        before_ns, self._offset_ns = self._offset_ns, reported_ns - stamp_ns
        if before_ns is not None and abs(moved_ns := self._offset_ns - before_ns) > SET_NS:
            self._set_back_ns = max(0, self._set_back_ns - moved_ns)
        return reported_ns + self._set_back_ns

    def _is_plausible(self, arrival_ns: int, age_ns: int) -> bool:
        """Say whether a report can be right, and note how old it makes its picture."""
        if not -FUTURE_MAX_NS <= age_ns <= AGE_MAX_NS:
            return False
        ages = self._ages
        while ages and ages[-1][1] >= age_ns:
            ages.pop()
        ages.append((arrival_ns, age_ns))
        while ages[0][0] < arrival_ns - WINDOW_NS:
            ages.popleft()
        return ages[0][1] <= self._late_ns()
