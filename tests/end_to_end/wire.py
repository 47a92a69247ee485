"""A camera that says exactly what a test wants said, on a real WebSocket."""

import asyncio
import base64
import os
import struct
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import orjson

from edgebox.app.composition import App
from edgebox.link.messages import (
    Ack,
    BoxMessage,
    DropNotice,
    ErrorMessage,
    FrameHeader,
    Hello,
    Ping,
    Pong,
    Report,
    Result,
    Welcome,
    decode_from_box,
)
from edgebox.media.jpeg import encode
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import PICTURE, SIZE_PX, SLO_MS

JPEG = encode(PICTURE)
Message = TypeVar("Message")


def jpeg_claiming(width_px: int, height_px: int) -> bytes:
    """Return a JPEG whose header promises a size, and little else."""
    frame = height_px.to_bytes(2, "big") + width_px.to_bytes(2, "big")
    sof = b"\xff\xc0\x00\x11\x08" + frame + b"\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"
    sos = b"\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00"
    return b"\xff\xd8" + sof + sos + b"\xff\xd9"


def upgrade_request(app: App) -> bytes:
    """Return the request that asks for a camera's WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n".encode()
    )


def websocket_frame(opcode: int, payload: bytes, promised: int | None = None) -> bytes:
    """Return one WebSocket frame that promises this many bytes, masked with zeros."""
    length = len(payload) if promised is None else promised
    return struct.pack(">BBQI", 0x80 | opcode, 0x80 | 127, length, 0) + payload


class WireCamera:
    """One connection; answers pings, keeps everything it hears."""

    def __init__(self, app: App, name: str = "gate", **fields: Any) -> None:
        """Say hello as `name` with these further fields of the hello, once entered."""
        self.hello = Hello(name, *SIZE_PX, **{"slo_ms": SLO_MS, "rate_hz": 20.0, **fields})
        self.received: list[BoxMessage] = []
        self.close_code: int | None = None
        self.clock_ns: Callable[[], int] = time.monotonic_ns
        self.captured = 0
        self.answers_pings = True
        self._url = f"{app.url}/v1/stream"
        self._news = asyncio.Event()
        self._client = aiohttp.ClientSession()
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.connect()
        await self.text(self.hello.encode())
        await self.wait_for(Welcome)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def socket(self) -> aiohttp.ClientWebSocketResponse:
        assert self._socket is not None, "not connected"
        return self._socket

    async def connect(self) -> None:
        """Open the WebSocket and say nothing."""
        self._socket = await self._client.ws_connect(self._url, max_msg_size=0)
        self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        """Close as a well-behaved program does; harmless twice."""
        if self._socket is not None:
            await self._socket.close()
        if self._reading is not None:
            await self._reading
        await self._client.close()

    async def _read(self) -> None:
        socket = self.socket
        while True:
            message = await socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                break
            received = decode_from_box(message.data)
            self.received.append(received)
            if isinstance(received, Ping) and self.answers_pings and not socket.closed:
                await self.text(Pong(received.id, self.clock_ns()).encode())
            self._news.set()
        self.close_code = socket.close_code
        self._news.set()

    def pings(self) -> list[Ping]:
        """Return the pings that were received."""
        return [message for message in self.received if isinstance(message, Ping)]

    async def text(self, text: bytes | str) -> None:
        """Send one text message."""
        await self.socket.send_str(text if isinstance(text, str) else text.decode())

    async def json(self, **fields: Any) -> None:
        """Send one message of these fields."""
        await self.text(orjson.dumps(fields))

    async def binary(self, data: bytes) -> None:
        """Send one binary message as it is."""
        await self.socket.send_bytes(data)

    def header(self, **changed: Any) -> bytes:
        """Return the header of the next frame, captured and sent now."""
        self.captured += 1
        now_ns = self.clock_ns()
        fields: dict[str, Any] = {
            "frame": self.captured,
            "captured_ns": now_ns,
            "sent_ns": now_ns,
            "width_px": SIZE_PX[0],
            "height_px": SIZE_PX[1],
            "captured_total": self.captured,
        }
        return FrameHeader(**{**fields, **changed}).encode()

    async def frame(self, jpeg: bytes = JPEG, **changed: Any) -> int:
        """Send a frame; return its number."""
        await self.binary(self.header(**changed) + jpeg)
        return self.captured

    async def report(self, **counts: Any) -> None:
        """Send a report."""
        await self.text(Report(**counts).encode())

    async def wait_for(
        self,
        kind: type[Message],
        wanted: Callable[[Message], bool] = lambda message: True,
    ) -> Message:
        """Return the first message of a kind that was received, or is received soon."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for message in self.received:
                    if isinstance(message, kind) and wanted(message):
                        return message
                self._news.clear()
                await self._news.wait()

    async def result(self, frame: int) -> Result:
        """Return the result of a frame."""
        return await self.wait_for(Result, lambda message: message.frame == frame)

    async def answered(self, jpeg: bytes = JPEG) -> Result:
        """Return the result of a picture, which is sent again when a busy machine drops it."""
        while True:
            ended = await self._ended(await self.frame(jpeg))
            if isinstance(ended, Result):
                return ended

    async def _ended(self, frame: int) -> object:
        return await self.wait_for(
            object,
            lambda message: isinstance(message, Result | DropNotice) and message.frame == frame,
        )

    async def drop(self, frame: int) -> DropNotice:
        """Return the drop of a frame, which must come right after its refusing ack."""
        notice = await self.wait_for(DropNotice, lambda message: message.frame == frame)
        ack = await self.wait_for(Ack, lambda message: message.frame == frame)
        assert self.received.index(ack) < self.received.index(notice)
        return notice

    async def error(self, code: str) -> ErrorMessage:
        """Return the error message with this code."""
        return await self.wait_for(ErrorMessage, lambda message: message.code == code)

    async def ended(self, patience_s: float = PATIENCE_S) -> int | None:
        """Wait for the connection's end; return its close code."""
        assert self._reading is not None
        async with asyncio.timeout(patience_s):
            await asyncio.shield(self._reading)
        return self.close_code
