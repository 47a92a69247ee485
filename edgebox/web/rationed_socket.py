"""WebSockets with a limit on small messages.

A protocol between the transport and aiohttp's protocol observes every read: it records the instant,
counts small frames, leaves out messages that are not wanted (`link.receipts`), and passes the rest
on.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from aiohttp import WSCloseCode, WSMessage, web
from aiohttp.abc import AbstractStreamWriter

from edgebox.link.receipts import SMALL_FRAME_BYTES, SMALL_FRAMES_PER_S, MessageReceipts

_MESSAGES_IN_A_ROW = 16
"""Buffered messages that are returned in a row before other tasks run."""


class _Watch(asyncio.Protocol):
    """Passes on what is left of each read; passes on everything else as it is."""

    def __init__(self, protocol: asyncio.Protocol, on_read: Callable[[bytes], bytes]) -> None:
        self._protocol = protocol
        self._on_read = on_read

    def data_received(self, data: bytes) -> None:
        if passed := self._on_read(data):
            self._protocol.data_received(passed)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()


class RationedSocket(web.WebSocketResponse):
    """A WebSocket whose small frames are rationed."""

    def __init__(
        self,
        receipts: MessageReceipts,
        clock_ns: Callable[[], int],
        on_flood: Callable[[], None],
        **how: Any,
    ) -> None:
        """Ration from the beginning.

        Args:
            receipts: records each read.
            clock_ns: a monotonic clock.
            on_flood: called once when too many small frames arrived; no more messages come.
            how: arguments of aiohttp's WebSockets.
        """
        super().__init__(**how)
        self._receipts = receipts
        self._clock_ns = clock_ns
        self._on_flood = on_flood
        self._in_a_row = 0
        """Messages returned since other tasks could run."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Begin the WebSocket and observe its reads from now on."""
        transport = request.transport
        if transport is None or self.prepared:  # aiohttp asks again when the handler has ended
            return await super().prepare(request)
        protocol = transport.get_protocol()
        assert isinstance(protocol, asyncio.Protocol)
        transport.set_protocol(_Watch(protocol, self._read))
        try:
            return await super().prepare(request)
        except BaseException:
            transport.set_protocol(
                protocol
            )  # not a WebSocket; the connection may serve more requests
            raise

    async def receive(self, timeout: float | None = None) -> WSMessage:  # noqa: ASYNC109 - aiohttp's
        """Return the next message.

        aiohttp returns buffered messages without yielding to the loop.
        """
        self._in_a_row += 1
        if self._in_a_row >= _MESSAGES_IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(0)
        return await super().receive(timeout)

    def _read(self, data: bytes) -> bytes:
        """Record a read; return what of it to pass on."""
        if self._receipts.exceeded:
            return b""
        passed = self._receipts.read(data, self._clock_ns())
        if self._receipts.exceeded:
            self._on_flood()
            return b""
        return passed


class ClientSocket(RationedSocket):
    """A program's or a page's WebSocket; it is closed when the limit is exceeded."""

    def __init__(self, **how: Any) -> None:
        """Take the arguments of aiohttp's WebSockets."""
        super().__init__(MessageReceipts(kept=False), time.monotonic_ns, self._flooded, **how)
        self._closing_task: asyncio.Task[bool] | None = None

    def _flooded(self) -> None:
        why = (
            f"more than {SMALL_FRAMES_PER_S} WebSocket frames a second that carry less than "
            f"{SMALL_FRAME_BYTES} bytes"
        )
        self._closing_task = asyncio.create_task(
            self.close(code=WSCloseCode.POLICY_VIOLATION, message=why.encode(), drain=False)
        )
