"""The thread that reads a frame source, stamps each frame and passes it to the loop."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from edgebox.media.sources import FrameSource

Frame = NDArray[np.uint8]
JOIN_TIMEOUT_S = 5.0


class Capture:
    """One run of a source.

    Args:
        source: read until it ends or `stop` is called.
        captured: called in the event loop with the instant of capture (monotonic) and the frame.
    """

    def __init__(self, source: FrameSource, captured: Callable[[int, Frame], object]) -> None:
        self.ended = asyncio.Event()
        """Set, in the loop, when no more frames will come."""
        self.error: Exception | None = None
        """The error of the source, if it failed."""
        self._source = source
        self._captured = captured
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._read, name="capture", daemon=True)

    def start(self) -> None:
        """Begin to capture."""
        self._thread.start()

    async def stop(self) -> None:
        """Stop capturing; wait for the thread, but not for a stuck device."""
        self._source.close()
        await asyncio.to_thread(self._thread.join, JOIN_TIMEOUT_S)

    def _read(self) -> None:
        try:
            for rgb in self._source.frames():
                captured_ns = time.monotonic_ns()
                self._loop.call_soon_threadsafe(self._captured, captured_ns, rgb)
        except Exception as error:  # also a decoder's defect is no end of the source
            self.error = error
        finally:
            # A closed loop has no callbacks left.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.ended.set)
