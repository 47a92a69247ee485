"""Views a camera of a running box: its frames as the page receives them. http-api.md.

Limits: a viewer only; frames are as large as the camera sends them over its link at that moment.
"""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from edgebox.domain.errors import InvalidInputError

_CONNECT_S = 10.0
_FRAME_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Viewed:
    """One frame of a camera."""

    jpeg: bytes
    width_px: int
    """Width of the camera's own picture; the JPEG may be smaller."""
    height_px: int


@asynccontextmanager
async def watched_camera(
    box: str, camera: str, rate_hz: float
) -> AsyncIterator[AsyncIterator[Viewed]]:
    """Watch one camera of a box.

    Args:
        box: the box's address, http://host:port.
        camera: its name.
        rate_hz: largest frame rate.

    Raises:
        InvalidInputError: no box answers there, or it has no such camera connected.
    """
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        url = f"{box.rstrip('/')}/v1/ui"
        try:
            socket = await session.ws_connect(url, max_msg_size=_FRAME_MAX_BYTES)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise InvalidInputError(f"{box}: no box answers there: {error}") from None
        async with socket:
            request = {"type": "watch", "cameras": [camera], "max_hz": rate_hz}
            await socket.send_str(orjson.dumps(request).decode())
            yield _frames(socket, box, camera)


async def _frames(
    socket: aiohttp.ClientWebSocketResponse, box: str, camera: str
) -> AsyncIterator[Viewed]:
    """Yield frames until the box ends the connection."""
    async for message in socket:
        if message.type is aiohttp.WSMsgType.TEXT:
            _insist_on_camera(orjson.loads(message.data), box, camera)
        elif message.type is aiohttp.WSMsgType.BINARY:
            (length,) = struct.unpack_from("<I", message.data)
            header = orjson.loads(message.data[4 : 4 + length])
            if header["camera"] == camera:  # otherwise sent before the request arrived
                yield Viewed(message.data[4 + length :], header["width_px"], header["height_px"])


def _insist_on_camera(document: dict[str, Any], box: str, camera: str) -> None:
    if document.get("type") != "state":
        return
    connected = [each["id"] for each in document["cameras"] if each["connected"]]
    if camera not in connected:
        raise InvalidInputError(
            f"{box}: no camera {camera!r} is connected there "
            f"(connected: {', '.join(connected) or 'none'})"
        )


async def next_within(frames: AsyncIterator[Viewed], seconds: float) -> Viewed | None:
    """Return the next frame; None: none came in time, or the box disconnected."""
    try:
        async with asyncio.timeout(seconds):
            return await anext(frames, None)
    except TimeoutError:
        return None
