"""Decides when frames have left that several cameras send over one uplink.

First in, first out: one queue for all frames, as in a plain modem; the `ShapedLink` of a single
camera already is one. Fair queueing: all cameras with frames to send share the rate equally at
every instant. That is fluid processor sharing, which real fair queueing approximates packet by
packet (Parekh and Gallager: "A generalized processor sharing approach to flow control", 1993). Each
camera's own frames stay in order either way. Pure.
"""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count

from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.shaping import BandwidthTrace, ShapedLink


class Queueing(StrEnum):
    """The order in which a shared uplink sends frames."""

    FIFO = "fifo"
    """In the order of arrival."""
    FAIR = "fair"
    """A bit of each camera in turn."""


@dataclass(frozen=True, slots=True)
class SimulatedSite:
    """An uplink that some cameras share."""

    name: SiteId
    trace: BandwidthTrace
    queueing: Queueing = Queueing.FIFO
    trace_start_ns: int = 0
    """The instant of the trace at which the run begins."""


class FairLink:
    """An uplink that cameras share equally while they have frames to send.

    It counts in virtual time: the bits that every camera with frames to send has been given since
    the link was last idle. A frame leaves when virtual time reaches its tag, which is known when
    the frame is handed over. The instant is not known then, because it depends on how many cameras
    share the link until that time.
    """

    def __init__(self, rate: ShapedLink) -> None:
        """Start idle; `rate` says what the link carries, and is not used as a queue."""
        self._rate = rate
        self._given = 0.0
        """Bits given to each camera when the link had carried `_carried`."""
        self._carried = 0.0
        self._tags: list[tuple[float, int, CameraId, int]] = []
        self._last_tag: dict[CameraId, float] = {}
        self._waiting: Counter[CameraId] = Counter()
        """By camera, the frames that have not left."""
        self._left: list[tuple[CameraId, int, int]] = []
        self._order = count()

    def hand_over(self, now_ns: int, camera: CameraId, frame: int, size_bytes: int) -> int:
        """Queue a frame behind those of its camera; return when its first bit leaves.

        This is an estimate if earlier frames of the camera have not left: frames of others that are
        handed over meanwhile make it later.
        """
        self._advance(now_ns)
        if not self._tags:
            self._given, self._carried = 0.0, self._rate.bits_until(now_ns)
        starts_ns = now_ns
        if camera in self._waiting:
            starts_ns = self._due_ns(self._last_tag[camera])
            start = self._last_tag[camera]
        else:
            self._give(now_ns)
            start = self._given
        self._waiting[camera] += 1
        self._last_tag[camera] = tag = start + size_bytes * 8
        heappush(self._tags, (tag, next(self._order), camera, frame))
        return max(now_ns, starts_ns)

    def next_ns(self) -> int | None:
        """Return when the next frame has left if none is handed over until then."""
        return self._instant_of(self._tags[0][0]) if self._tags else None

    def left(self, now_ns: int) -> list[tuple[CameraId, int, int]]:
        """Return the frames that have left since the last call: camera, frame, instant."""
        self._advance(now_ns)
        left, self._left = self._left, []
        return left

    def _advance(self, now_ns: int) -> None:
        """Let all frames leave that are due by now."""
        while self._tags:
            tag = self._tags[0][0]
            at_ns = self._instant_of(tag)
            if at_ns > now_ns:
                return
            self._carried += (tag - self._given) * len(self._waiting)
            self._given = tag
            _, _, camera, frame = heappop(self._tags)
            self._left.append((camera, frame, at_ns))
            self._waiting[camera] -= 1
            if not self._waiting[camera]:
                del self._waiting[camera]

    def _give(self, now_ns: int) -> None:
        """Distribute the bits carried so far, before the number of cameras changes."""
        carried = self._rate.bits_until(now_ns)
        if self._waiting and carried > self._carried:
            self._given += (carried - self._carried) / len(self._waiting)
            self._carried = carried

    def _instant_of(self, tag: float) -> int:
        """Return when virtual time reaches a tag before which no camera's queue becomes empty."""
        return self._rate.instant_of(self._carried + (tag - self._given) * len(self._waiting))

    def _due_ns(self, tag: float) -> int:
        """Return when virtual time reaches a tag if no frame is handed over until then."""
        given, carried, waiting = self._given, self._carried, Counter(self._waiting)
        for leaves, _, camera, _ in sorted(self._tags):
            carried += (leaves - given) * len(waiting)
            given = leaves
            if leaves >= tag:
                break
            waiting[camera] -= 1
            if not waiting[camera]:
                del waiting[camera]
        return self._rate.instant_of(carried)
