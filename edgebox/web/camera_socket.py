"""Owns the bound on what one message of a camera may weigh, and what it is told beyond it."""

import asyncio
import contextlib

from aiohttp import WSCloseCode, WSMsgType, web

from edgebox.link.messages import ERROR_CODES, FRAME_HEADER_BYTES, ErrorMessage

_HARD_LIMIT_FACTOR = 2
"""A message this many times above the limit is not even read to its end."""


class CameraSocket(web.WebSocketResponse):
    """A WebSocket that says what was too large: aiohttp closes on such a message by itself."""

    def __init__(self, frame_bytes_max: int) -> None:
        """Take frames of up to `frame_bytes_max` bytes, and more for a polite refusal."""
        super().__init__(
            max_msg_size=_HARD_LIMIT_FACTOR * frame_bytes_max + FRAME_HEADER_BYTES,
            compress=False,
            decode_text=False,
        )
        self.too_large = ErrorMessage(
            "too_large",
            f"frames may have at most {frame_bytes_max} bytes (limits.frame_bytes_max)",
            True,
        )

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
