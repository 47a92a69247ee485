"""Decides, at the camera, which frames are sent and at which size: the sender's window.

It follows the advice of the box, and corrects it frame by frame, because a link changes faster than
advice arrives. A frame that would arrive too late at the advised size is sent smaller, which avoids
most of the misses on fluctuating links. A frame is not sent if it could not be answered in time (of
several deadlines, the last) even at the smallest size and by a fast box. At most
`unacknowledged_max` frames are in transit; two are needed to keep the link busy while an ack
returns. The newest frame waits outside the window and replaces the one that waited there.

A camera that can run the first stage of its frames itself (`placement`) has each frame either sent
as a picture or detected here; then boxes and crops are sent. One frame is detected at a time, and
no other leaves meanwhile, because frames arrive in the order of their capture.

Every captured frame is counted exactly once: captured = sent + skipped + waiting + being detected.

Pure: the instants, all on the camera's clock, are arguments. O(sizes + window) per frame.
"""

from collections import Counter, deque
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from edgebox.domain.plans import Advice
from edgebox.domain.requests import StagePlacement
from edgebox.link.bandwidth import BandwidthEstimate, BytesPerPixel, LinkEstimate, message_bytes
from edgebox.link.placement import PlacementCosts, PlacementMode, finish_ns, place
from edgebox.link.rate_gate import RateGate

SIDE_MIN_PX = 128
SIDE_STEP_PX = 32
GUARD_NS = 5_000_000
"""Reserve in every deadline: encoding, the result's way back, timers."""
PROBE_NS = 1_000_000_000
"""After this long without a frame in transit, one is sent whatever the estimates are."""
ANSWERS_KEPT = 20
ANSWER_QUANTILE = 0.9


class SkipReason(StrEnum):
    """Why a captured frame was not sent."""

    WINDOW = "window"
    """A newer frame was captured while this one waited for acks."""
    INFEASIBLE = "infeasible"
    """Even the smallest size would not be answered in time by a fast box."""
    RATE = "rate"
    """More frames were captured than the advice asks for."""
    OFFLINE = "offline"
    """There was no connection."""
    FAILED = "failed"
    """The model failed at the camera."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send this frame now at this size."""

    frame: int
    width_px: int
    height_px: int
    quality: int
    placement: StagePlacement = StagePlacement.BOX
    """At the camera: run the first stage here, then report `detected`."""


@dataclass(frozen=True, slots=True)
class Skip:
    """This frame will never be sent."""

    frame: int
    reason: SkipReason


Decision = Send | Skip


@dataclass(frozen=True, slots=True)
class _Waiting:
    frame: int
    captured_ns: int


@dataclass(slots=True)
class _OnTheWay:
    frame: int
    sent_ns: int
    size_bytes: int


