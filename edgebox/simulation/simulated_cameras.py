"""Owns the simulated cameras: a periodic source, the real sender's window, a shaped link.

What the box learns of the link, and when it believes a frame to have been captured, is as in the
box: by the estimators of link/.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import QUANTILES, VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import Camera, LinkState, Request, RequestId
from edgebox.link.bandwidth import (
    OVERHEAD_BYTES,
    REFERENCE_PX,
    SIZE_EXPONENT,
    BandwidthEstimate,
    EstimatorKind,
    LinkEstimate,
)
from edgebox.link.sender import Decision, Send
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.link.site_estimates import SiteEstimates
from edgebox.link.transit import SEGMENT_BYTES, FrameArrival, TransitEstimator
from edgebox.simulation.senders import KnownLink, SenderFactory, SenderKind, make_sender
from edgebox.simulation.shared_links import FairLink, Queueing, SimulatedSite

MEMORY = 0.8
"""How much of a picture's surplus weight the next one shares: scenes change slowly."""

EstimateFactory = Callable[[Camera, ShapedLink], LinkEstimate]
TransitFactory = Callable[[LinkEstimate], TransitEstimator]


class CameraClock(StrEnum):
    """What the box can know of a camera's clock."""

    EXCHANGED = "exchanged"
    """The camera answers pings with what its clock says: all of it."""
    STAMPS = "stamps"
    """It answers none, but stamps its frames."""
    NONE = "none"
    """It answers none, and its stamps are 0."""


@dataclass(frozen=True, slots=True)
class PictureBytes:
    """What pictures weigh: small ones more per pixel, and not all the same."""

    per_pixel: float = 0.3
    """JPEG bytes per pixel of a picture of `REFERENCE_PX`, the median."""
    exponent: float = SIZE_EXPONENT
    """Per pixel a picture weighs in proportion to its pixels to the power of minus this."""
    spread: float = 0.0
    """Standard deviation of the logarithm; consecutive pictures are alike."""

    def median_bytes(self, pixels: int) -> float:
        """Return what a usual picture of a size weighs."""
        factor: float = (pixels / REFERENCE_PX) ** -self.exponent
        return self.per_pixel * pixels * factor


@dataclass(frozen=True, slots=True)
class SimulatedCamera:
    """A camera and its surroundings."""

    camera: Camera
    trace: BandwidthTrace
    """Of its own link; of a camera of a site, the site's counts."""
    rtt_ns: int = 2_000_000
    weight: PictureBytes = PictureBytes()
    opens_ns: int = 0
    closes_ns: int | None = None
    phase_ns: int = 0
    """From its connection to its first picture."""
    trace_start_ns: int = 0
    """Where in its trace the link is when the camera connects."""
    jitter_ns: int = 0
    """Up to so much later than it is there is a frame noticed at the box."""
    encode_ns: tuple[int, int] = (0, 0)
    """Least and most that scaling and encoding a picture takes; one after the other."""
    clock: CameraClock = CameraClock.EXCHANGED
    work: tuple[float, ...] = ()
    """How much work its pictures are, in units of the profile's: the `QUANTILES`, each picture's
    own drawn from them; none: as much as the profile's."""
    site: SimulatedSite | None = None
    """Whose uplink it shares; None: it has its own. `camera.site` says whether it tells the box."""

    address: str = ""
    """Where its connection comes from; empty: from its site, or from itself."""

    @property
    def from_address(self) -> str:
        """Where the box sees its connection come from."""
        return self.address or (self.site.name if self.site else self.camera.id)

    def __post_init__(self) -> None:
        fair = self.site is not None and self.site.queueing is Queueing.FAIR
        if fair and self.clock is not CameraClock.EXCHANGED:
            raise InvalidInputError("cameras of a site with fair queueing must exchange clocks")


def estimated(rule: EstimatorKind) -> EstimateFactory:
    """Return what makes an estimate from the frames that a link carries."""
    return lambda camera, link: BandwidthEstimate(rule=rule)


