"""Decides, from the time stamps of a camera that answers no pings, when a frame left at the latest.

The offset of such a clock is unknown, but every frame bounds it from above: the camera stamped
`sent` before the frame's first byte was received. The lowest bound of the last seconds holds for
all frames (the base-delay filter of LEDBAT, RFC 6817, section 3.4.2). A frame that took longer than
the fastest one must have waited, in the camera's socket or in the network. There are two
differences. The transmission time of a frame is subtracted first, so that large and small frames
give the same bounds. Stamps are used only while their clock runs at the pace of the box's: stamps
of 0, of another unit or of no clock at all have no effect.

Pure: the instants are arguments. O(window / bucket) per frame.
"""

from collections import deque
from dataclasses import dataclass

from edgebox.link.clock import DRIFT_PPM

WINDOW_NS = 10_000_000_000
"""Maximum time for which a clock that is set back makes frames look too old."""
BUCKET_NS = 500_000_000
SEEN_RUNNING_NS = 2_000_000_000
"""Minimum time over which the pace of a clock is compared."""
PACE_MAX = 2.0
"""A clock that runs this many times as fast or slow is ignored. A stalled link makes a good clock
look slow, so the bound is wide; wrong units are off by 1000."""
WAIT_MAX_NS = 30_000_000_000
"""A frame that seems to have waited longer indicates a wrong clock."""


@dataclass(slots=True)
class _Bucket:
    """The frames of half a second."""

    at_ns: int
    """The latest instant at which the first of them was sent, on the box's clock."""
    stamp_ns: int
    """The camera's stamp of it."""
    offset_ns: int
    """The least upper bound of box minus camera, drift since the epoch subtracted."""


class StampClock:
    """An upper bound of one clock's offset, from frames it stamped."""

    def __init__(self) -> None:
        self._buckets: deque[_Bucket] = deque()

    def bounded(self, captured_ns: int, sent_ns: int, sent_by_ns: int) -> tuple[int, int]:
        """Return upper bounds, on the box's clock, of when a frame was (captured, sent); learn from
        it.

        Neither is after `sent_by_ns`.

        Args:
            captured_ns: the camera's stamp of its capture.
            sent_ns: the camera's stamp of its sending, not before `captured_ns`.
            sent_by_ns: the latest instant of its sending by all other evidence.
        """
        self._add(sent_ns, sent_by_ns)
        if not self._runs(sent_ns, sent_by_ns):
            return sent_by_ns, sent_by_ns
        least_ns = min(bucket.offset_ns for bucket in self._buckets)
        sent_bound_ns = min(sent_by_ns, sent_ns + least_ns + _drift_ns(sent_by_ns))
        captured_bound_ns = sent_bound_ns - (sent_ns - captured_ns)
        if sent_by_ns - captured_bound_ns > WAIT_MAX_NS:
            return sent_by_ns, sent_by_ns
        return captured_bound_ns, sent_bound_ns

    def _add(self, sent_ns: int, sent_by_ns: int) -> None:
        offset_ns = sent_by_ns - sent_ns - _drift_ns(sent_by_ns)
        buckets = self._buckets
        if buckets and sent_by_ns < buckets[-1].at_ns + BUCKET_NS:
            buckets[-1].offset_ns = min(buckets[-1].offset_ns, offset_ns)
        else:
            buckets.append(_Bucket(sent_by_ns, sent_ns, offset_ns))
        while buckets[0].at_ns < sent_by_ns - WINDOW_NS:
            buckets.popleft()

    def _runs(self, sent_ns: int, sent_by_ns: int) -> bool:
        """Say whether the clock has kept pace with the box's since the oldest frame known."""
        oldest = self._buckets[0]
        passed_ns, ticked_ns = sent_by_ns - oldest.at_ns, sent_ns - oldest.stamp_ns
        return passed_ns >= SEEN_RUNNING_NS and (
            passed_ns / PACE_MAX <= ticked_ns <= passed_ns * PACE_MAX
        )


def _drift_ns(at_ns: int) -> int:
    """Return the maximum drift between two plain clocks since the epoch."""
    return round(at_ns * DRIFT_PPM * 1e-6)
