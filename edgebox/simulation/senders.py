"""Decides what simulated cameras send and believe where they do not follow edgebox's own rules.

`ObedientSender` obeys as the client of Jellyfish does (section 6), which has an estimate of its
own (benchmarks/adaptation_jellyfish.py); `KnownLink` is an estimate that is no estimate, the
reference that shows what not knowing costs. Pure: instants come in as arguments.
"""

import random
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
    """What decides, at a camera, which frames are sent and how large."""

    def advised(self, advice: Advice) -> None:
        """Take on new advice."""

    def answered(self, box_ns: int) -> None:
        """Learn how long the box took for a frame."""

    def captured(self, frame: int, captured_ns: int, now_ns: int) -> list[Decision]:
        """Decide about a new frame and those before it."""

    def encoded(self, frame: int, size_bytes: int, pixels: int, sent_ns: int) -> None:
        """Note what a frame weighs that is being sent now."""

    def acknowledged(self, frame: int, now_ns: int, base_ns: int) -> list[Decision]:
        """Note an ack."""


class SenderKind(StrEnum):
    """The senders a scenario may name."""

    WINDOW = "window"
    """edgebox's own, the one of the camera daemon."""
    OBEDIENT = "obedient"
    """The advised size, or the largest that the link sustains, of every frame."""


SenderFactory = Callable[[Camera, LinkEstimate], Sender]


class ObedientSender:
    """Sends every frame, at the advised size or the largest below it that the link sustains.

    It neither predicts whether a frame arrives in time nor waits for acks: what the link does not
    carry queues up in front of it.
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
        bps, weight = self._bandwidth.bps(now_ns), self._weight.value()
        chosen = sizes[0]
        if bps is not None and weight is not None:
            bits_max = bps / self._camera.rate_hz
            fitting = (
                size for size in sizes if message_bytes(weight, size[0] * size[1]) * 8 <= bits_max
            )
            chosen = next(fitting, sizes[-1])
        return [Send(frame, chosen[0], chosen[1], 85)]

    def encoded(self, frame: int, size_bytes: int, pixels: int, sent_ns: int) -> None:
        """Note what a frame weighs that is being sent now."""
        self._weight.add(size_bytes, pixels)
        self._on_the_way[frame] = size_bytes, sent_ns

    def acknowledged(self, frame: int, now_ns: int, base_ns: int) -> list[Decision]:
        """Learn the link's throughput."""
        size_bytes, sent_ns = self._on_the_way.pop(frame)
        self._bandwidth.add(size_bytes, sent_ns, now_ns, base_ns)
        return []


def make_sender(kind: SenderKind) -> SenderFactory:
    """Return what makes a camera's sender."""
    if kind is SenderKind.OBEDIENT:
        return ObedientSender
    return lambda camera, bandwidth: SenderWindow(
        camera.width_px,
        camera.height_px,
        camera.slo_ns,
        camera.rate_hz,
        last_slo_ns=camera.steps[-1].by_ns if camera.steps else None,
        bandwidth=bandwidth,
    )


class KnownLink:
    """What a link will carry over the next `horizon_ns`, as nobody can know it."""

    def __init__(self, link: ShapedLink, horizon_ns: int) -> None:
        self._link = link
        self._horizon_ns = horizon_ns

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn nothing: all is known."""

    def forget(self, camera: str) -> None:
        """Forget nothing."""

    def throughput_stability(self) -> float | None:
        """It is never less."""
        return 1.0

    def newest(self) -> tuple[int, int] | None:
        """Nothing was learnt from frames."""
        return None

    def frames(self) -> Sequence[CarriedFrame]:
        """It rests on none."""
        return ()

    def copy_for(self, camera: str) -> "KnownLink":
        """Return itself, as it never changes."""
        return self

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return the mean rate of what is to come, at least 1."""
        return max(1.0, self._link.mean_bps(now_ns, now_ns + self._horizon_ns))


def knowing(planner: Planner, links: Mapping[CameraId, ShapedLink], horizon_ns: int) -> Planner:
    """Return a planner that knows what each link will carry until the next plan.

    Args:
        planner: what plans.
        links: of the cameras that are connected; looked up at each plan.
        horizon_ns: from one plan to the next.
    """

    def plan(snapshot: PlanningSnapshot, rng: random.Random, iterations_max: int) -> Plan:
        known = []
        for camera in snapshot.cameras:
            bps = KnownLink(links[camera.camera.id], horizon_ns).bps(snapshot.taken_ns)
            known.append(replace(camera, link=replace(camera.link, bandwidth_bps=bps)))
        return planner(replace(snapshot, cameras=tuple(known)), rng, iterations_max)

    return plan
