"""Decides when each frame was captured and sent, on the box's clock, and when its answer is due.

This is the only implementation of frame timing; the box and the simulator both use it. It owns what
one camera's frames and pings say about its link: clock, round trip, bandwidth, bytes of pictures.

If the offset of the camera's clock is known (`clock.py`), its stamps say when the frame was
captured. If not, because the camera answers no pings or its stamps are impossible, the instant is
bounded from above, and the lowest bound is used:

- The frame was captured and handed over before its first byte was received, so it is older than the
  time between its first and last byte. That is the transmission time of this frame as the socket
  saw it: packet-train dispersion (Dovrolis, Ramanathan, Moore: "What do packet dispersion
  techniques measure?", INFOCOM 2001), of a train that the camera sends anyway. The time of the
  first bytes at the same pace and half the least round trip are added. Together that is `arrival -
  (bytes / W + RTT / 2)`, with W measured on the frame itself.
- If the camera's stamps come from a running clock, the frame was handed over no later than that
  clock says, by the bounds of the frames before it (`stamps.py`). This adds its waiting time in the
  camera's socket, and its encoding time.

The gaps between whole frames would say less: at a low rate they only bound the throughput from
below, and `bytes / gap` would take a camera's idle time for transmission.

No estimate is later than the arrival, so no deadline is later than arrival + SLO. A camera with
false stamps can only look younger than it is, down to the arrival, as with a known clock; or older,
which is the same as a shorter SLO, and that it may request in its hello.

Pure: the instants are arguments. O(1) per frame, plus the bandwidth's O(window).
"""

from collections import deque
from dataclasses import dataclass

from edgebox.domain.requests import LinkState
from edgebox.link.bandwidth import NOISE_NS, BandwidthEstimate, BytesPerPixel, LinkEstimate
from edgebox.link.clock import ClockEstimate
from edgebox.link.stamps import StampClock
from edgebox.link.update_throttle import LinkUpdateThrottle

RETURN_ALLOWANCE_NS = 2_000_000
"""Time for sending a result, in addition to half the least round trip."""
TRAVEL_MAX_NS = 30_000_000_000
"""A longer transit time indicates a wrong clock, not a slow link."""
FUTURE_MAX_NS = 50_000_000
ROUND_TRIP_WINDOW_NS = 30_000_000_000
SEGMENT_BYTES = 1_448
"""Payload of a TCP segment in an Ethernet frame: it arrives at once on any link."""


@dataclass(frozen=True, slots=True)
class FrameArrival:
    """The arrival of a frame's message as the socket saw it, on the box's clock."""

    size_bytes: int
    """The size of the whole message."""
    arrival_ns: int
    """When it was complete."""
    first_ns: int
    """When its first bytes were read, at most `last_ns`."""
    first_bytes: int
    """The number of these bytes, at most `size_bytes`."""
    last_ns: int
    """When its last bytes were read, at most `arrival_ns`."""

    @classmethod
    def at_once(cls, size_bytes: int, arrival_ns: int) -> "FrameArrival":
        """Return the arrival of a message of which only the end is known."""
        return cls(size_bytes, arrival_ns, arrival_ns, size_bytes, arrival_ns)


@dataclass(frozen=True, slots=True)
class FrameTransit:
    """The timing of a frame's way to the box, on the box's clock."""

    captured_ns: int
    sent_ns: int
    compute_deadline_ns: int
    """When its result must leave the box."""
    return_ns: int
    """The time of the way back."""
    suspicious: bool
    """Whether the camera's clock contradicts the link and should be measured again."""
    carried: tuple[int, int] | None
    """Bits, and their time on the uplink in ns; None: not known."""


def compute_deadline_ns(captured_ns: int, slo_ns: int, return_ns: int) -> int:
    """Return when a result must leave the box to reach the camera by capture + SLO.

    Args:
        captured_ns: the capture.
        slo_ns: from the capture to the result's arrival at the camera.
        return_ns: the way back, half the least round trip.
    """
    return captured_ns + slo_ns - return_ns - RETURN_ALLOWANCE_NS


