"""Owns the simulated cameras: a periodic source, the real sender's window, a shaped link.

The link state and the capture times come from the estimators of link/, as in the box.
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
from edgebox.simulation.objects import ObjectCounts
from edgebox.simulation.senders import KnownLink, SenderFactory, SenderKind, make_sender
from edgebox.simulation.shared_links import FairLink, Queueing, SimulatedSite

MEMORY = 0.8
"""Correlation of the extra bytes of consecutive pictures: scenes change slowly."""

EstimateFactory = Callable[[Camera, ShapedLink], LinkEstimate]
TransitFactory = Callable[[LinkEstimate], TransitEstimator]


class CameraClock(StrEnum):
    """The box's information on a camera's clock."""

    EXCHANGED = "exchanged"
    """The camera answers pings with its clock."""
    STAMPS = "stamps"
    """The camera answers no pings but stamps its frames."""
    NONE = "none"
    """The camera answers no pings, and its stamps are 0."""


@dataclass(frozen=True, slots=True)
class PictureBytes:
    """The bytes of pictures: random, with more bytes per pixel for small ones."""

    per_pixel: float = 0.3
    """JPEG bytes per pixel of a picture of `REFERENCE_PX`, the median."""
    exponent: float = SIZE_EXPONENT
    """Bytes per pixel are proportional to the pixels to the power of minus this."""
    spread: float = 0.0
    """Standard deviation of the logarithm; consecutive pictures are alike."""

    def median_bytes(self, pixels: int) -> float:
        """Return the median bytes of a picture of a size."""
        factor: float = (pixels / REFERENCE_PX) ** -self.exponent
        return self.per_pixel * pixels * factor


@dataclass(frozen=True, slots=True)
class SimulatedCamera:
    """A camera and its environment."""

    camera: Camera
    trace: BandwidthTrace
    """The trace of its own link; a camera of a site uses the site's."""
    rtt_ns: int = 2_000_000
    weight: PictureBytes = PictureBytes()
    opens_ns: int = 0
    closes_ns: int | None = None
    phase_ns: int = 0
    """Time from its connection to its first picture."""
    trace_start_ns: int = 0
    """The instant of the trace at which the camera connects."""
    jitter_ns: int = 0
    """Maximum delay with which the box notices an arrived frame."""
    encode_ns: tuple[int, int] = (0, 0)
    """Minimum and maximum time of scaling and encoding a picture, one after the other."""
    clock: CameraClock = CameraClock.EXCHANGED
    work: tuple[float, ...] = ()
    """The work of its pictures, in units of the profile's: `QUANTILES` from which each picture's is
    drawn; empty: as much as the profile's."""
    site: SimulatedSite | None = None
    """The site whose uplink it shares; None: it has its own. `camera.site` is what it states in its
    hello."""

    address: str = ""
    """Its network address; empty: that of its site, or its own."""
    objects: ObjectCounts | None = None
    """What its pictures show, for the later stages of its pipeline; None: nothing."""
    object_sides: tuple[float, ...] = ()
    """The square roots of the objects' areas, as shares of that of their picture: the first object
    of a picture has the first, and so on, from the beginning again. Empty: all crops are alike."""
    difficulty: float = 1.0
    """How hard its pictures are for a cascade's small model: 1 as those that the cascade was fitted
    to, above 1 harder, below 1 easier."""

    @property
    def from_address(self) -> str:
        """The network address that the box sees."""
        return self.address or (self.site.name if self.site else self.camera.id)

    def __post_init__(self) -> None:
        fair = self.site is not None and self.site.queueing is Queueing.FAIR
        if fair and self.clock is not CameraClock.EXCHANGED:
            raise InvalidInputError("cameras of a site with fair queueing must exchange clocks")


def estimated(rule: EstimatorKind) -> EstimateFactory:
    """Return a factory of estimates from the frames that a link carries."""
    return lambda camera, link: BandwidthEstimate(rule=rule)


