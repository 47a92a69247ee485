"""State of one camera: its link, its clock, its advice and what it has sent so far.

Lives on the event loop. A session (web/) feeds it; it knows no sockets.
"""

from collections import deque
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.pipelines import Pipeline, PipelineName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import Camera, CameraId, Request, RequestId, SiteId
from edgebox.link.from_camera import RATE_MAX_HZ
from edgebox.link.messages import FrameHeader
from edgebox.link.placement_offer import PlacementOffer
from edgebox.link.receive_budget import ReceiveBudget
from edgebox.link.transit import FrameArrival, FrameTransit, TransitEstimator
from edgebox.media.losses import SourceTrouble
from edgebox.runtime.frames import ArrivedFrame
from edgebox.runtime.planned_skips import PlannedSkips

HISTORY_S = 60
_SECOND_NS = 1_000_000_000
_CAPTURED_PER_S_MAX = RATE_MAX_HZ
"""Upper bound on the frames that a camera reports as captured. It captures more than it sends, so
the rate of its hello is no bound."""
_ADVICE_KEPT = 16
"""Changes of advice kept: more never happen while one frame is in transit."""


class Session(Protocol):
    """A camera's connection, as the box sees it."""

    address: str

    def advised(self, advice: Advice) -> None:
        """Send new advice, and the deadline in force, to the camera."""
        ...

    def replaced(self) -> None:
        """End the connection: the same camera has connected again."""
        ...

    def reconnect(self, why: str) -> None:
        """Say goodbye, so that the camera connects again and learns of new settings."""
        ...


@dataclass(frozen=True, slots=True)
class Skips:
    """Frames that a camera captured and never sent."""

    total: int
    ordered: int
    """Those of them that its advice did not ask for."""


@dataclass(frozen=True, slots=True)
class FrameUpdate:
    """What a frame's arrival revealed: its transit, and what its camera had done until then."""

    transit: FrameTransit
    skipped: Skips
    """Frames captured before this one that were never sent."""
    advised: VariantName | None
    """The variant that the camera was advised to use when it sent the frame, as estimated."""


