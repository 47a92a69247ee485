"""What the box knows of one camera: its link, its clock, its advice, and what it has sent so far.

Lives on the event loop; knows nothing of sockets: a session (web/) feeds it what came in.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from edgebox.domain.models import VariantName
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.plans import Advice
from edgebox.domain.requests import Camera, LinkState
from edgebox.link.bandwidth import BandwidthEstimate, BytesPerPixel
from edgebox.link.clock import ClockEstimate
from edgebox.link.messages import FrameHeader
from edgebox.link.news import LinkNews

HISTORY_S = 60
_SECOND_NS = 1_000_000_000
_RETURN_ALLOWANCE_NS = 2_000_000
"""Time granted to the sending of a result, beside half the least round trip."""
_NETWORK_MAX_NS = 30 * _SECOND_NS
"""A frame that seems to have travelled longer says that the clock is wrong, not the link."""
_FUTURE_MAX_NS = 50_000_000
_TOLD_KEPT = 16
"""More changes than this never happen while a frame is on its way: plans take longer."""


class Session(Protocol):
    """A camera's connection, as the box sees it."""

    address: str

    def advised(self, advice: Advice) -> None:
        """Tell the camera of new advice, and of the deadline in force."""
        ...

    def replaced(self) -> None:
        """End the connection: the same camera has connected anew."""
        ...


@dataclass(slots=True)
class Hop:
    """What one frame's journey to the box looked like, on the box's clock."""

    captured_ns: int
    sent_ns: int
    deadline_ns: int
    return_ns: int
    skipped: int
    """Frames captured before this one that were never sent."""
    suspicious: bool
    """The camera's clock contradicts the link: ask for it again."""
    advised: VariantName | None
    """The variant that the camera had been told of when it sent the frame, by these estimates."""
    carried: tuple[int, int] | None
    """Bits and how long, in ns, the uplink took for them; None: not known."""


