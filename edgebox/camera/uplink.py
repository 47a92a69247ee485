"""Sends frames: scales, encodes and paces them in order.

Two stages, so that one frame is encoded while the previous one is being sent. With a shaped link,
a frame reaches the socket at the instant its last byte would have left a link of that rate.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass

import aiohttp
import numpy as np
from numpy.typing import NDArray

from edgebox.camera.records import HandedOver
from edgebox.domain.errors import ModelError
from edgebox.domain.requests import StagePlacement
from edgebox.link.detected_frames import DetectedFrame
from edgebox.link.messages import FrameHeader
from edgebox.link.sender import Send
from edgebox.link.shaping import ShapedLink
from edgebox.media import jpeg

Frame = NDArray[np.uint8]
Content = bytes | DetectedFrame
"""A frame's JPEG, or what was found on it here."""
Detect = Callable[[Frame, int, int], Awaitable[DetectedFrame]]
"""Runs the first stage on a frame, with the quality of crops and the instant of the decision."""


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
        detected: called with a frame's number, its message's size (None: the model failed) and the
            time it took, when the first stage has run here; returns whether to send it.
    """

    def __init__(
        self,
        socket: aiohttp.ClientWebSocketResponse,
        pool: Executor,
        link: ShapedLink | None,
        handed_over: Callable[[HandedOver], None],
        detected: Callable[[int, int | None, int], bool],
    ) -> None:
        self._socket = socket
        self._pool = pool
        self._link = link
        self._handed_over = handed_over
        self._detected = detected
        self.detect: Detect | None = None
        """Runs the first stage here; None: that cannot run here (yet)."""
        # The sender's window bounds both queues.
        self._to_encode: asyncio.Queue[tuple[Send, Captured]] = asyncio.Queue()
        self._to_write: asyncio.Queue[tuple[Send, Captured, Content, int]] = asyncio.Queue()

    def put(self, send: Send, frame: Captured) -> None:
        """Queue a frame with its decision."""
        self._to_encode.put_nowait((send, frame))

    async def encode(self) -> None:
        """Scale and encode, for as long as the connection lives."""
        loop = asyncio.get_running_loop()
        while True:
            send, frame = await self._to_encode.get()
            began_ns = time.monotonic_ns()
            if send.placement is StagePlacement.CAMERA:
                found = await self._detect(send, frame, began_ns)
                if found is not None:
                    self._to_write.put_nowait((send, frame, found, found.took_ns))
                continue
            picture = await loop.run_in_executor(self._pool, _encoded, frame.rgb, send)
            took_ns = time.monotonic_ns() - began_ns
            self._to_write.put_nowait((send, frame, picture, took_ns))

    async def _detect(self, send: Send, frame: Captured, began_ns: int) -> DetectedFrame | None:
        """Run the first stage; None: it failed, or the frame is not to be sent."""
        found: DetectedFrame | None = None
        size_bytes: int | None = None
        if self.detect is not None:
            with suppress(ModelError):  # whoever is told of the failure goes on without
                found = await self.detect(frame.rgb, send.quality, began_ns)
                size_bytes = found.size_bytes
        took_ns = time.monotonic_ns() - began_ns
        return found if self._detected(send.frame, size_bytes, took_ns) else None

    async def write(self) -> None:
        """Pace and write, for as long as the connection lives."""
        while True:
            send, frame, content, encode_ns = await self._to_write.get()
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
            if isinstance(content, DetectedFrame):
                message = content.encode(header)
            else:
                message = header.encode() + content
            size = len(message)
            self._handed_over(
                HandedOver(
                    send.frame,
                    send.width_px,
                    send.height_px,
                    size,
                    sent_ns,
                    encode_ns,
                    send.placement,
                )
            )
            if self._link is not None:
                leaves_ns = self._link.leaves_ns(sent_ns, size)
                await asyncio.sleep(max(0, leaves_ns - time.monotonic_ns()) / 1e9)
            await self._socket.send_bytes(message)


def _encoded(rgb: Frame, send: Send) -> bytes:
    return jpeg.encode(jpeg.resize_rgb(rgb, send.width_px, send.height_px), send.quality)
