"""Owns a camera's WebSocket: what one message may weigh, and when its bytes were here.

aiohttp tells of a message when it is whole; `rationed_socket` sees what its transmission took. The
round trip of pings is noted here, too: every WebSocket answers them,
whatever it knows of our protocol.
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
"""A message this many times above the limit is not even read to its end."""
_PINGS_KEPT = 8
_PING_BYTES = 8
"""Of chance, so that no camera can answer a ping that it has not read."""


class CameraSocket(RationedSocket):
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
            MessageReceipts(),
            clock_ns,
            on_flood,
            max_msg_size=_HARD_LIMIT_FACTOR * frame_bytes_max + FRAME_HEADER_BYTES,
            compress=False,
            decode_text=False,
            autoping=False,
        )
        self.receipt: MessageReceipt | None = None
        """Of the message received last; None: not known."""
        self._clock_ns = clock_ns
        self._on_echo = on_echo
        self._pings_sent_ns: dict[bytes, int] = {}
        self.too_large = ErrorMessage(
            "too_large",
            f"frames may have at most {frame_bytes_max} bytes (limits.frame_bytes_max)",
            True,
        )

    async def next_message(self) -> WSMessage:
        """Return the next message; pings are answered, and pongs taken in, on the way."""
        while True:
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