@dataclass(slots=True)
class CameraRecord:
    """One camera; replaced by a new record when it says hello again."""

    asked: Camera
    """What it asked for in its hello."""
    agent: str
    instance: str | None
    session: Session | None
    overrides: Overrides = NOTHING_SET
    opened_ns: int = 0
    first_frame_ns: int | None = None
    """When its first frame had arrived."""
    advice: Advice | None = None
    left_ns: int | None = None
    left_because: str = ""
    clock: ClockEstimate = field(default_factory=ClockEstimate)
    bandwidth: BandwidthEstimate = field(default_factory=BandwidthEstimate)
    weight: BytesPerPixel = field(default_factory=BytesPerPixel)
    link_history: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=HISTORY_S))
    width_history: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=HISTORY_S))
    """(instant, advised width px), at each change."""
    _told: deque[tuple[int, VariantName]] = field(default_factory=lambda: deque(maxlen=_TOLD_KEPT))
    """(instant, advised variant), at each change."""
    _received: int = 0
    _skipped: int = 0
    _news: LinkNews = field(default_factory=LinkNews)
    camera: Camera = field(init=False)
    """What is in force: what it asked for, and what was set on the box over that."""

    def __post_init__(self) -> None:
        self.override(self.overrides)

    def override(self, overrides: Overrides) -> None:
        """Put settings of the box into force, from the next frame on."""
        self.overrides = overrides
        self.camera = overrides.applied_to(self.asked)

    @property
    def slo_ms(self) -> float | None:
        """The deadline that was set on the box; None: the hello's."""
        return None if self.overrides.slo_ns is None else self.overrides.slo_ns / 1e6

    @property
    def connected(self) -> bool:
        """Say whether the camera is there now."""
        return self.session is not None

    def advised(self, advice: Advice, now_ns: int) -> None:
        """Take on new advice."""
        if self.advice is None or self.advice.width_px != advice.width_px:
            self.width_history.append((now_ns, advice.width_px))
        if self.advice is None or self.advice.variant != advice.variant:
            self._told.append((now_ns, advice.variant))
        self.advice = advice

    def pong(self, sent_ns: int, camera_ns: int, received_ns: int) -> bool:
        """Learn from a clock exchange; say whether the camera's clock has jumped."""
        return self.clock.add(sent_ns, camera_ns, received_ns)

    def frame_arrived(
        self, header: FrameHeader, size_bytes: int, pixels: int | None, arrival_ns: int
    ) -> Hop:
        """Place a frame on the box's clock and learn from its journey.

        Args:
            header: as the camera sent it.
            size_bytes: of the whole message.
            pixels: of the picture as sent; None when it is not a picture.
            arrival_ns: when its last byte was here.
        """
        if self.first_frame_ns is None:
            self.first_frame_ns = arrival_ns
        rtt_ns = self.clock.rtt_ns
        return_ns = (rtt_ns or 0) // 2
        captured_ns = self.clock.to_box_ns(header.captured_ns)
        sent_ns = self.clock.to_box_ns(header.sent_ns)
        suspicious = False
        carried = None
        if captured_ns is not None and sent_ns is not None:
            travelled_ns = arrival_ns - captured_ns
            suspicious = not -_FUTURE_MAX_NS <= travelled_ns <= _NETWORK_MAX_NS
            if not suspicious:
                captured_ns = min(captured_ns, arrival_ns)
                self.bandwidth.add(size_bytes, min(sent_ns, arrival_ns), arrival_ns, return_ns)
                carried = self.bandwidth.newest()
        if captured_ns is None or suspicious:
            captured_ns = arrival_ns - self._travel_time_ns(size_bytes, arrival_ns, return_ns)
        if pixels:
            self.weight.add(size_bytes, pixels)
        self._note_bandwidth(arrival_ns)
        self._received += 1
        skipped = self.skipped_news(header.captured_total - self._received)
        deadline_ns = captured_ns + self.camera.slo_ns - return_ns - _RETURN_ALLOWANCE_NS
        if sent_ns is None or suspicious:
            sent_ns = captured_ns
        advised = self._advised_at(sent_ns - return_ns)
        return Hop(
            captured_ns, sent_ns, deadline_ns, return_ns, skipped, suspicious, advised, carried
        )

    def _advised_at(self, at_ns: int) -> VariantName | None:
        """Return what had left for the camera by this instant; before the welcome: the first."""
        if not self._told:
            return None
        earlier = (variant for told_ns, variant in reversed(self._told) if told_ns <= at_ns)
        return next(earlier, self._told[0][1])

    def skipped_news(self, skipped_total: int) -> int:
        """Return how many of the frames skipped since hello were not counted yet; count them.

        Frames arrive in the order of their capture, so what a header says was captured before
        and what has arrived differ by exactly what was skipped.
        """
        news = max(0, skipped_total - self._skipped)
        self._skipped += news
        return news

    def _travel_time_ns(self, size_bytes: int, now_ns: int, return_ns: int) -> int:
        bandwidth_bps = self.bandwidth.bps(now_ns)
        if not bandwidth_bps:
            return return_ns
        return return_ns + round(size_bytes * 8 / bandwidth_bps * 1e9)

    def _note_bandwidth(self, now_ns: int) -> None:
        second = now_ns // _SECOND_NS
        if not self.link_history or self.link_history[-1][0] != second:
            bandwidth_bps = self.bandwidth.bps(now_ns)
            if bandwidth_bps is not None:
                self.link_history.append((second, bandwidth_bps))

    def link_news(self, now_ns: int) -> LinkState | None:
        """Return the link's state if the core should hear of it now."""
        return self._news.due(
            now_ns,
            lambda: LinkState(
                bandwidth_bps=self.bandwidth.bps(now_ns),
                rtt_ns=self.clock.rtt_ns,
                clock_error_ns=self.clock.error_ns(now_ns),
                bytes_per_pixel=self.weight.value(),
                steadiness=self.bandwidth.steadiness(),
            ),
        )