class TransitEstimator:
    """The box's estimates of one camera's clock and uplink."""

    def __init__(self, bandwidth: LinkEstimate | None = None) -> None:
        """Start with no measurements; `bandwidth`: the uplink's estimator, None: edgebox's own."""
        self.clock = ClockEstimate()
        self.bandwidth: LinkEstimate = BandwidthEstimate() if bandwidth is None else bandwidth
        self.weight = BytesPerPixel()
        self._stamps = StampClock()
        self._round_trips: deque[tuple[int, int]] = deque()
        """(when it ended, its duration in ns): of pings that do not measure the camera's clock."""
        self._throttle = LinkUpdateThrottle()

    @property
    def rtt_ns(self) -> int | None:
        """The least round trip of the last half minute; None: not known."""
        by_clock = self.clock.rtt_ns
        if by_clock is not None:
            return by_clock
        return min((took_ns for _, took_ns in self._round_trips), default=None)

    def pong(self, sent_ns: int, camera_ns: int, received_ns: int) -> bool:
        """Learn from a clock exchange; say whether the camera's clock has jumped."""
        return self.clock.add(sent_ns, camera_ns, received_ns)

    def echoed(self, sent_ns: int, received_ns: int) -> None:
        """Learn the round trip of a WebSocket ping, which does not measure the clock."""
        self._round_trips.append((received_ns, received_ns - sent_ns))
        # The newest always stays.
        while self._round_trips[0][0] < received_ns - ROUND_TRIP_WINDOW_NS:
            self._round_trips.popleft()

    def frame_arrived(
        self, captured_ns: int, sent_ns: int, arrival: FrameArrival, pixels: int | None, slo_ns: int
    ) -> FrameTransit:
        """Map a frame to the box's clock and learn from its transit.

        Args:
            captured_ns: the camera's stamp, on its own clock.
            sent_ns: when it was handed to the link, stamped likewise; not before `captured_ns`.
            arrival: of its message.
            pixels: of the picture as sent; None if it is not a picture.
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

    def frame_cut(
        self, captured_ns: int, sent_ns: int, arrival_ns: int, slo_ns: int
    ) -> FrameTransit:
        """Map a frame that was not read, only its header, to the box's clock. It teaches nothing.

        Args:
            captured_ns: the camera's stamp, on its own clock.
            sent_ns: when it was handed to the link, stamped likewise.
            arrival_ns: now; the latest that it can have been captured.
            slo_ns: from the capture to the result's arrival at the camera.
        """
        placed = self._by_clock(captured_ns, sent_ns, arrival_ns) or (arrival_ns, arrival_ns)
        deadline_ns = compute_deadline_ns(placed[0], slo_ns, 0)
        return FrameTransit(*placed, deadline_ns, 0, suspicious=False, carried=None)

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
        """Return the link's state if it is due for the core, and mark it as sent."""
        return self._throttle.due(
            now_ns, lambda: self.bandwidth.bps(now_ns), lambda: self.state(now_ns)
        )

    def _contradicted(self, captured_ns: int, arrival_ns: int) -> bool:
        """Say whether the clock's offset makes a stamp impossible."""
        on_box_ns = self.clock.to_box_ns(captured_ns)
        if on_box_ns is None:
            return False
        return not -FUTURE_MAX_NS <= arrival_ns - on_box_ns <= TRAVEL_MAX_NS

    def _by_clock(self, captured_ns: int, sent_ns: int, arrival_ns: int) -> tuple[int, int] | None:
        """Return (captured, sent) by the clock's offset; None: not known, or impossible."""
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
        """Return a lower bound of the time of the first bytes.

        It uses the pace of the frame's other bytes or of the link, whichever is faster: few other
        bytes say little, a link may have become faster, and no frame may look older than it is.
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
        # The whole message was received by the first read, before the loop woke up. That
        # is a lower bound of the throughput, and is used only if it is above the estimate.
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
