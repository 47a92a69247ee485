"""Plays the cameras of some applications against a running box, over real WebSockets.

What is sent when is a plan made beforehand from a seed, so that every policy is offered the same;
the cameras pay no heed to advice. Each frame is judged where its answer arrives.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Literal

import aiohttp

from benchmarks.dynamic_workload import Application, Workload
from edgebox.domain.cascades import CascadeOutcome
from edgebox.link.messages import (
    Bye,
    DropNotice,
    ErrorMessage,
    FrameHeader,
    Hello,
    Ping,
    Pong,
    Result,
    Welcome,
    decode_from_box,
)

CAMERAS_PER_APP = 3
CLOCKS_S = 0.6
"""From the welcome on, the box asks five times for a camera's clock."""
_PATIENCE_S = 10.0
"""After its deadline, for a frame's answer to come; none ever takes as long."""

Socket = aiohttp.ClientWebSocketResponse[Literal[False]]
"""One that leaves texts as bytes."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One frame of a plan."""

    at_s: float
    """Instant of its capture, from the plan's beginning."""
    app: str
    camera: int
    """Among those of its application."""
    picture: int
    """Its number."""
    counts: bool
    """False: it only warms up."""


@dataclass(slots=True)
class Ends:
    """How the frames of one application ended, as its cameras saw it."""

    sent: int = 0
    on_time: int = 0
    """Answered at the camera by its deadline."""
    late: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Answers on time by what their cascade did; empty: there is none."""
    on_time_by_box: int = 0
    """What the box took for on time; it must leave room for the way back."""

    def add(self, other: "Ends") -> None:
        """Add another application's, or another round's."""
        self.sent += other.sent
        self.on_time += other.on_time
        self.late += other.late
        self.dropped.update(other.dropped)
        self.outcomes.update(other.outcomes)
        self.on_time_by_box += other.on_time_by_box

    @property
    def finish_rate(self) -> float:
        """The share on time of all that was sent."""
        return self.on_time / max(1, self.sent)

    @property
    def whole_rate(self) -> float:
        """The share on time, without answers whose second model came too late."""
        missed = self.outcomes[CascadeOutcome.MISSED.value]
        return (self.on_time - missed) / max(1, self.sent)


def make_plan(
    applications: Sequence[Application], rate_hz: float, warm_s: float, counted_s: float, seed: str
) -> list[Arrival]:
    """Return Poisson arrivals: first some that only warm up, then those that count."""
    rng = random.Random(seed)
    shares = [of.share for of in applications]
    plan: list[Arrival] = []
    for at_s in _poisson(rate_hz, warm_s + counted_s, rng):
        of = rng.choices(applications, shares)[0]
        number, camera = of.draw(rng), rng.randrange(CAMERAS_PER_APP)
        plan.append(Arrival(at_s, of.name, camera, number, at_s >= warm_s))
    return plan


def _poisson(rate_hz: float, until_s: float, rng: random.Random) -> Iterator[float]:
    at_s = rng.expovariate(rate_hz)
    while at_s < until_s:
        yield at_s
        at_s += rng.expovariate(rate_hz)


@dataclass(frozen=True, slots=True)
class _Sent:
    captured_ns: int
    counts: bool


class _Camera:
    """One connection."""

    def __init__(self, socket: Socket, size_px: tuple[int, int], slo_ns: int, ends: Ends) -> None:
        self._socket = socket
        self._size_px = size_px
        self._slo_ns = slo_ns
        self._ends = ends
        self._sent: dict[int, _Sent] = {}
        self._captured = 0
        self.welcome = asyncio.Event()
        self.answered = asyncio.Event()
        """Set while no frame waits for its answer."""
        self.answered.set()

    async def send(self, jpeg: bytes, counts: bool) -> None:
        """Capture a frame now, and send it."""
        self._captured += 1
        number = self._captured
        now_ns = time.monotonic_ns()
        self._sent[number] = _Sent(now_ns, counts)
        self._ends.sent += counts
        self.answered.clear()
        header = FrameHeader(number, now_ns, now_ns, *self._size_px, number)
        await self._socket.send_bytes(header.encode() + jpeg)

    async def listen(self) -> None:
        """Take in what the box says until the connection closes."""
        async for message in self._socket:
            await self._heard(message.data, time.monotonic_ns())

    async def _heard(self, text: bytes, now_ns: int) -> None:
        match decode_from_box(text):
            case Welcome():
                self.welcome.set()
            case Ping(id=number):
                await self._socket.send_str(Pong(number, now_ns).encode().decode())
            case Result(frame=frame, outcome=outcome, cascade=cascade):
                sent = self._ended(frame)
                if sent.counts:
                    in_time = now_ns <= sent.captured_ns + self._slo_ns
                    self._ends.on_time += in_time
                    self._ends.late += not in_time
                    self._ends.on_time_by_box += outcome == "on_time"
                    if cascade is not None and in_time:
                        self._ends.outcomes[cascade.value] += 1
            case DropNotice(frame=frame, reason=reason):
                self._ends.dropped[reason.value] += self._ended(frame).counts
            case ErrorMessage(message=why):
                raise RuntimeError(f"the box says: {why}")

    def _ended(self, frame: int) -> _Sent:
        sent = self._sent.pop(frame)
        if not self._sent:
            self.answered.set()
        return sent


async def play(
    url: str, plan: Sequence[Arrival], slo_s: float, workload: Workload
) -> dict[str, Ends]:
    """Send a plan's frames to the box at `url`; return how they ended, by application.

    Args:
        url: its stream, "ws://...".
        plan: in order of the instants.
        slo_s: every frame's deadline.
        workload: what the plan was made of.

    Raises:
        TimeoutError: the box left a frame unanswered.
        ExceptionGroup: it refused a camera, or broke the connection.
    """
    ends = {of.name: Ends() for of in workload.applications}
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        cameras: dict[tuple[str, int], _Camera] = {}
        sockets: list[Socket] = []
        for app, of_app in ends.items():
            for number in range(CAMERAS_PER_APP):
                socket = await session.ws_connect(url, max_msg_size=0, decode_text=False)
                sockets.append(socket)
                camera = _Camera(socket, workload.size_px, round(slo_s * 1e9), of_app)
                cameras[app, number] = camera
                tasks.create_task(camera.listen())
                await socket.send_str(_hello(app, number, slo_s, workload))
                await asyncio.wait_for(camera.welcome.wait(), _PATIENCE_S)
        await asyncio.sleep(CLOCKS_S)
        await _send(plan, cameras, workload.picture)
        async with asyncio.timeout(slo_s + _PATIENCE_S):
            for camera in cameras.values():
                await camera.answered.wait()
        for socket in sockets:
            await socket.send_str(Bye("the plan is done").encode().decode())
            await socket.close()
    return ends


async def _send(
    plan: Sequence[Arrival],
    cameras: dict[tuple[str, int], _Camera],
    picture: Callable[[int], bytes],
) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    for arrival in plan:
        wait_s = began_s + arrival.at_s - loop.time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        await cameras[arrival.app, arrival.camera].send(picture(arrival.picture), arrival.counts)


def _hello(app: str, number: int, slo_s: float, workload: Workload) -> str:
    width_px, height_px = workload.size_px
    hello = Hello(
        camera=f"{app}-{number}",
        width_px=width_px,
        height_px=height_px,
        slo_ms=slo_s * 1e3,
        app=app,
        agent="benchmark",
        **workload.hello,
    )
    return hello.encode().decode()
