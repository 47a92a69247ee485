"""A small box for the daemon's tests: speaks the protocol over a real WebSocket, runs no model."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import DropReason, Outcome
from edgebox.link.messages import (
    Ack,
    Bye,
    CameraMessage,
    DropNotice,
    ErrorMessage,
    FrameHeader,
    Hello,
    Ping,
    Pong,
    Report,
    Result,
    Timing,
    Welcome,
    WireDetection,
    decode_from_camera,
)
from edgebox.media import jpeg


def advice(width_px: int = 256, rate_hz: float = 100.0, bandwidth_bps: int = 0) -> Advice:
    """Return advice for a 16:9 camera."""
    name = VariantName(f"street-{width_px}")
    height_px = width_px * 9 // 16
    return Advice(name, width_px, height_px, rate_hz, 80, bandwidth_bps, "as the test says")


@dataclass
class Box:
    """Answers every frame as `answer` says: "result", "drop", "ignore" or "late"."""

    answer: Callable[[FrameHeader], str] = lambda header: "result"
    ack_after_s: float = 0.0
    result_after_s: float = 0.0
    mute_connections: int = 0
    """So many connections hear a welcome and then nothing, as over a link that went away."""
    refuse: ErrorMessage | None = None
    refusals_left: int = 10**9
    advice: Advice = field(default_factory=advice)
    port: int = 0
    hellos: list[Hello] = field(default_factory=list)
    headers: list[FrameHeader] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    arrivals_ns: list[int] = field(default_factory=list)
    message_bytes: list[int] = field(default_factory=list)
    received: list[CameraMessage] = field(default_factory=list)
    first_frame: asyncio.Event = field(default_factory=asyncio.Event)
    unacknowledged: int = 0
    unacknowledged_most: int = 0
    late_after_s: float = 2.2
    _runner: web.AppRunner | None = None
    _sockets: set[web.WebSocketResponse] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "Box":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/v1/stream", self._stream)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self, bye: str | None = None) -> None:
        """Stop as a box that is told to (`bye`) or as one that crashes."""
        for socket in list(self._sockets):
            if bye is not None:
                await socket.send_bytes(b"")  # binary messages from the box mean nothing
                await self.say(socket, Bye(bye))
            await socket.close()
        for task in self._tasks:
            task.cancel()
        assert self._runner is not None
        await self._runner.cleanup()

    async def tell(self, text: str) -> None:
        """Send a raw text to every camera."""
        for socket in list(self._sockets):
            await socket.send_str(text)

    async def say(
        self,
        socket: web.WebSocketResponse,
        message: Ack | Bye | DropNotice | ErrorMessage | Ping | Result | Welcome,
    ) -> None:
        if not socket.closed:
            await socket.send_frame(message.encode(), WSMsgType.TEXT)

    async def _stream(self, request: web.Request) -> web.WebSocketResponse:
        mute = len(self.hellos) < self.mute_connections
        socket = web.WebSocketResponse(autoping=not mute)
        await socket.prepare(request)
        hello = decode_from_camera(await socket.receive_str())
        assert isinstance(hello, Hello)
        self.hellos.append(hello)
        if self.refuse is not None and self.refusals_left > 0:
            self.refusals_left -= 1
            await self.say(socket, self.refuse)
            await socket.close(code=4003)
            return socket
        self._sockets.add(socket)
        self.unacknowledged = 0
        welcome = Welcome(
            1,
            hello.camera,
            "test-box",
            time.monotonic_ns(),
            2**23,
            2,
            "street",
            ("car",),
            self.advice,
        )
        await self.say(socket, welcome)
        if mute:
            async for _ in socket:
                self.first_frame.set()
            return socket
        await self.say(socket, Ping(1, time.monotonic_ns()))
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                self._frame(socket, message.data)
            elif message.type is WSMsgType.TEXT:
                self.received.append(decode_from_camera(message.data))
        self._sockets.discard(socket)
        return socket

    def _frame(self, socket: web.WebSocketResponse, data: bytes) -> None:
        header, picture = FrameHeader.decode(data)
        self.headers.append(header)
        self.first_frame.set()
        self.sizes.append(jpeg.probe(picture))
        self.arrivals_ns.append(time.monotonic_ns())
        self.message_bytes.append(len(data))
        self.unacknowledged += 1
        self.unacknowledged_most = max(self.unacknowledged_most, self.unacknowledged)
        task = asyncio.ensure_future(self._answer(socket, header))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, socket: web.WebSocketResponse, header: FrameHeader) -> None:
        if self.ack_after_s:
            await asyncio.sleep(self.ack_after_s)
        self.unacknowledged -= 1
        kind = self.answer(header)
        await self.say(socket, Ack(header.frame, time.monotonic_ns(), kind != "drop", self.advice))
        if kind == "drop":
            drop = DropNotice(header.frame, DropReason.QUEUE, "too much to do", self.advice)
            await self.say(socket, drop)
        if kind in ("drop", "ignore"):
            return
        delay: Awaitable[None] = asyncio.sleep(
            self.result_after_s if kind == "result" else self.late_after_s
        )
        await delay
        timing = Timing(5.0, 1.0, 2.0, 0.5, 8.5, 1)
        seen = (WireDetection("car", 0.9, (1.0, 2.0, 30.0, 40.0)),)
        result = Result(header.frame, Outcome.ON_TIME, "street-256", seen, timing, self.advice)
        await self.say(socket, result)

    def reports(self) -> list[Report]:
        return [message for message in self.received if isinstance(message, Report)]

    def pongs(self) -> list[Pong]:
        return [message for message in self.received if isinstance(message, Pong)]
