"""Sends frames: scales, encodes and paces them in order.

Two stages, so that one frame is encoded while the previous one is being sent. With a shaped link,
a frame reaches the socket at the instant its last byte would have left a link of that rate.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import aiohttp
import numpy as np
from numpy.typing import NDArray

from edgebox.camera.records import HandedOver
from edgebox.link.messages import FrameHeader
from edgebox.link.sender import Send
from edgebox.link.shaping import ShapedLink
from edgebox.media import jpeg

Frame = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Captured:
    """One frame from the source."""

    number: int
    captured_ns: int
    captured_total: int
    """Frames since the hello, this one included."""
    rgb: Frame


class Uplink:
    """Sends frames over one connection.

    Args:
        socket: the connection.
        pool: threads for scaling and encoding.
        link: shapes the rate; None: as fast as the socket allows.
        handed_over: called just before a frame starts to leave.
    """

    def __init__(
        self,
        socket: aiohttp.ClientWebSocketResponse,
        pool: Executor,
        link: ShapedLink | None,
        handed_over: Callable[[HandedOver], None],
    ) -> None:
        self._socket = socket
        self._pool = pool
        self._link = link
        self._handed_over = handed_over
        # The sender's window bounds both queues.
        self._to_encode: asyncio.Queue[tuple[Send, Captured]] = asyncio.Queue()
        self._to_write: asyncio.Queue[tuple[Send, Captured, bytes, int]] = asyncio.Queue()

    def put(self, send: Send, frame: Captured) -> None:
        """Queue a frame with its decision."""
        self._to_encode.put_nowait((send, frame))

    async def encode(self) -> None:
        """Scale and encode, for as long as the connection lives."""
        loop = asyncio.get_running_loop()
        while True:
            send, frame = await self._to_encode.get()
            began_ns = time.monotonic_ns()
            picture = await loop.run_in_executor(self._pool, _encoded, frame.rgb, send)
            took_ns = time.monotonic_ns() - began_ns
            self._to_write.put_nowait((send, frame, picture, took_ns))

    async def write(self) -> None:
        """Pace and write, for as long as the connection lives."""
        while True:
            send, frame, picture, encode_ns = await self._to_write.get()
            height_px, width_px = frame.rgb.shape[:2]
            sent_ns = time.monotonic_ns()
            header = FrameHeader(
                frame=send.frame,
                captured_ns=frame.captured_ns,
                sent_ns=sent_ns,
                width_px=width_px,
                height_px=height_px,
                captured_total=frame.captured_total,
            )
            message = header.encode() + picture
            size = len(message)
            self._handed_over(
                HandedOver(send.frame, send.width_px, send.height_px, size, sent_ns, encode_ns)
            )
            if self._link is not None:
                leaves_ns = self._link.leaves_ns(sent_ns, size)
                await asyncio.sleep(max(0, leaves_ns - time.monotonic_ns()) / 1e9)
            await self._socket.send_bytes(message)


def _encoded(rgb: Frame, send: Send) -> bytes:
    return jpeg.encode(jpeg.resize_rgb(rgb, send.width_px, send.height_px), send.quality)
