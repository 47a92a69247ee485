"""What the box knows of one camera: its link, its clock, its advice, and what it has sent so far.

Lives on the event loop; knows nothing of sockets: a session (web/) feeds it what came in.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Protocol

from edgebox.domain.model_family import VariantName
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.plans import Advice
from edgebox.domain.requests import Camera, Request, RequestId, SiteId
from edgebox.link.from_camera import RATE_MAX_HZ
from edgebox.link.messages import FrameHeader
from edgebox.link.transit import FrameArrival, FrameTransit, TransitEstimator
from edgebox.runtime.frames import ArrivedFrame

HISTORY_S = 60
_SECOND_NS = 1_000_000_000
_CAPTURED_PER_S_MAX = RATE_MAX_HZ
"""Frames that a camera is believed to have captured: what it captures is more than what it would
like to send, so the rate of its hello is no bound."""
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


@dataclass(frozen=True, slots=True)
class FrameNews:
    """What a frame's arrival says: its journey, and what its camera had done until then."""

    transit: FrameTransit
    skipped: int
    """Frames captured before this one that were never sent."""
    advised: VariantName | None
    """The variant that the camera had been told of when it sent the frame, by these estimates."""


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
    inferred: SiteId | None = None
    """The site that it was found to be of; it counts if none is declared."""
    first_frame_ns: int | None = None
    """When its first frame had arrived."""
    advice: Advice | None = None
    left_ns: int | None = None
    left_because: str = ""
    link: TransitEstimator = field(default_factory=TransitEstimator)
    """Its clock, its round trip, its uplink, and what its pictures weigh."""
    link_history: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=HISTORY_S))
    width_history: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=HISTORY_S))
    """(instant, advised width px), at each change."""
    _told: deque[tuple[int, VariantName]] = field(default_factory=lambda: deque(maxlen=_TOLD_KEPT))
    """(instant, advised variant), at each change."""
    _received: int = 0
    _skipped: int = 0
    camera: Camera = field(init=False)
    """What is in force: what it asked for, and what was set on the box over that."""

    def __post_init__(self) -> None:
        self.override(self.overrides)

    def override(self, overrides: Overrides) -> None:
        """Put settings of the box into force, from the next frame on."""
        self.overrides = overrides
        camera = overrides.applied_to(self.asked)
        self.camera = replace(camera, site=camera.site or self.inferred)

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

    def frame_arrived(
        self, header: FrameHeader, arrival: FrameArrival, pixels: int | None
    ) -> FrameNews:
        """Place a frame on the box's clock and learn from its journey.

        Args:
            header: as the camera sent it.
            arrival: of the whole message.
            pixels: of the picture as sent; None when it is not a picture.
        """
        if self.first_frame_ns is None:
            self.first_frame_ns = arrival.arrival_ns
        transit = self.link.frame_arrived(
            header.captured_ns, header.sent_ns, arrival, pixels, self.camera.slo_ns
        )
        self._note_bandwidth(arrival.arrival_ns)
        self._received += 1
        skipped = self.skipped_news(header.captured_total - self._received, arrival.arrival_ns)
        return FrameNews(transit, skipped, self._advised_at(transit.sent_ns - transit.return_ns))

    def request(
        self, request_id: RequestId, arrived: ArrivedFrame, news: FrameNews, now_ns: int
    ) -> Request:
        """Return what the box is asked for by a frame that has arrived now."""
        header, transit, camera = arrived.header, news.transit, self.camera
        width_px, height_px = arrived.picture_px or (header.width_px, header.height_px)
        return Request(
            id=request_id,
            camera=camera.id,
            app=camera.app,
            captured_ns=transit.captured_ns,
            arrival_ns=now_ns,
            deadline_ns=transit.compute_deadline_ns,
            width_px=width_px,
            height_px=height_px,
            size_bytes=arrived.size_bytes,
            steps=camera.steps_after(transit.compute_deadline_ns),
            advised=news.advised,
            sent_ns=transit.sent_ns,
        )

    def _advised_at(self, at_ns: int) -> VariantName | None:
        """Return what had left for the camera by this instant; before the welcome: the first."""
        if not self._told:
            return None
        earlier = (variant for told_ns, variant in reversed(self._told) if told_ns <= at_ns)
        return next(earlier, self._told[0][1])

    def skipped_news(self, skipped_total: int, now_ns: int) -> int:
        """Return how many of the frames skipped since hello were not counted yet; count them.

        Frames arrive in the order of their capture, so what a header says was captured before
        and what has arrived differ by exactly what was skipped. What no camera can have captured
        since its hello, and a second before, is not believed.
        """
        since_ns = now_ns - self.opened_ns + _SECOND_NS
        captured_max = since_ns * _CAPTURED_PER_S_MAX // _SECOND_NS
        news = max(0, min(skipped_total, captured_max - self._received) - self._skipped)
        self._skipped += news
        return news

    def _note_bandwidth(self, now_ns: int) -> None:
        second = now_ns // _SECOND_NS
        if not self.link_history or self.link_history[-1][0] != second:
            bandwidth_bps = self.link.bandwidth.bps(now_ns)
            if bandwidth_bps is not None:
                self.link_history.append((second, bandwidth_bps))
