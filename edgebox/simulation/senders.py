"""Decides what simulated cameras send and estimate if they do not use edgebox's own rules.

`ObedientSender` obeys as the client of Jellyfish does (section 6); that client has an estimator of
its own (benchmarks/adaptation_jellyfish.py). `KnownLink` replaces the estimate by the true future
rate, as a reference for the cost of not knowing it. Pure: instants are arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

from edgebox.domain.plans import Advice, Plan, PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId
from edgebox.link.bandwidth import BytesPerPixel, CarriedFrame, LinkEstimate, message_bytes
from edgebox.link.sender import Decision, Send, SenderWindow, send_sizes
from edgebox.link.shaping import ShapedLink
from edgebox.planning.planner import Planner


class Sender(Protocol):
    """The interface that decides, at a camera, which frames are sent and at which size."""

    def advised(self, advice: Advice) -> None:
        """Apply new advice."""

    def answered(self, box_ns: int) -> None:
        """Learn how long the box took for a frame."""

    def captured(self, frame: int, captured_ns: int, now_ns: int) -> list[Decision]:
        """Decide about a new frame and those before it."""

    def encoded(self, frame: int, size_bytes: int, pixels: int, sent_ns: int) -> None:
        """Note the bytes of a frame that is being sent now."""

    def acknowledged(self, frame: int, now_ns: int, base_ns: int) -> list[Decision]:
        """Note an ack."""


class SenderKind(StrEnum):
    """The senders a scenario may name."""

    WINDOW = "window"
    """edgebox's own, as in the camera daemon."""
    OBEDIENT = "obedient"
    """Every frame, at the advised size or the largest that the link sustains."""
    UNSCALED = "unscaled"
    """Every frame at the camera's own size: it cannot scale its pictures."""


Size = tuple[int, int]
"""Width and height in pixels."""
SenderFactory = Callable[[Camera, LinkEstimate], Sender]


class ObedientSender:
    """A sender of every frame, at the advised size or the largest below it that the link sustains.

    It neither predicts whether a frame arrives in time nor waits for acks: frames beyond the link's
    capacity queue in front of it.
    """

    def __init__(self, camera: Camera, bandwidth: LinkEstimate) -> None:
        self._camera = camera
        self._bandwidth = bandwidth
        self._advice: Advice | None = None
        self._weight = BytesPerPixel()
        self._on_the_way: dict[int, tuple[int, int]] = {}

    def advised(self, advice: Advice) -> None:
        """Obey this advice from the next frame on."""
        self._advice = advice

    def answered(self, box_ns: int) -> None:
        """Learn nothing."""

    def captured(self, frame: int, captured_ns: int, now_ns: int) -> list[Decision]:
        """Send the frame."""
        sizes = send_sizes((self._camera.width_px, self._camera.height_px), self._advice)
        within_s = 1 / self._camera.rate_hz
        return [Send(frame, *self._largest(sizes, within_s, now_ns, unknown=sizes[0]), 85)]

    def encoded(self, frame: int, size_bytes: int, pixels: int, sent_ns: int) -> None:
        """Note the bytes of a frame that is being sent now."""
        self._weight.add(size_bytes, pixels)
        self._on_the_way[frame] = size_bytes, sent_ns

    def acknowledged(self, frame: int, now_ns: int, base_ns: int) -> list[Decision]:
        """Learn the link's throughput."""
        size_bytes, sent_ns = self._on_the_way.pop(frame)
        self._bandwidth.add(size_bytes, sent_ns, now_ns, base_ns)
        return []

    def _largest(
        self, sizes: Sequence[Size], within_s: float, now_ns: int, *, unknown: Size
    ) -> Size:
        """Return the largest size that the link carries in so many seconds, or else the least.

        Args:
            sizes: in falling order.
            within_s: how long a frame may take to send.
            now_ns: the present instant.
            unknown: the answer before anything is known of the link.
        """
        bps, weight = self._bandwidth.bps(now_ns), self._weight.value()
        if bps is None or weight is None:
            return unknown
        bits_max = bps * within_s
        fitting = (
            size for size in sizes if message_bytes(weight, size[0] * size[1]) * 8 <= bits_max
        )
        return next(fitting, sizes[-1])


class UnscaledSender(ObedientSender):
    """A sender of every frame at the camera's own size, whatever is advised."""

    def captured(self, frame: int, captured_ns: int, now_ns: int) -> list[Decision]:
        """Send the frame."""
        return [Send(frame, self._camera.width_px, self._camera.height_px, 85)]


def make_sender(kind: SenderKind) -> SenderFactory:
    """Return a factory of senders of this kind."""
    if kind is SenderKind.OBEDIENT:
        return ObedientSender
    if kind is SenderKind.UNSCALED:
        return UnscaledSender
    return lambda camera, bandwidth: SenderWindow(
        camera.width_px,
        camera.height_px,
        camera.slo_ns,
        camera.rate_hz,
        last_slo_ns=camera.steps[-1].by_ns if camera.steps else None,
        bandwidth=bandwidth,
    )


class KnownLink:
    """The true mean rate of a link over the next `horizon_ns`."""

    def __init__(self, link: ShapedLink, horizon_ns: int) -> None:
        self._link = link
        self._horizon_ns = horizon_ns

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn nothing: the rate is known."""

    def forget(self, camera: str) -> None:
        """Forget nothing."""

    def throughput_stability(self) -> float | None:
        """Return 1: the rate is never lower."""
        return 1.0

    def newest(self) -> tuple[int, int] | None:
        """Return None: nothing was learned from frames."""
        return None

    def frames(self) -> Sequence[CarriedFrame]:
        """Return no frames: it is based on none."""
        return ()

    def copy_for(self, camera: str) -> "KnownLink":
        """Return itself, as it never changes."""
        return self

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return the mean of the future rate, at least 1."""
        return max(1.0, self._link.mean_bps(now_ns, now_ns + self._horizon_ns))


def knowing(planner: Planner, links: Mapping[CameraId, ShapedLink], horizon_ns: int) -> Planner:
    """Return a planner that knows the rate of each link until the next plan.

    Args:
        planner: the planner.
        links: of the connected cameras; read at each plan.
        horizon_ns: from one plan to the next.
    """

    def plan(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        known = []
        for camera in snapshot.cameras:
            bps = KnownLink(links[camera.camera.id], horizon_ns).bps(snapshot.taken_ns)
            known.append(replace(camera, link=replace(camera.link, bandwidth_bps=bps)))
        return planner(replace(snapshot, cameras=tuple(known)), iterations_max)

    return plan