class SenderWindow:
    """The window of one connection.

    Events in (`captured`, `encoded`, `acknowledged`, ...), decisions out. After `Send` for a frame
    the caller encodes it and reports that with `encoded`.
    """

    def __init__(
        self,
        width_px: int,
        height_px: int,
        slo_ns: int,
        rate_hz: float,
        unacknowledged_max: int = 2,
        *,
        last_slo_ns: int | None = None,
        bandwidth: LinkEstimate | None = None,
        phase: float | None = None,
    ) -> None:
        """Start with nothing sent.

        Args:
            width_px: of the camera's own picture.
            height_px: of the camera's own picture.
            slo_ns: deadline of each frame, from its capture; sizes are chosen to meet it.
            rate_hz: frames per second the camera would like to send.
            unacknowledged_max: frames in transit at once.
            last_slo_ns: a frame that cannot meet even this is not sent; None: the same deadline.
            bandwidth: the estimate of the link; None: edgebox's own estimator.
            phase: of the frames that are sent, in periods (`RateGate`).
        """
        self.captured_total = 0
        self.sent_total = 0
        self.skipped: Counter[SkipReason] = Counter()
        self.bandwidth = BandwidthEstimate() if bandwidth is None else bandwidth
        self._own_px = (width_px, height_px)
        self._slo_ns = slo_ns
        self._last_slo_ns = slo_ns if last_slo_ns is None else last_slo_ns
        self._rate_hz = rate_hz
        self._unacknowledged_max = unacknowledged_max
        self._advice: Advice | None = None
        self._waiting: _Waiting | None = None
        self._on_the_way: deque[_OnTheWay] = deque()
        self._bytes_per_pixel = BytesPerPixel()
        self._answers_ns: deque[int] = deque(maxlen=ANSWERS_KEPT)
        self._last_ack_ns = 0
        self._last_send_ns: int | None = None
        self._rate = RateGate(phase)
        self._detecting: _Waiting | None = None
        self.placement: PlacementCosts | None = None
        """What is known of running the first stage here; None: pictures only."""

    def advised(self, advice: Advice) -> None:
        """Obey this advice from the next frame on."""
        self._advice = advice

    def deadlines(self, slo_ns: int, last_slo_ns: int) -> None:
        """Use other deadlines from the next frame on."""
        self._slo_ns = slo_ns
        self._last_slo_ns = last_slo_ns

    def answered(
        self, box_ns: int, now_ns: int = 0, placement: StagePlacement = StagePlacement.BOX
    ) -> None:
        """Learn how long the box took for a frame, from its arrival there to the result here.

        Args:
            box_ns: the time.
            now_ns: the present; needed with `placement` only.
            placement: where the first stage of this frame ran.
        """
        if placement is StagePlacement.BOX:
            self._answers_ns.append(box_ns)
        if self.placement is not None:
            self.placement.answered(placement, box_ns, now_ns)

    def captured(self, frame: int, captured_ns: int, now_ns: int) -> list[Decision]:
        """Process a new frame; decide about it and about the one that waited."""
        self.captured_total += 1
        if not self._rate.due(captured_ns, self._send_rate_hz()):
            return [self._skip(frame, SkipReason.RATE)]
        decisions: list[Decision] = []
        if self._waiting is not None:
            decisions.append(self._skip(self._waiting.frame, SkipReason.WINDOW))
        self._waiting = _Waiting(frame, captured_ns)
        return decisions + self._release(now_ns)

    def encoded(self, frame: int, size_bytes: int, pixels: int, sent_ns: int) -> None:
        """Note the bytes of a frame that is being sent now; no pixels: boxes and crops."""
        if pixels:
            self._bytes_per_pixel.add(size_bytes, pixels)
        for entry in self._on_the_way:
            if entry.frame == frame:
                entry.size_bytes = size_bytes
                entry.sent_ns = sent_ns

    def acknowledged(self, frame: int, now_ns: int, base_ns: int) -> list[Decision]:
        """Note an ack; release the frame that waited for it.

        Args:
            frame: acks arrive in the order of the frames, so older frames have arrived as well.
            now_ns: when the ack arrived.
            base_ns: least round trip.
        """
        if not any(entry.frame == frame for entry in self._on_the_way):
            return []
        while self._on_the_way:
            entry = self._on_the_way.popleft()
            if entry.frame == frame:
                self.bandwidth.add(entry.size_bytes, entry.sent_ns, now_ns, base_ns)
                break
        self._last_ack_ns = now_ns
        return self._release(now_ns)

    def detected(
        self, frame: int, size_bytes: int | None, took_ns: int, now_ns: int
    ) -> list[Decision]:
        """Note that the first stage of a frame has run here; release the frame that waited for it.

        Args:
            frame: the one that was to be detected.
            size_bytes: of the message with its boxes and crops; None: the model failed.
            took_ns: what it took.
            now_ns: the present.

        Returns:
            Decisions. If this frame is skipped, it must not be sent.
        """
        waited, self._detecting = self._detecting, None
        if waited is None or waited.frame != frame:
            return []
        if size_bytes is None or self.placement is None:
            return [self._skip(frame, SkipReason.FAILED), *self._release(now_ns)]
        self.placement.detected(took_ns, size_bytes)
        if self._is_infeasible(waited, size_bytes, now_ns):
            return [self._skip(frame, SkipReason.INFEASIBLE), *self._release(now_ns)]
        self.sent_total += 1
        self._last_send_ns = now_ns
        self._on_the_way.append(_OnTheWay(frame, now_ns, size_bytes))
        return self._release(now_ns)

    def close(self) -> list[Decision]:
        """Skip what is not sent: the connection is closed or nothing more is to be sent."""
        left = [each.frame for each in (self._detecting, self._waiting) if each is not None]
        self._detecting = self._waiting = None
        return [self._skip(frame, SkipReason.OFFLINE) for frame in left]

    @property
    def detecting(self) -> int | None:
        """The number of the frame whose first stage runs here now."""
        return None if self._detecting is None else self._detecting.frame

    @property
    def unacknowledged(self) -> int:
        """The number of frames in transit."""
        return len(self._on_the_way)

    @property
    def waiting(self) -> int | None:
        """The number of the frame that waits outside the window."""
        return None if self._waiting is None else self._waiting.frame

    def bandwidth_bps(self, now_ns: int) -> float | None:
        """Return the lower of the box's and this side's estimates; None: nothing is known."""
        oldest = self._on_the_way[0] if self._on_the_way else None
        own = self.bandwidth.bps(
            now_ns,
            waiting_bytes=oldest.size_bytes if oldest else 0,
            waiting_since_ns=max(oldest.sent_ns, self._last_ack_ns) if oldest else 0,
        )
        advised = self._advice.bandwidth_bps if self._advice else 0
        known = [bps for bps in (own, advised) if bps]
        return min(known) if known else None

    def _send_rate_hz(self) -> float:
        return min(self._rate_hz, self._advice.rate_hz) if self._advice else self._rate_hz

    def _release(self, now_ns: int) -> list[Decision]:
        waiting = self._waiting
        blocked = self._detecting is not None or len(self._on_the_way) >= self._unacknowledged_max
        if waiting is None or blocked:
            return []
        self._waiting = None
        always = self.placement is not None and self.placement.mode is PlacementMode.ALWAYS
        if self._wants_camera(waiting, now_ns):
            return [self._detect(waiting)]
        size = None if always else self._size(waiting.captured_ns, now_ns)
        if size is None:
            if self._has_chance_at_camera(waiting, now_ns):
                return [self._detect(waiting)]
            return [self._skip(waiting.frame, SkipReason.INFEASIBLE)]
        self.sent_total += 1
        self._last_send_ns = now_ns
        expected = round(self._expected_bytes(size))
        self._on_the_way.append(_OnTheWay(waiting.frame, now_ns, expected))
        quality = self._advice.quality if self._advice else 85
        return [Send(waiting.frame, size[0], size[1], quality)]

    def _detect(self, waiting: _Waiting) -> Send:
        self._detecting = waiting
        quality = self._advice.quality if self._advice else 85
        return Send(waiting.frame, *self._own_px, quality, StagePlacement.CAMERA)

    def _wants_camera(self, waiting: _Waiting, now_ns: int) -> bool:
        """Return whether the first stage is to run here, and the answer can be in time so."""
        placement = self.placement
        if placement is None or placement.mode is PlacementMode.NEVER:
            return False
        bps = self.bandwidth_bps(now_ns)
        if placement.mode is PlacementMode.ALWAYS:
            return self._has_chance_at_camera(waiting, now_ns) or self._must_probe(now_ns)
        if bps is None or self._bytes_per_pixel.value() is None:
            return False
        advised = send_sizes(self._own_px, self._advice)[0]
        costs = placement.costs(self._expected_bytes(advised), now_ns)
        placed = place(costs, bps, self._backlog_bits(bps, now_ns))
        # Else a smaller picture may still be in time.
        safe = self._has_chance_at_camera(waiting, now_ns, ANSWER_QUANTILE, GUARD_NS)
        return placed is StagePlacement.CAMERA and safe

    def _has_chance_at_camera(
        self, waiting: _Waiting, now_ns: int, quantile: float = 0.0, guard_ns: int = 0
    ) -> bool:
        """Return whether a frame is answered by its last deadline if it is detected here.

        Args:
            waiting: the frame.
            now_ns: the present.
            quantile: of the costs; 0: with luck.
            guard_ns: a reserve.
        """
        if self.placement is None or self.placement.mode is PlacementMode.NEVER:
            return False
        bps = self.bandwidth_bps(now_ns)
        if bps is None:
            return True
        costs = self.placement.costs(0.0, now_ns, quantile)
        left_ns = waiting.captured_ns + self._last_slo_ns - now_ns - guard_ns
        backlog = self._backlog_bits(bps, now_ns)
        return finish_ns(costs, StagePlacement.CAMERA, bps, backlog) <= left_ns

    def _is_infeasible(self, waiting: _Waiting, size_bytes: int, now_ns: int) -> bool:
        """Return whether boxes and crops would come too late even by a fast box."""
        bps = self.bandwidth_bps(now_ns)
        if bps is None or self._must_probe(now_ns):
            return False
        left_ns = waiting.captured_ns + self._last_slo_ns - now_ns
        return size_bytes * 8 + self._backlog_bits(bps, now_ns) > bps * left_ns / 1e9

    def _size(self, captured_ns: int, now_ns: int) -> tuple[int, int] | None:
        """Return the largest size that meets the deadline; None if there is none."""
        sizes = send_sizes(self._own_px, self._advice)
        bps = self.bandwidth_bps(now_ns)
        if bps is None or self._bytes_per_pixel.value() is None:
            return sizes[0]
        left_ns = captured_ns + self._slo_ns - now_ns
        backlog = self._backlog_bits(bps, now_ns)
        in_time = bps * (left_ns - GUARD_NS - self._box_ns(ANSWER_QUANTILE)) / 1e9 - backlog
        sustained = bps / self._send_rate_hz()
        for size in sizes:
            if self._expected_bytes(size) * 8 <= min(in_time, sustained):
                return size
        # A skipped frame is certainly lost, so skip it only if even the best case is too late.
        smallest = sizes[-1]
        last_left_ns = left_ns + self._last_slo_ns - self._slo_ns
        with_luck = bps * (last_left_ns - self._box_ns(0.0)) / 1e9 - backlog
        if self._expected_bytes(smallest) * 8 <= with_luck or self._must_probe(now_ns):
            return smallest
        return None

    def _must_probe(self, now_ns: int) -> bool:
        if self._on_the_way or self._last_send_ns is None:
            return not self._on_the_way
        return now_ns - self._last_send_ns >= PROBE_NS

    def _expected_bytes(self, size: tuple[int, int]) -> float:
        return message_bytes(self._bytes_per_pixel.value() or 0.0, size[0] * size[1])

    def _backlog_bits(self, bps: float, now_ns: int) -> float:
        """Return how many bits of the frames in transit have probably not left yet."""
        if not self._on_the_way:
            return 0.0
        bits = sum(entry.size_bytes for entry in self._on_the_way) * 8
        since_ns = max(self._on_the_way[0].sent_ns, self._last_ack_ns)
        return max(0.0, bits - bps * max(0, now_ns - since_ns) / 1e9)

    def _box_ns(self, quantile: float) -> int:
        """Return a quantile of the box's time per frame; 0 while unknown."""
        if not self._answers_ns:
            return 0
        ordered = sorted(self._answers_ns)
        return ordered[min(int(quantile * len(ordered)), len(ordered) - 1)]

    def _skip(self, frame: int, reason: SkipReason) -> Skip:
        self.skipped[reason] += 1
        return Skip(frame, reason)


@lru_cache(maxsize=256)  # a camera asks for every frame, with the same advice for seconds
def send_sizes(own_px: tuple[int, int], advice: Advice | None) -> tuple[tuple[int, int], ...]:
    """Return the sizes at which a camera may send, largest first: steps of the longer side."""
    own_width, own_height = own_px
    scale = 1.0
    if advice is not None:
        scale = min(1.0, advice.width_px / own_width, advice.height_px / own_height)
    long_px = max(own_width, own_height)
    largest = max(1, round(long_px * scale))
    first_step = (largest - 1) // SIDE_STEP_PX * SIDE_STEP_PX
    steps = range(first_step, SIDE_MIN_PX - 1, -SIDE_STEP_PX)
    return tuple(
        (
            max(1, round(own_width * side / long_px)),
            max(1, round(own_height * side / long_px)),
        )
        for side in (largest, *steps)
    )
