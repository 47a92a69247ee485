"""Owns the simulated cameras: a periodic source, the real sender's window, a shaped link.

What the box learns of the link is learnt as in the box, by the estimators of link/.
"""

from dataclasses import dataclass

from edgebox.domain.requests import Camera, LinkState, Request, RequestId
from edgebox.link.bandwidth import BandwidthEstimate, BytesPerPixel
from edgebox.link.sender import OVERHEAD_BYTES, Decision, SenderWindow
from edgebox.link.shaping import BandwidthTrace, ShapedLink


@dataclass(frozen=True, slots=True)
class SimulatedCamera:
    """A camera and its surroundings."""

    camera: Camera
    trace: BandwidthTrace
    rtt_ns: int = 2_000_000
    bytes_per_pixel: float = 0.3
    opens_ns: int = 0
    closes_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Sending:
    """A frame on its way."""

    frame: int
    request: Request
    sent_ns: int


class CameraEnd:
    """One connected camera, with the box's knowledge of its link beside it."""

    def __init__(self, spec: SimulatedCamera) -> None:
        camera = spec.camera
        self.spec = spec
        self.window = SenderWindow(
            camera.width_px,
            camera.height_px,
            camera.slo_ns,
            camera.rate_hz,
            last_slo_ns=camera.steps[-1].by_ns if camera.steps else None,
        )
        self.connected = True
        self._link = ShapedLink(spec.trace, spec.opens_ns)
        self._captured_ns: dict[int, int] = {}
        self._bandwidth = BandwidthEstimate()
        self._weight = BytesPerPixel()

    def capture(self, frame: int, now_ns: int) -> list[Decision]:
        """Take a picture."""
        self._captured_ns[frame] = now_ns
        return self.window.captured(frame, now_ns, now_ns)

    def skip(self, frame: int) -> None:
        """Forget a frame that will not be sent."""
        del self._captured_ns[frame]

    def send(
        self, frame: int, width_px: int, height_px: int, request: RequestId, now_ns: int
    ) -> Sending:
        """Hand a frame to the link; the request has the instant of its arrival."""
        camera, pixels = self.spec.camera, width_px * height_px
        size_bytes = OVERHEAD_BYTES + round(self.spec.bytes_per_pixel * pixels)
        sent_ns = self._link.free_ns(now_ns)
        self.window.encoded(frame, size_bytes, pixels, sent_ns)
        captured_ns = self._captured_ns.pop(frame)
        deadline_ns = captured_ns + camera.slo_ns - self.spec.rtt_ns // 2
        return Sending(
            frame,
            Request(
                id=request,
                camera=camera.id,
                app=camera.app,
                captured_ns=captured_ns,
                arrival_ns=self._link.leaves_ns(now_ns, size_bytes) + self.spec.rtt_ns // 2,
                deadline_ns=deadline_ns,
                width_px=width_px,
                height_px=height_px,
                size_bytes=size_bytes,
                steps=camera.steps_after(deadline_ns),
            ),
            sent_ns,
        )

    def arrived(self, sending: Sending) -> LinkState:
        """Return what the box knows of the link after this frame."""
        request = sending.request
        now_ns, half_ns = request.arrival_ns, self.spec.rtt_ns // 2
        self._bandwidth.add(request.size_bytes, sending.sent_ns, now_ns, half_ns)
        self._weight.add(request.size_bytes, request.width_px * request.height_px)
        return LinkState(
            bandwidth_bps=self._bandwidth.bps(now_ns),
            rtt_ns=self.spec.rtt_ns,
            clock_error_ns=0,
            bytes_per_pixel=self._weight.value(),
        )
