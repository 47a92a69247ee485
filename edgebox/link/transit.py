"""Decides when each frame was captured and sent, on the box's clock, and when its answer is due.

The one implementation of frame timing: the box and the simulator use the same. It owns what one
camera's frames and pings teach about its link: clock, round trip, bandwidth, what pictures weigh.

Where the camera's clock is known (`clock.py`), its stamps say when the frame was captured. Where
it is not, because the camera answers no pings or its stamps cannot be, the instant is bounded from
above, and the lowest bound is taken:

- The frame had been captured and handed over before its first byte was here, so it is older than
  the time between its first and last byte. That is the transmission time of this very frame as the
  socket saw it: packet-train dispersion (Dovrolis, Ramanathan, Moore: "What do packet dispersion
  techniques measure?", INFOCOM 2001), of a train that the camera sends anyway. To it come what
  the first bytes took at the same pace, and half the least round trip. Together that is
  `arrival - (bytes / W + RTT / 2)`, with W measured on the frame itself.
- If the camera's stamps come from a clock that runs, the frame was handed over no later than that
  clock says, by the bounds of the frames before it (`stamps.py`): this adds what it waited in the
  camera's socket, and for its encoding.

Gaps between whole frames alone would say less: at a low rate they only bound the throughput from
below, and `bytes / gap` would take a camera's idle time for transmission.

No estimate is later than the arrival, so no deadline is later than arrival + SLO. A camera that
lies can only look younger than it is, down to the arrival, as it can with a known clock; or older,
which is nothing but a shorter SLO, and that it may ask for in its hello.

Pure: the instants come in as arguments. O(1) per frame, beside the bandwidth's O(window).
"""

from collections import deque
from dataclasses import dataclass

from edgebox.domain.requests import LinkState
from edgebox.link.bandwidth import NOISE_NS, BandwidthEstimate, BytesPerPixel, LinkEstimate
from edgebox.link.clock import ClockEstimate
from edgebox.link.stamps import StampClock
from edgebox.link.update_throttle import LinkUpdateThrottle

RETURN_ALLOWANCE_NS = 2_000_000
"""Time granted to the sending of a result, beside half the least round trip."""
TRAVEL_MAX_NS = 30_000_000_000
"""A frame that seems to have travelled longer says that the clock is wrong, not the link."""
FUTURE_MAX_NS = 50_000_000
ROUND_TRIP_WINDOW_NS = 30_000_000_000
SEGMENT_BYTES = 1_448
"""Of a TCP segment in an Ethernet frame: so much is here at once however slow the link is."""


@dataclass(frozen=True, slots=True)
class FrameArrival:
    """A frame's message as the socket saw it, on the box's clock."""

    size_bytes: int
    """Of the whole message."""
    arrival_ns: int
    """When it was here whole."""
    first_ns: int
    """When the first of its bytes were seen, at most `last_ns`."""
    first_bytes: int
    """How many they were, at most `size_bytes`."""
    last_ns: int
    """When the last of its bytes were seen, at most `arrival_ns`."""

    @classmethod
    def at_once(cls, size_bytes: int, arrival_ns: int) -> "FrameArrival":
        """Return the arrival of a message of which nothing is known but its end."""
        return cls(size_bytes, arrival_ns, arrival_ns, size_bytes, arrival_ns)


@dataclass(frozen=True, slots=True)
class FrameTransit:
    """A frame's journey to the box, on the box's clock."""

    captured_ns: int
    sent_ns: int
    compute_deadline_ns: int
    """When its result must leave the box."""
    return_ns: int
    """What the way back takes."""
    suspicious: bool
    """The camera's clock contradicts the link: ask for it again."""
    carried: tuple[int, int] | None
    """Bits and how long, in ns, the uplink took for them; None: not known."""


def compute_deadline_ns(captured_ns: int, slo_ns: int, return_ns: int) -> int:
    """Return by when a result must leave the box to be at the camera by capture + SLO.

    Args:
        captured_ns: the capture.
        slo_ns: from the capture to the result's arrival at the camera.
        return_ns: the way back, half the least round trip.
    """
    return captured_ns + slo_ns - return_ns - RETURN_ALLOWANCE_NS