def known(camera: Camera, link: ShapedLink) -> LinkEstimate:
    """Return the knowledge of what a link will carry while a frame is on its way."""
    return KnownLink(link, camera.slo_ns // 2)


@dataclass(frozen=True, slots=True)
class Sending:
    """A frame on its way, and when it really was captured."""

    id: RequestId
    send: Send
    captured_ns: int
    sent_ns: int
    size_bytes: int
    late_ns: int
    """How much later than it is there it is noticed."""
    arrival: FrameArrival | None
    """None: not known before it happens."""
    advised: VariantName | None

    @property
    def frame(self) -> int:
        """The camera's own number of it."""
        return self.send.frame


@dataclass(frozen=True, slots=True)
class Uplink:
    """What carries the frames of one camera, or of all cameras of a site."""

    link: ShapedLink
    fair: FairLink | None = None
    """What shares it out fairly; None: first in, first out."""


class CameraEnd:
    """One connected camera, with the box's knowledge of its link beside it."""

    def __init__(
        self,
        spec: SimulatedCamera,
        rng: random.Random,
        sender: SenderFactory | None = None,
        estimate: EstimateFactory | None = None,
        transit: TransitFactory | None = None,
        *,
        uplink: Uplink | None = None,
        sites: SiteEstimates | None = None,
    ) -> None:
        """Connect a camera.

        Args:
            spec: the camera.
            rng: chance in what its pictures weigh.
            sender: what decides at the camera; None: edgebox's window.
            estimate: what both ends believe of the link; None: edgebox's estimate.
            transit: what places frames on the box's clock; None: edgebox's own.
            uplink: of its site; None: it has its own.
            sites: of the box's estimates of uplinks that cameras share; None: of this camera alone.
        """
        make_estimate = estimate or estimated(EstimatorKind.CAUTIOUS)
        camera = spec.camera
        self.spec = spec
        self.connected = True
        own = Uplink(ShapedLink(spec.trace, spec.opens_ns - spec.trace_start_ns))
        self.uplink = own if uplink is None else uplink
        self.link = self.uplink.link
        self.sender = (sender or make_sender(SenderKind.WINDOW))(
            camera, make_estimate(camera, self.link)
        )
        self.flying: dict[int, Sending] = {}
        self._rng = rng
        self._last_arrival_ns = 0
        self._left_ns = 0
        self._encoder_free_ns = 0
        self._surplus = rng.gauss(0.0, 1.0)
        self._advised: VariantName | None = None
        self._captured_ns: dict[int, int] = {}
        estimate_at_box = (sites or SiteEstimates(BandwidthEstimate)).join(
            camera.id, camera.site, spec.from_address, lambda: make_estimate(camera, self.link)
        )
        self._transit = (transit or TransitEstimator)(estimate_at_box)
        opens_ns, back_ns = spec.opens_ns, spec.opens_ns + spec.rtt_ns
        if spec.clock is CameraClock.EXCHANGED:
            # The camera's clock is the box's, and its links are alike in both directions.
            self._transit.pong(opens_ns, opens_ns + spec.rtt_ns // 2, back_ns)
        else:
            self._transit.echoed(opens_ns, back_ns)

    def believe(self, uplink: LinkEstimate) -> None:
        """Take another estimate of its uplink at the box from now on."""
        self._transit.bandwidth = uplink

    def advised(self, advice: Advice) -> None:
        """Take on new advice."""
        self._advised = advice.variant
        self.sender.advised(advice)

    def capture(self, frame: int, now_ns: int) -> list[Decision]:
        """Take a picture."""
        self._captured_ns[frame] = now_ns
        self._surplus = MEMORY * self._surplus + math.sqrt(1 - MEMORY**2) * self._rng.gauss(0, 1)
        return self.sender.captured(frame, now_ns, now_ns)

    def skip(self, frame: int) -> int:
        """Forget a frame that will not be sent; return when it was captured."""
        return self._captured_ns.pop(frame)

    @property
    def kept(self) -> list[int]:
        """When the frames were captured that are neither sent nor skipped."""
        return list(self._captured_ns.values())

    def encoded_at(self, now_ns: int) -> int:
        """Begin to encode a picture; return when it can leave."""
        if self.spec.encode_ns[1] == 0:
            return now_ns
        starts_ns = max(now_ns, self._encoder_free_ns)
        self._encoder_free_ns = starts_ns + self._rng.randint(*self.spec.encode_ns)
        return self._encoder_free_ns

    def send(self, send: Send, request: RequestId, now_ns: int) -> Sending:
        """Hand a frame to the link; the sending has its arrival, if that is known already."""
        pixels = send.width_px * send.height_px
        weight = self.spec.weight
        usual = weight.median_bytes(pixels)
        size_bytes = OVERHEAD_BYTES + round(usual * math.exp(weight.spread * self._surplus))
        # A socket takes the next message when the one before it has left.
        sent_ns = max(now_ns, self._left_ns)
        if self.uplink.fair is not None:
            sent_ns = self.uplink.fair.hand_over(
                now_ns, self.spec.camera.id, send.frame, size_bytes
            )
        else:
            self._left_ns = self.link.leaves_ns(now_ns, size_bytes)
        self.sender.encoded(send.frame, size_bytes, pixels, sent_ns)
        captured_ns = self._captured_ns.pop(send.frame)
        late_ns = round(self._rng.random() * self.spec.jitter_ns)
        fair = self.uplink.fair is not None
        arrival = None if fair else self._arrival(size_bytes, self._left_ns + late_ns)
        sending = Sending(
            request, send, captured_ns, sent_ns, size_bytes, late_ns, arrival, self._advised
        )
        self.flying[send.frame] = sending
        return sending

    def left(self, frame: int, left_ns: int) -> tuple[Sending, FrameArrival]:
        """Return a frame whose last byte has left, and its arrival."""
        sending = self.flying[frame]
        return sending, self._arrival(sending.size_bytes, left_ns + sending.late_ns)

    def draw_work(self) -> float:
        """Return how much work a picture is, in units of the profile's."""
        if not self.spec.work:
            return 1.0
        return float(np.interp(self._rng.random(), QUANTILES, self.spec.work))

    def _arrival(self, size_bytes: int, left_ns: int) -> FrameArrival:
        """Return when the box sees the bytes of a message; `left_ns`: with the lateness drawn."""
        half_ns = self.spec.rtt_ns // 2
        noticed_ns = left_ns + half_ns
        # One connection delivers in order, and a loop reads one message at a time.
        before_ns = self._last_arrival_ns
        arrival_ns = self._last_arrival_ns = max(noticed_ns, before_ns + 1)
        if self.spec.clock is CameraClock.EXCHANGED:
            return FrameArrival.at_once(size_bytes, arrival_ns)
        # The loop wakes up for the first segment, and reads what is there by then.
        segment_bytes = min(SEGMENT_BYTES, size_bytes)
        first_ns = self.link.left_but_for_ns(size_bytes - segment_bytes) + half_ns
        first_ns += round(self._rng.random() * self.spec.jitter_ns)
        first_ns = min(max(first_ns, before_ns), arrival_ns)
        read_bytes = size_bytes - self.link.behind_bytes(first_ns - half_ns)
        first_bytes = min(max(read_bytes, segment_bytes), size_bytes)
        return FrameArrival(size_bytes, arrival_ns, first_ns, first_bytes, arrival_ns)

    def arrived(self, sending: Sending, arrival: FrameArrival) -> tuple[Request, LinkState | None]:
        """Return the frame as the box sees it, and of the link what the core should hear."""
        del self.flying[sending.frame]
        camera, send = self.spec.camera, sending.send
        stamps_ns = sending.captured_ns, sending.sent_ns
        if self.spec.clock is CameraClock.NONE:
            stamps_ns = 0, 0
        transit = self._transit.frame_arrived(
            *stamps_ns, arrival, send.width_px * send.height_px, camera.slo_ns
        )
        request = Request(
            id=sending.id,
            camera=camera.id,
            app=camera.app,
            captured_ns=transit.captured_ns,
            arrival_ns=arrival.arrival_ns,
            deadline_ns=transit.compute_deadline_ns,
            width_px=send.width_px,
            height_px=send.height_px,
            size_bytes=arrival.size_bytes,
            steps=camera.steps_after(transit.compute_deadline_ns),
            advised=sending.advised,
            sent_ns=transit.sent_ns,
        )
        return request, self._transit.take_updates(arrival.arrival_ns)
