"""The cameras of benchmarks/ingest.py: one process, real WebSockets, as cheap as it can be.

Reads one line of JSON (`Order`) from stdin, connects, and sends until it is stopped: the line
"begin" starts a measurement, "end" ends it and prints one line of JSON with the latencies. Unless
told to, it obeys no advice: it is there to be a load.
"""

import asyncio
import base64
import json
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import Literal

import aiohttp
import orjson
import uvloop

from edgebox.link.messages import FrameHeader, Hello, Pong

_SLO_MS = 5_000.0

Socket = aiohttp.ClientWebSocketResponse[Literal[False]]
"""One that leaves texts as bytes."""


@dataclass(frozen=True)
class Order:
    """What the parent wants sent."""

    port: int
    cameras: int
    jpeg: str
    """Base64."""
    width_px: int
    height_px: int
    frames_hz: float
    """Rate of all cameras together; 0: the next as soon as one was answered."""
    window: int
    """Frames a camera may have at the box, unanswered; if it obeys, unacknowledged, as a camera of
    edgebox counts them."""
    slo_ms: float = _SLO_MS
    prefix: str = "camera-"
    """Of the cameras' names."""
    obey: bool = False
    """Whether to send no more often than advised."""
    singles: int = 0
    """Single pictures that are asked for at once, all the time."""
    viewers: int = 0
    """Pages that are open, too."""
    sizes: dict[str, str] = field(default_factory=dict)
    """The picture in other sizes ("320x180"), base64: one that obeys sends the advised size."""


@dataclass
class Latencies:
    """What one measurement saw, in ns."""

    sent: int = 0
    skipped: int = 0
    """Frames whose turn came while the window was full."""
    dropped: int = 0
    ack_ns: list[int] = field(default_factory=list)
    """From handing a frame to the socket to its ack."""
    answer_ns: list[int] = field(default_factory=list)
    on_time: int = 0
    shown: int = 0
    """Frames that open pages were sent."""
    answered: int = 0
    """Single pictures that were answered."""
    refused: int = 0
    """Single pictures that were not."""
    variants: dict[str, int] = field(default_factory=dict)
    """Answers on time, by variant."""
    behind_ns: list[int] = field(default_factory=list)
    """How late this process was with each frame that had a time."""
    welcome_ns: list[int] = field(default_factory=list)
    """From the start of the measurement, or of the process, to each camera's welcome."""
    began_ns: int = field(default_factory=time.monotonic_ns)
    cpu_s: float = 0.0
    """What this process has used meanwhile."""

    def clear(self) -> None:
        """Begin again, in place: every camera holds on to this object."""
        self.sent = self.skipped = self.dropped = self.shown = self.on_time = 0
        self.answered = self.refused = 0
        for kept in (self.ack_ns, self.answer_ns, self.variants, self.behind_ns):
            kept.clear()


Pictures = dict[tuple[int, int], bytes]
"""JPEGs by width and height."""


def pictures_of(order: Order) -> Pictures:
    """Return the picture in all its sizes."""
    pictures = {(order.width_px, order.height_px): base64.b64decode(order.jpeg)}
    for size, jpeg in order.sizes.items():
        width_px, _, height_px = size.partition("x")
        pictures[int(width_px), int(height_px)] = base64.b64decode(jpeg)
    return pictures