class TransitEstimator:
    """What the box knows of one camera's clock and uplink."""

    def __init__(self, bandwidth: LinkEstimate | None = None) -> None:
        """Know nothing; `bandwidth`: what estimates the uplink, None: edgebox's own."""
        self.clock = ClockEstimate()
        self.bandwidth: LinkEstimate = BandwidthEstimate() if bandwidth is None else bandwidth
        self.weight = BytesPerPixel()
        self._stamps = StampClock()
        self._round_trips: deque[tuple[int, int]] = deque()
        """(when it ended, ns it took): of pings that say nothing of the camera's clock."""
        self._throttle = LinkUpdateThrottle()

    @property
    def rtt_ns(self) -> int | None:
        """Least round trip of the last half minute; None: not known."""
        by_clock = self.clock.rtt_ns
        if by_clock is not None:
            return by_clock
        return min((took_ns for _, took_ns in self._round_trips), default=None)

    def pong(self, sent_ns: int, camera_ns: int, received_ns: int) -> bool:
        """Learn from a clock exchange; say whether the camera's clock has jumped."""
        return self.clock.add(sent_ns, camera_ns, received_ns)

    def echoed(self, sent_ns: int, received_ns: int) -> None:
        """Learn from a ping that any WebSocket answers: a round trip, and nothing of a clock."""
        self._round_trips.append((received_ns, received_ns - sent_ns))
        # The newest stays in any case.
        while self._round_trips[0][0] < received_ns - ROUND_TRIP_WINDOW_NS:
            self._round_trips.popleft()

    def frame_arrived(
        self, captured_ns: int, sent_ns: int, arrival: FrameArrival, pixels: int | None, slo_ns: int
    ) -> FrameTransit:
        """Place a frame on the box's clock and learn from its journey.

        Args:
            captured_ns: as the camera stamped it, on its own clock.
            sent_ns: when it was handed to the link, stamped likewise; not before `captured_ns`.
            arrival: of its message.
            pixels: of the picture as sent; None when it is not a picture.
            slo_ns: from the capture to the result's arrival at the camera.
        """
        return_ns = (self.rtt_ns or 0) // 2
        placed = self._by_clock(captured_ns, sent_ns, arrival.arrival_ns)
        if placed is not None:
            busy_ns = arrival.arrival_ns - placed[1]
            carried = self._learn(arrival.size_bytes, busy_ns, arrival.arrival_ns, return_ns)
        else:
            carried = self._learn_from_train(arrival)
            here_ns = return_ns + self._first_bytes_ns(arrival, carried)
            placed = self._by_bounds(captured_ns, sent_ns, arrival, here_ns)
        if pixels:
            self.weight.add(arrival.size_bytes, pixels)
        return FrameTransit(
            *placed,
            compute_deadline_ns(placed[0], slo_ns, return_ns),
            return_ns,
            self._contradicted(captured_ns, arrival.arrival_ns),
            carried,
        )

    def state(self, now_ns: int) -> LinkState:
        """Return what is known of the link."""
        return LinkState(
            bandwidth_bps=self.bandwidth.bps(now_ns),
            rtt_ns=self.rtt_ns,
            clock_error_ns=self.clock.error_ns(now_ns),
            bytes_per_pixel=self.weight.value(),
            throughput_stability=self.bandwidth.throughput_stability(),
        )

    def take_updates(self, now_ns: int) -> LinkState | None:
        """Return the link's state if the core should hear of it now, and take it as told."""
        return self._throttle.due(now_ns, lambda: self.state(now_ns))

    def _contradicted(self, captured_ns: int, arrival_ns: int) -> bool:
        """Say whether the clock's offset makes a stamp one that cannot be."""
        on_box_ns = self.clock.to_box_ns(captured_ns)
        if on_box_ns is None:
            return False
        return not -FUTURE_MAX_NS <= arrival_ns - on_box_ns <= TRAVEL_MAX_NS

    def _by_clock(self, captured_ns: int, sent_ns: int, arrival_ns: int) -> tuple[int, int] | None:
        """Return (captured, sent) by the clock's offset; None: not known, or it cannot be."""
        captured, sent = self.clock.to_box_ns(captured_ns), self.clock.to_box_ns(sent_ns)
        if captured is None or sent is None or self._contradicted(captured_ns, arrival_ns):
            return None
        return min(captured, arrival_ns), min(sent, arrival_ns)

    def _by_bounds(
        self, captured_ns: int, sent_ns: int, arrival: FrameArrival, here_ns: int
    ) -> tuple[int, int]:
        """Return the lowest upper bounds of (captured, sent); the first bytes took `here_ns`."""
        sent_by_ns = arrival.first_ns - here_ns
        if self._contradicted(captured_ns, arrival.arrival_ns):
            return sent_by_ns, sent_by_ns
        return self._stamps.bounded(captured_ns, sent_ns, sent_by_ns)

    def _first_bytes_ns(self, arrival: FrameArrival, carried: tuple[int, int] | None) -> int:
        """Return what the first bytes took, as far as they cannot but come together.

        At the pace of the frame's own other bytes or of the link, whichever is quicker: few other
        bytes say little, a link may have become quicker, and no frame must look older than it is.
        """
        bandwidth_bps = self.bandwidth.bps(arrival.arrival_ns)
        if not bandwidth_bps:
            return 0
        if carried is not None:
            bits, busy_ns = carried
            bandwidth_bps = max(bandwidth_bps, bits / busy_ns * 1e9)
        return round(min(arrival.first_bytes, SEGMENT_BYTES) * 8 / bandwidth_bps * 1e9)

    def _learn_from_train(self, arrival: FrameArrival) -> tuple[int, int] | None:
        """Learn the bandwidth from the time between a message's first and last bytes."""
        rest_bytes, end_ns = arrival.size_bytes - arrival.first_bytes, arrival.last_ns
        if rest_bytes > 0:
            return self._learn(rest_bytes, end_ns - arrival.first_ns, end_ns)
        # All of it was here when the first of it was seen: it came while the loop woke up. That
        # is a lower bound of the throughput, and says something only if it is above the estimate.
        rest_bytes = arrival.size_bytes - SEGMENT_BYTES
        least_bps = rest_bytes * 8 / NOISE_NS * 1e9
        if self.clock.offset_ns is None and least_bps > (self.bandwidth.bps(end_ns) or 0.0):
            return self._learn(rest_bytes, NOISE_NS, end_ns)
        return None

    def _learn(
        self, size_bytes: int, busy_ns: int, end_ns: int, base_ns: int = 0
    ) -> tuple[int, int] | None:
        self.bandwidth.add(size_bytes, end_ns - busy_ns, end_ns, base_ns)
        return self.bandwidth.newest()
