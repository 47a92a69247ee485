"""A camera's WebSocket: limits message sizes, and measures transmission times and round trips.

aiohttp reports complete messages only; `rationed_socket` observes each read. Round trips are
measured with pings, which every WebSocket client answers.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable

from aiohttp import WSCloseCode, WSMessage, WSMsgType

from edgebox.link.messages import ERROR_CODES, FRAME_HEADER_BYTES, ErrorMessage
from edgebox.link.receipts import MessageReceipt, MessageReceipts
from edgebox.web.rationed_socket import RationedSocket

_HARD_LIMIT_FACTOR = 2
"""A message this many times above the limit is not read to its end."""
_PINGS_KEPT = 8
_HELLO_BYTES_MAX = 1 << 20
"""Bytes that are kept before the first message is complete: a connection that is no camera's yet
must not make the box hold as much as a frame has. What follows is dropped."""
_PING_BYTES = 8
"""Random bytes of a ping, so that no camera can answer a ping that it has not read."""


class CameraSocket(RationedSocket):
    """A WebSocket that reports messages that are too large; aiohttp alone would only close."""

    def __init__(
        self,
        frame_bytes_max: int,
        clock_ns: Callable[[], int],
        on_echo: Callable[[int, int], None],
        on_flood: Callable[[], None],
        takes_frame: Callable[[], bool] = lambda: True,
    ) -> None:
        """Accept frames of up to `frame_bytes_max` bytes; read more to refuse them with a message.

        Args:
            frame_bytes_max: see above.
            clock_ns: the box's clock.
            on_echo: called with the instants of a ping and its echo.
            on_flood: called once when too many small frames arrived; no more messages come.
            takes_frame: called when a frame begins to arrive; returns whether to read it. Of the
                others only the header is returned, with a receipt that says so.
        """
        largest_bytes = frame_bytes_max + FRAME_HEADER_BYTES
        super().__init__(
            MessageReceipts(wanted=lambda size_bytes: size_bytes > largest_bytes or takes_frame()),
            clock_ns,
            on_flood,
            max_msg_size=_HARD_LIMIT_FACTOR * frame_bytes_max + FRAME_HEADER_BYTES,
            compress=False,
            decode_text=False,
            autoping=False,
        )
        self.receipt: MessageReceipt | None = None
        """Receipt of the last message; None: unknown."""
        self._clock_ns = clock_ns
        self._on_echo = on_echo
        self._pings_sent_ns: dict[bytes, int] = {}
        self._bytes_before_hello: int | None = 0
        """None: the first message has come."""
        self.too_large = ErrorMessage(
            "too_large",
            f"frames may have at most {frame_bytes_max} bytes (limits.frame_bytes_max)",
            True,
        )

    async def next_message(self) -> WSMessage:
        """Return the next message; handle pings and pongs before it."""
        while True:
            message = await self.receive()
            match message.type:
                case WSMsgType.PING:
                    with contextlib.suppress(
                        ConnectionResetError
                    ):  # closing: the next message says so
                        await self.pong(message.data)
                case WSMsgType.PONG:
                    self._echoed(bytes(message.data))
                case WSMsgType.TEXT | WSMsgType.BINARY:
                    self._bytes_before_hello = None
                    self.receipt = self._receipts.take(len(message.data))
                    return message
                case _:
                    return message

    def _read(self, data: bytes) -> bytes:
        """Record a read; return what of it to pass on."""
        if self._bytes_before_hello is not None:
            self._bytes_before_hello += len(data)
            if self._bytes_before_hello > _HELLO_BYTES_MAX:
                return b""
        return super()._read(data)

    def next_ping(self) -> bytes:
        """Return the payload of a ping that is sent now."""
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
        """Close; answer a message that was too large first."""
        if code == WSCloseCode.MESSAGE_TOO_BIG:
            code = ERROR_CODES["too_large"].close_code or code
            with contextlib.suppress(ConnectionError, RuntimeError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.send_frame(self.too_large.encode(), WSMsgType.TEXT)
        return await super().close(code=code, message=message, drain=drain)