def known(camera: Camera, link: ShapedLink) -> LinkEstimate:
    """Return the true rate of a link while a frame is in transit."""
    return KnownLink(link, camera.slo_ns // 2)


@dataclass(frozen=True, slots=True)
class Sending:
    """A frame in transit, and when it was captured."""

    id: RequestId
    send: Send
    captured_ns: int
    sent_ns: int
    size_bytes: int
    late_ns: int
    """The delay with which its arrival is noticed."""
    arrival: FrameArrival | None
    """None: not known before it happens."""
    advised: VariantName | None

    @property
    def frame(self) -> int:
        """The camera's own number of the frame."""
        return self.send.frame


@dataclass(frozen=True, slots=True)
class Uplink:
    """The link of one camera, or of all cameras of a site."""

    link: ShapedLink
    fair: FairLink | None = None
    """The fair queue; None: first in, first out."""


class CameraEnd:
    """One connected camera, with the box's estimates of its link."""

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
            rng: for the bytes of its pictures.
            sender: what decides at the camera; None: edgebox's window.
            estimate: the link estimate of both ends; None: edgebox's.
            transit: the frame timing; None: edgebox's own.
            uplink: of its site; None: it has its own.
            sites: the box's estimates of shared uplinks; None: of this camera's only.
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
            # The camera uses the box's clock, and its link is symmetric.
            self._transit.pong(opens_ns, opens_ns + spec.rtt_ns // 2, back_ns)
        else:
            self._transit.echoed(opens_ns, back_ns)

    def set_estimate(self, uplink: LinkEstimate) -> None:
        """Replace the box's estimate of its uplink from now on."""
        self._transit.bandwidth = uplink

    def advised(self, advice: Advice) -> None:
        """Apply new advice."""
        self._advised = advice.variant
        self.sender.advised(advice)

    def capture(self, frame: int, now_ns: int) -> list[Decision]:
        """Capture a picture."""
        self._captured_ns[frame] = now_ns
        self._surplus = MEMORY * self._surplus + math.sqrt(1 - MEMORY**2) * self._rng.gauss(0, 1)
        return self.sender.captured(frame, now_ns, now_ns)

    def skip(self, frame: int) -> int:
        """Forget a frame that will not be sent; return when it was captured."""
        return self._captured_ns.pop(frame)

    @property
    def kept(self) -> list[int]:
        """The capture times of the frames that are neither sent nor skipped."""
        return list(self._captured_ns.values())

    def encoded_at(self, now_ns: int) -> int:
        """Start to encode a picture; return when it can leave."""
        if self.spec.encode_ns[1] == 0:
            return now_ns
        starts_ns = max(now_ns, self._encoder_free_ns)
        self._encoder_free_ns = starts_ns + self._rng.randint(*self.spec.encode_ns)
        return self._encoder_free_ns

    def send(self, send: Send, request: RequestId, now_ns: int) -> Sending:
        """Hand a frame to the link; the result has its arrival, if that is known already."""
        pixels = send.width_px * send.height_px
        weight = self.spec.weight
        usual = weight.median_bytes(pixels)
        size_bytes = OVERHEAD_BYTES + round(usual * math.exp(weight.spread * self._surplus))
        # A socket accepts the next message when the previous one has left.
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
        """Return the work of a picture, in units of the profile's."""
        if not self.spec.work:
            return 1.0
        return float(np.interp(self._rng.random(), QUANTILES, self.spec.work))

    def _arrival(self, size_bytes: int, left_ns: int) -> FrameArrival:
        """Return when the box sees the bytes of a message; `left_ns` includes the delay drawn."""
        half_ns = self.spec.rtt_ns // 2
        noticed_ns = left_ns + half_ns
        # One connection delivers in order, and a loop reads one message at a time.
        before_ns = self._last_arrival_ns
        arrival_ns = self._last_arrival_ns = max(noticed_ns, before_ns + 1)
        if self.spec.clock is CameraClock.EXCHANGED:
            return FrameArrival.at_once(size_bytes, arrival_ns)
        # The loop wakes up for the first segment and reads what has arrived by then.
        segment_bytes = min(SEGMENT_BYTES, size_bytes)
        first_ns = self.link.left_but_for_ns(size_bytes - segment_bytes) + half_ns
        first_ns += round(self._rng.random() * self.spec.jitter_ns)
        first_ns = min(max(first_ns, before_ns), arrival_ns)
        read_bytes = size_bytes - self.link.behind_bytes(first_ns - half_ns)
        first_bytes = min(max(read_bytes, segment_bytes), size_bytes)
        return FrameArrival(size_bytes, arrival_ns, first_ns, first_bytes, arrival_ns)

    def arrived(self, sending: Sending, arrival: FrameArrival) -> tuple[Request, LinkState | None]:
        """Return the frame as the box sees it, and the link update for the core, if one is due."""
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