class Camera:
    """One connection that sends the same picture again and again."""

    def __init__(self, order: Order, number: int, seen: Latencies, pictures: Pictures) -> None:
        self._order = order
        self._number = number
        self._seen = seen
        self._pictures = pictures
        self._size_px = order.width_px, order.height_px
        self._sent_ns: dict[int, int] = {}
        self._in_window = 0
        self._room = asyncio.Event()
        self._period_s = order.cameras / order.frames_hz if order.frames_hz else 0.0

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Say hello and send until cancelled."""
        order = self._order
        url = f"http://127.0.0.1:{order.port}/v1/stream"
        async with session.ws_connect(url, max_msg_size=0, decode_text=False) as socket:
            rate_hz = min(100.0, order.frames_hz / order.cameras or 100.0)
            hello = Hello(
                camera=f"{order.prefix}{self._number}",
                width_px=order.width_px,
                height_px=order.height_px,
                slo_ms=order.slo_ms,
                rate_hz=rate_hz,
                agent="benchmark",
            )
            await socket.send_str(hello.encode().decode())
            sender = asyncio.create_task(self._send(socket))
            try:
                async for message in socket:
                    await self._heard(socket, message.data)
            finally:
                sender.cancel()
        raise RuntimeError(f"the box closed the connection ({socket.close_code})")

    async def _heard(self, socket: Socket, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        message = orjson.loads(data)
        if self._order.obey and "advice" in message:
            wanted_s = self._order.cameras / self._order.frames_hz
            advice = message["advice"]
            self._period_s = max(wanted_s, 1 / advice["rate_hz"])
            size_px = advice["width_px"], advice["height_px"]
            if size_px in self._pictures:
                self._size_px = size_px
        match message["type"]:
            case "ack":
                self._seen.ack_ns.append(now_ns - self._sent_ns[message["frame"]])
                self._left_window(obeys=True)
            case "result":
                self._seen.answer_ns.append(now_ns - self._sent_ns.pop(message["frame"]))
                if message["outcome"] == "on_time":
                    self._seen.on_time += 1
                    variant = message["variant"]
                    self._seen.variants[variant] = self._seen.variants.get(variant, 0) + 1
                self._left_window(obeys=False)
            case "drop":
                self._seen.dropped += 1
                del self._sent_ns[message["frame"]]
                self._left_window(obeys=False)
            case "ping":
                await socket.send_str(Pong(message["id"], now_ns).encode().decode())
            case "welcome":
                self._seen.welcome_ns.append(now_ns - self._seen.began_ns)
            case "error":
                raise RuntimeError(message["message"])

    def _left_window(self, *, obeys: bool) -> None:
        """Make room for a frame: after an ack if this camera obeys, else after an answer."""
        if self._order.obey == obeys:
            self._in_window -= 1
            self._room.set()

    async def _send(self, socket: Socket) -> None:
        order = self._order
        loop = asyncio.get_running_loop()
        due_s = loop.time() + self._period_s * self._number / order.cameras
        number = 0
        while True:
            if self._period_s:
                await asyncio.sleep(due_s - loop.time())
                self._seen.behind_ns.append(max(0, round((loop.time() - due_s) * 1e9)))
                due_s += self._period_s
                if self._in_window >= order.window:
                    self._seen.skipped += 1
                    continue
            while self._in_window >= order.window:
                self._room.clear()
                await self._room.wait()
            number += 1
            now_ns = time.monotonic_ns()
            self._sent_ns[number] = now_ns
            self._in_window += 1
            self._seen.sent += 1
            header = FrameHeader(number, now_ns, now_ns, *self._size_px, number)
            await socket.send_bytes(header.encode() + self._pictures[self._size_px])


async def _ask(session: aiohttp.ClientSession, order: Order, seen: Latencies) -> None:
    """Ask for a picture's objects again and again."""
    url, jpeg = f"http://127.0.0.1:{order.port}/v1/infer", base64.b64decode(order.jpeg)
    while True:
        async with session.post(url, data=jpeg, params={"deadline_ms": order.slo_ms}) as answer:
            await answer.read()
            if answer.status == 200:
                seen.answered += 1
            else:
                seen.refused += 1


async def _watch(session: aiohttp.ClientSession, port: int, seen: Latencies) -> None:
    """Read what a page would read: the overview asks for nothing, and acknowledges nothing."""
    async with session.ws_connect(f"http://127.0.0.1:{port}/v1/ui", max_msg_size=0) as socket:
        async for message in socket:
            seen.shown += message.type is aiohttp.WSMsgType.BINARY


async def main() -> None:
    """Do as the lines on stdin say."""
    order = Order(**json.loads(sys.stdin.readline()))
    seen = Latencies()
    async with AsyncExitStack() as stack:
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        pictures = pictures_of(order)
        running = [
            tasks.create_task(Camera(order, number, seen, pictures).run(session))
            for number in range(order.cameras)
        ]
        running += [tasks.create_task(_ask(session, order, seen)) for _ in range(order.singles)]
        running += [
            tasks.create_task(_watch(session, order.port, seen)) for _ in range(order.viewers)
        ]
        while (await asyncio.to_thread(sys.stdin.readline)).strip() == "begin":
            seen.clear()
            began_s = time.process_time()
            await asyncio.to_thread(sys.stdin.readline)
            seen.cpu_s = time.process_time() - began_s
            print(json.dumps(asdict(seen)), flush=True)
        for task in running:
            task.cancel()


if __name__ == "__main__":
    uvloop.run(main())