@dataclass(slots=True)
class CameraRecord:
    """One camera; a new record replaces it when the camera connects again."""

    requested: Camera
    """The settings of its hello."""
    agent: str
    instance: str | None
    session: Session | None
    overrides: Overrides = NOTHING_SET
    pipelines: Mapping[PipelineName, Pipeline] = field(default_factory=dict)
    """The pipelines that are served."""
    families: Container[FamilyName] = ()
    """The families that are served."""
    unacknowledged_max: int = 2
    """Frames that it may send ahead of their acks."""
    opened_ns: int = 0
    pulled: bool = False
    """Whether the box fetches its pictures itself; then its uplink says nothing."""
    inferred: SiteId | None = None
    """The inferred site; used if the camera declares none."""
    offer: PlacementOffer | None = None
    """What it was given to run the first stage of its frames itself; None: nothing."""
    named: frozenset[str] = frozenset()
    """The fields of its hello; the box chose the settings that are not among them."""
    first_frame_ns: int | None = None
    """When its first frame arrived."""
    last_frame_ns: int | None = None
    """When its last frame arrived."""
    advice: Advice | None = None
    source_trouble: SourceTrouble | None = None
    """Why its source gives no pictures, as its camera says; None: it does."""
    left_ns: int | None = None
    left_because: str = ""
    link: TransitEstimator = field(default_factory=TransitEstimator)
    """Estimates of its clock, round trip, uplink and picture sizes."""
    link_history: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=HISTORY_S))
    width_history: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=HISTORY_S))
    """(instant, advised width px), at each change."""
    _advice_history: deque[tuple[int, VariantName]] = field(
        default_factory=lambda: deque(maxlen=_ADVICE_KEPT)
    )
    """(instant, advised variant), at each change."""
    _received: int = 0
    _skipped: int = 0
    budget: ReceiveBudget = field(init=False)
    """How many of its frames the box takes, whatever else there is to do."""
    _planned: PlannedSkips = field(init=False)
    camera: Camera = field(init=False)
    """The settings in force: those of its hello, with the box's overrides."""

    def __post_init__(self) -> None:
        self.budget = ReceiveBudget(self.unacknowledged_max)
        self._planned = PlannedSkips(self.requested.rate_hz, self.opened_ns)
        self.override(self.overrides)

    def override(self, overrides: Overrides) -> None:
        """Apply the box's settings from the next frame on."""
        self.overrides = overrides
        camera = overrides.applied_to(self.requested, self.pipelines, self.families)
        # What carries the pictures that the box fetches is none of a site's business: the uplink of
        # such a camera would count as that of all of them.
        site = None if self.pulled else camera.site or self.inferred
        self.camera = replace(camera, site=site)

    @property
    def slo_ms(self) -> float | None:
        """The deadline set on the box; None: that of the hello is in force."""
        return None if self.overrides.slo_ns is None else self.overrides.slo_ns / 1e6

    @property
    def takes_default(self) -> bool:
        """Whether it gets the default family, because its hello names nothing else."""
        return self.named.isdisjoint(("family", "pipeline")) and self.requested.pipeline is None

    @property
    def connected(self) -> bool:
        """Return whether the camera is connected."""
        return self.session is not None

    @property
    def address(self) -> str:
        """The address that it is connected from; empty: it is not connected."""
        return "" if self.session is None else self.session.address

    def bandwidth_bps(self, now_ns: int) -> float | None:
        """Return the estimated uplink, in bit/s; None: not known, or the camera has none."""
        return None if self.pulled else self.link.bandwidth.bps(now_ns)

    def advised(self, advice: Advice, now_ns: int) -> None:
        """Record new advice."""
        if self.advice is None or self.advice.width_px != advice.width_px:
            self.width_history.append((now_ns, advice.width_px))
        if self.advice is None or self.advice.variant != advice.variant:
            self._advice_history.append((now_ns, advice.variant))
        self.budget.advised(advice.rate_hz, now_ns)
        self._planned.advised(advice.rate_hz, now_ns)
        self.advice = advice

    def frame_arrived(
        self, header: FrameHeader, arrival: FrameArrival, pixels: int | None
    ) -> FrameUpdate:
        """Place a frame on the box's clock and update the estimates with its transit.

        Args:
            header: as the camera sent it.
            arrival: when the whole message arrived.
            pixels: size of the picture as sent; None when it is not a picture.
        """
        if self.first_frame_ns is None:
            self.first_frame_ns = arrival.arrival_ns
        self.last_frame_ns = arrival.arrival_ns
        transit = self.link.frame_arrived(
            header.captured_ns, header.sent_ns, arrival, pixels, self.camera.slo_ns
        )
        self._note_bandwidth(arrival.arrival_ns)
        skipped = self._received_with_skips(header, transit.captured_ns, arrival.arrival_ns)
        return FrameUpdate(transit, skipped, self._advised_at(transit.sent_ns - transit.return_ns))

    def frame_cut(self, header: FrameHeader, now_ns: int) -> FrameUpdate:
        """Place a frame on the box's clock of which only the header was read."""
        transit = self.link.frame_cut(
            header.captured_ns, header.sent_ns, now_ns, self.camera.slo_ns
        )
        skipped = self._received_with_skips(header, transit.captured_ns, now_ns)
        return FrameUpdate(transit, skipped, None)

    def _received_with_skips(self, header: FrameHeader, captured_ns: int, now_ns: int) -> Skips:
        """Count a frame; return those before it that were never sent and not counted yet.

        Args:
            header: as the camera sent it.
            captured_ns: the frame's capture on the box's clock.
            now_ns: the present.
        """
        self._received += 1
        new = self._new_skips(header.captured_total - self._received, now_ns)
        return Skips(new, self._planned.take(1 + new, new, captured_ns))

    def request(
        self, request_id: RequestId, arrived: ArrivedFrame, update: FrameUpdate, now_ns: int
    ) -> Request:
        """Return the request of a frame that has just arrived."""
        header, transit, camera = arrived.header, update.transit, self.camera
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
            advised=update.advised,
            sent_ns=transit.sent_ns,
        )

    def _advised_at(self, at_ns: int) -> VariantName | None:
        """Return the last advice sent to the camera by this instant; or the first."""
        if not self._advice_history:
            return None
        earlier = (
            variant for since_ns, variant in reversed(self._advice_history) if since_ns <= at_ns
        )
        return next(earlier, self._advice_history[0][1])

    def reported(self, skipped_total: int, now_ns: int, captured_ns: int | None = None) -> Skips:
        """Return the frames skipped since hello that were not counted yet; count them.

        Args:
            skipped_total: frames skipped since hello.
            now_ns: the present.
            captured_ns: when the last of them was captured; None: just now.
        """
        new = self._new_skips(skipped_total, now_ns)
        at_ns = now_ns if captured_ns is None else captured_ns
        return Skips(new, self._planned.take(new, new, at_ns) if new else 0)

    def _new_skips(self, skipped_total: int, now_ns: int) -> int:
        """Return how many of the frames skipped since hello were not counted yet; count them.

        Frames arrive in the order of their capture. So the captured frames that a header reports
        and those that arrived differ by exactly the skipped ones. The number is limited to what a
        camera can have captured since its hello, and a second before.
        """
        since_ns = now_ns - self.opened_ns + _SECOND_NS
        captured_max = since_ns * _CAPTURED_PER_S_MAX // _SECOND_NS
        new = max(0, min(skipped_total, captured_max - self._received) - self._skipped)
        self._skipped += new
        return new

    def _note_bandwidth(self, now_ns: int) -> None:
        second = now_ns // _SECOND_NS
        if not self.link_history or self.link_history[-1][0] != second:
            bandwidth_bps = self.bandwidth_bps(now_ns)
            if bandwidth_bps is not None:
                self.link_history.append((second, bandwidth_bps))


def uplinks(cameras: Iterable[CameraRecord], now_ns: int) -> dict[CameraId, float | None]:
    """Return the estimated uplink of each connected camera, in bit/s."""
    return {each.camera.id: each.bandwidth_bps(now_ns) for each in cameras if each.connected}
