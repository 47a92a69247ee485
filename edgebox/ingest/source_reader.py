"""The thread that opens one source, decodes it and keeps its newest picture for the loop."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from edgebox.link.rate_gate import RateGate
from edgebox.media import losses
from edgebox.media.containers import cause_of_failure
from edgebox.media.losses import LossCause
from edgebox.media.picture_stream import DecodedPicture, PictureStream
from edgebox.runtime.source_status import Decoding
from edgebox.vision.motion_gate import GRID_PX, MotionGate


@dataclass(frozen=True, slots=True)
class NewestPicture:
    """A picture for the loop."""

    picture: DecodedPicture
    captured_total: int
    """Pictures that were due and not still, since the box was started, this one included."""


class SourceReader:
    """One connection to a source. FFmpeg's reading blocks, so it has a thread of its own."""

    def __init__(
        self,
        open_stream: Callable[[], PictureStream],
        decoding: Decoding,
        *,
        phase: float,
        gate: MotionGate | None = None,
        on_opened: Callable[[PictureStream], None],
        on_picture: Callable[[], None],
        on_lost: Callable[[LossCause], None],
    ) -> None:
        """Prepare to read; `start` begins.

        Args:
            open_stream: opens the source; called in the thread.
            decoding: takes the cost.
            phase: of the pictures that are kept, in periods (`RateGate`).
            gate: leaves out pictures of a scene that stands still; None: none are.
            on_opened: called on the loop when it is open.
            on_picture: called on the loop when there is a picture to `take`.
            on_lost: called on the loop, once, with why no more pictures come.
        """
        self.rate_hz = 0.0
        """At most so many pictures a second are kept; 0: none yet."""
        self._open_stream = open_stream
        self._decoding = decoding
        self._gate = gate
        self._on_opened = on_opened
        self._on_picture = on_picture
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._newest: NewestPicture | None = None
        self._stream: PictureStream | None = None
        self._closed = False
        self._rate = RateGate(phase)
        self._thread = threading.Thread(target=self._run, name="source", daemon=True)

    def start(self) -> None:
        """Begin to open and read."""
        self._thread.start()

    def take(self) -> NewestPicture | None:
        """Take the newest picture; None: it was taken already."""
        with self._lock:
            newest, self._newest = self._newest, None
        return newest

    def close(self) -> None:
        """End the thread: at once where pictures come, else by the stream's own time limit."""
        with self._lock:
            self._closed = True
            stream = self._stream
        if stream is not None:
            stream.close()

    def _run(self) -> None:
        try:
            self._read()
            cause = losses.ENDED
        except Exception as error:  # a decoder's defect must not end the retries
            cause = cause_of_failure(error)
        self._tell(lambda: self._on_lost(cause))

    def _read(self) -> None:
        stream = self._open_stream()
        with self._lock:
            if self._closed:
                stream.close()
            self._stream = stream
        self._tell(lambda: self._on_opened(stream))
        began_ns = time.thread_time_ns()
        for picture in stream.pictures(self._wanted):
            self._decoding.pictures += 1
            if self._gate is None or self._moves(picture):
                self._put(picture)
            else:
                self._decoding.still += 1
            began_ns = self._note_cost(began_ns)
        self._note_cost(began_ns)

    def _moves(self, picture: DecodedPicture) -> bool:
        assert self._gate is not None
        return self._gate.passes(picture.luma(*GRID_PX), picture.captured_ns)

    def _note_cost(self, began_ns: int) -> int:
        now_ns = time.thread_time_ns()
        self._decoding.decode_ns += now_ns - began_ns
        return now_ns

    def _wanted(self, captured_ns: int) -> bool:
        return self.rate_hz > 0 and self._rate.due(captured_ns, self.rate_hz)

    def _put(self, picture: DecodedPicture) -> None:
        with self._lock:
            replaced = self._newest
            self._newest = NewestPicture(picture, self._decoding.captured_total)
        if replaced is None:
            self._tell(self._on_picture)

    def _tell(self, what: Callable[[], None]) -> None:
        """Call something on the loop."""
        # A closed loop has no callbacks left.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what)
