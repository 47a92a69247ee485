"""Owns a camera's WebSocket: what one message may weigh, and when its bytes were here.

aiohttp tells of a message when it is whole. What its transmission took is seen one layer below, so
a watch is put between the transport and aiohttp's protocol; it notes the instants of reads and
passes everything on. The round trip of pings is noted here, too: every WebSocket answers them,
whatever it knows of our protocol.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from aiohttp.abc import AbstractStreamWriter

from edgebox.link.messages import ERROR_CODES, FRAME_HEADER_BYTES, ErrorMessage
from edgebox.link.receipts import MessageReceipt, MessageReceipts

_HARD_LIMIT_FACTOR = 2
"""A message this many times above the limit is not even read to its end."""
_PINGS_KEPT = 8
_MESSAGES_IN_A_ROW = 16
"""Messages that are there are handed out at once; after so many, others have a turn."""
_PING_BYTES = 8
"""Of chance, so that no camera can answer a ping that it has not read."""


class _Watch(asyncio.Protocol):
    """Asks about each read before it passes it on; everything else it passes on."""

    def __init__(self, protocol: asyncio.Protocol, on_read: Callable[[bytes], bool]) -> None:
        self._protocol = protocol
        self._on_read = on_read

    def data_received(self, data: bytes) -> None:
        if self._on_read(data):
            self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()


class CameraSocket(web.WebSocketResponse):
    """A WebSocket that says what was too large: aiohttp closes on such a message by itself."""

    def __init__(
        self,
        frame_bytes_max: int,
        clock_ns: Callable[[], int],
        on_echo: Callable[[int, int], None],
        on_flood: Callable[[], None],
    ) -> None:
        """Take frames of up to `frame_bytes_max` bytes, and more for a polite refusal.

        Args:
            frame_bytes_max: see above.
            clock_ns: the box's clock.
            on_echo: told when a ping was sent and when it had come back.
            on_flood: told, once, that more small frames came than may; no more messages come.
        """
        super().__init__(
            max_msg_size=_HARD_LIMIT_FACTOR * frame_bytes_max + FRAME_HEADER_BYTES,
            compress=False,
            decode_text=False,
            autoping=False,
        )
        self.receipt: MessageReceipt | None = None
        """Of the message received last; None: not known."""
        self._clock_ns = clock_ns
        self._on_echo = on_echo
        self._on_flood = on_flood
        self._receipts = MessageReceipts()
        self._in_a_row = 0
        """Messages handed out since others had a turn."""
        self._pings_sent_ns: dict[bytes, int] = {}
        self.too_large = ErrorMessage(
            "too_large",
            f"frames may have at most {frame_bytes_max} bytes (limits.frame_bytes_max)",
            True,
        )

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Begin the WebSocket; its reads are watched from here on."""
        transport = request.transport
        if transport is None:
            return await super().prepare(request)
        protocol = transport.get_protocol()
        assert isinstance(protocol, asyncio.Protocol)
        transport.set_protocol(_Watch(protocol, self._read))
        try:
            return await super().prepare(request)
        except BaseException:
            transport.set_protocol(protocol)  # it is no WebSocket, and may serve more requests
            raise

    def _read(self, data: bytes) -> bool:
        """Take in a read; say whether its messages are for us."""
        if self._receipts.exceeded:
            return False
        self._receipts.read(data, self._clock_ns())
        if self._receipts.exceeded:
            self._on_flood()
            return False
        return True

    async def next_message(self) -> WSMessage:
        """Return the next message; pings are answered, and pongs taken in, on the way.

        While messages are there, aiohttp hands them out without giving up the loop.
        """
        while True:
            self._in_a_row += 1
            if self._in_a_row >= _MESSAGES_IN_A_ROW:
                self._in_a_row = 0
                await asyncio.sleep(0)
            message = await self.receive()
            match message.type:
                case WSMsgType.PING:
                    await self.pong(message.data)
                case WSMsgType.PONG:
                    self._echoed(bytes(message.data))
                case WSMsgType.TEXT | WSMsgType.BINARY:
                    self.receipt = self._receipts.take(len(message.data))
                    return message
                case _:
                    return message

    def next_ping(self) -> bytes:
        """Return what a ping shall carry that is sent now."""
        payload = os.urandom(_PING_BYTES)
        self._pings_sent_ns[payload] = self._clock_ns()
        if len(self._pings_sent_ns) > _PINGS_KEPT:
            del self._pings_sent_ns[next(iter(self._pings_sent_ns))]
        return payload

    def _echoed(self, payload: bytes) -> None:
        sent_ns = self._pings_sent_ns.pop(payload, None)
        if sent_ns is not None:
            self._on_echo(sent_ns, self._clock_ns())

    async def close(
        self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True
    ) -> bool:
        """Close; a message that was too large is answered first, in the protocol's words."""
        if code == WSCloseCode.MESSAGE_TOO_BIG:
            code = ERROR_CODES["too_large"].close_code or code
            with contextlib.suppress(ConnectionError, RuntimeError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.send_frame(self.too_large.encode(), WSMsgType.TEXT)
        return await super().close(code=code, message=message, drain=drain)
