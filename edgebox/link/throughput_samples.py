"""Decides how much an uplink carried in which interval: one sample of its throughput after another.

The uplink may carry the frames of several cameras, in any order. It is work conserving: while any
frame is in transit, it is busy. So its throughput is the bits it carried, divided by the time in
which any frame was in transit. A single frame gets less than that, because it waits for frames of
other cameras or shares the link with them. Therefore frames in transit at the same time form one
sample, with at most one frame of each camera; with a single camera, each frame is a sample.

When a frame arrives, other frames may be in transit that are unknown until they arrive. Until then
the sample is *open*: it is a lower bound of what the link carried. It is settled once every camera
that may have had a frame in transit has a frame in it or has delivered one that was sent later. A
camera may have had one if its rate suggests a frame before the sample's end. A camera that has
delivered nothing for a while, as of the newest arrival, is ignored.

Where one sample follows another without a pause, frames may be carried partly in the first and
count in the second. That averages out over a second.

Instants are those at the receiver, where a frame's first bit arrives `base_ns` after it was sent.
So a new measurement of `base_ns` does not move earlier samples, and cameras of one site, with
nearly the same path, are comparable.

Pure: the instants are arguments. For one camera O(1) per frame, for several O(cameras) at most:
cameras are looked at only until one settles the question.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

BUSY_MIN_NS = 100_000
"""The shortest transmission time accepted; it bounds the estimate for tiny frames."""
OPEN_MAX = 256
"""Maximum number of open samples; it bounds the cost of reading the estimate. Sixteen cameras at 15
Hz send fewer frames in a second. Beyond it, the oldest is settled as it is."""


@dataclass(slots=True)
class Sample:
    """An interval in which the link was busy, and the bits it carried."""

    start_ns: int
    end_ns: int
    bits: int
    cameras: frozenset[str]

    @property
    def busy_ns(self) -> int:
        """Its length, at least `BUSY_MIN_NS`."""
        busy_ns = self.end_ns - self.start_ns
        return busy_ns if busy_ns > BUSY_MIN_NS else BUSY_MIN_NS  # noqa: FURB136 - it is hot


@dataclass(slots=True)
class _Last:
    """The last frame of a camera."""

    sent_ns: int
    arrival_ns: int
    bits: int
    gap_ns: int | None = None
    """The time since the frame before it was sent."""

    def next_is_due(self, at_ns: int) -> bool:
        """Say whether the next frame may have been sent by an instant."""
        return self.gap_ns is None or self.sent_ns + self.gap_ns < at_ns


class SettledSamples:
    """Samples in the order of their ends, with sums over the last ones in O(log n)."""

    def __init__(self) -> None:
        """Start empty."""
        self._samples: list[Sample] = []
        self._ends_ns: list[int] = []
        self._bits_before: list[int] = [0]
        """The bits of all samples before each one, and of all."""
        self._busy_before_ns: list[int] = [0]
        self._first = 0
        """Index of the oldest sample that has not been dropped."""

    def __len__(self) -> int:
        return len(self._samples) - self._first

    def append(self, sample: Sample) -> None:
        """Add a sample, which ends no earlier than the last one."""
        self._samples.append(sample)
        self._ends_ns.append(sample.end_ns)
        self._bits_before.append(self._bits_before[-1] + sample.bits)
        self._busy_before_ns.append(self._busy_before_ns[-1] + sample.busy_ns)

    def drop_until(self, end_ns: int) -> None:
        """Forget the samples that end at or before an instant."""
        self._first = bisect_right(self._ends_ns, end_ns, self._first)
        if self._first > len(self):  # in bulk: O(1) per sample
            for kept in (self._samples, self._ends_ns, self._bits_before, self._busy_before_ns):
                del kept[: self._first]
            self._first = 0

    def number_since(self, end_ns: int) -> int:
        """Return how many samples end after an instant."""
        return len(self._samples) - bisect_right(self._ends_ns, end_ns, self._first)

    def sums(self, number: int) -> tuple[int, int]:
        """Return the bits and the busy time in ns of so many samples: the last ones."""
        at = -1 - number
        return (
            self._bits_before[-1] - self._bits_before[at],
            self._busy_before_ns[-1] - self._busy_before_ns[at],
        )

    def newest(self, number: int) -> list[Sample]:
        """Return so many samples, the newest first; all if there are fewer."""
        return self._samples[max(self._first, len(self._samples) - number) :][::-1]

    def copy(self) -> "SettledSamples":
        """Return an independent copy; the samples are the same."""
        copied = copy(self)
        copied._samples, copied._ends_ns = self._samples.copy(), self._ends_ns.copy()
        copied._bits_before = self._bits_before.copy()
        copied._busy_before_ns = self._busy_before_ns.copy()
        return copied


class Samples:
    """The samples of one uplink."""

    def __init__(self, active_ns: int) -> None:
        """Start empty; a camera without a frame for `active_ns` is ignored."""
        self._active_ns = active_ns
        self._open: deque[Sample] = deque()
        """Oldest first; each may still be merged with another."""
        self._last: dict[str, _Last] = {}
        self._end_ns: int | None = None
        """The end of the newest sample."""
        self._newest_ns = 0
        """The latest arrival."""
        self._settled_end_ns: int | None = None

    def add(
        self, camera: str, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int
    ) -> tuple[list[Sample], int]:
        """Learn from a frame; return the samples it settles, and its time on the link.

        Args:
            camera: the camera that sent it; its frames arrive in order.
            size_bytes: of the whole message.
            sent_ns: when it was handed to the link, on the clock of `arrival_ns`.
            arrival_ns: when its last byte was received.
            base_ns: the time of an empty message.
        """
        bits, begun_ns = size_bytes * 8, sent_ns + base_ns
        start_ns = begun_ns if self._end_ns is None else max(begun_ns, self._end_ns)
        busy_ns = max(arrival_ns - start_ns, BUSY_MIN_NS)
        sample = Sample(begun_ns, arrival_ns, bits, frozenset((camera,)))
        while self._open and self._overlap(self._open[-1], sample):
            _join(sample, self._open.pop())
        before_ns = self._open[-1].end_ns if self._open else self._settled_end_ns
        if before_ns is not None:
            sample.start_ns = max(sample.start_ns, before_ns)
        self._open.append(sample)
        self._end_ns = sample.end_ns
        self._newest_ns = max(self._newest_ns, arrival_ns)
        self._remember(camera, begun_ns, arrival_ns, bits)
        settled = []
        while self._open and (
            len(self._open) > OPEN_MAX or next(self._may_have_carried(self._open[0]), None) is None
        ):
            settled.append(self._open.popleft())
            self._settled_end_ns = settled[-1].end_ns
        return settled, busy_ns

    def forget(self, camera: str) -> None:
        """Stop waiting for frames of a camera that has left."""
        self._last.pop(camera, None)

    def copy_for(self, camera: str) -> "Samples":
        """Return a copy that waits for frames of one camera only."""
        copied = copy(self)
        copied._open = self._open.copy()
        copied._last = {name: last for name, last in self._last.items() if name == camera}
        return copied

    def open(self) -> tuple[Sample, ...]:
        """Return the samples that are not settled, oldest first."""
        return tuple(self._open)

    def carried_less(self, sample: Sample, than_bits: float) -> int | None:
        """Return an upper bound of the bits the link carried in an open sample, if that is less.

        Unknown frames have at most as many bits carried as known ones if the link is shared fairly,
        and none if frames are carried in the order of their sending.

        Args:
            sample: one that is open.
            than_bits: a bound that is at least this says nothing: None is returned, and cameras are
                looked at no longer than it takes to see that.
        """
        at_most = sample.bits
        if at_most >= than_bits:
            return None
        for last in self._may_have_carried(sample):
            at_most += min(last.bits, sample.bits)
            if at_most >= than_bits:
                return None
        return at_most

    @staticmethod
    def _overlap(earlier: Sample, sample: Sample) -> bool:
        return earlier.end_ns > sample.start_ns and not earlier.cameras & sample.cameras

    def _remember(self, camera: str, sent_ns: int, arrival_ns: int, bits: int) -> None:
        before = self._last.get(camera)
        gap_ns = None if before is None else sent_ns - before.sent_ns
        self._last[camera] = _Last(sent_ns, arrival_ns, bits, gap_ns)

    def _may_have_carried(self, sample: Sample) -> Iterator[_Last]:
        """Yield the cameras of which the link may have carried an unknown frame."""
        horizon_ns = self._newest_ns - self._active_ns
        return (
            last
            for camera, last in self._last.items()
            if horizon_ns < last.arrival_ns <= sample.end_ns
            and camera not in sample.cameras
            and last.next_is_due(sample.end_ns)
        )


def _join(sample: Sample, earlier: Sample) -> None:
    """Merge a sample with an earlier one that overlaps it."""
    sample.start_ns = min(sample.start_ns, earlier.start_ns)
    sample.end_ns = max(sample.end_ns, earlier.end_ns)
    sample.bits += earlier.bits
    sample.cameras |= earlier.cameras
