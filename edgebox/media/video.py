"""Video as a source of frames: files in real time, live streams, devices. Needs PyAV.

Live sources that are read too slowly drop old frames: only the newest is kept.
"""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.source_address import Credentials, SourceAddress, SourceKind
from edgebox.media.containers import (
    SourceError,
    cause_of_failure,
    import_av,
    open_container,
)
from edgebox.media.losses import SourceTrouble, lost_text
from edgebox.media.pacing import Pacer
from edgebox.media.picture_stream import DecodedPicture, LiveStream

Frame = NDArray[np.uint8]


class Retry(Protocol):
    """Says how long to wait before a source is tried again."""

    def wait_s(self) -> float:
        """Return the next wait."""
        ...

    def reset(self) -> None:
        """Begin with the shortest wait again."""
        ...


class VideoFileSource:
    """A video file, played in real time by its timestamps."""

    trouble = None

    def __init__(self, path: Path, rate_hz: float | None, loop: bool) -> None:
        self._address = SourceAddress(SourceKind.FILE, str(path))
        self._path = path
        self._rate_hz = rate_hz
        self._loop = loop
        self._pacer = Pacer()
        with open_container(self._address) as container:
            context = container.streams.video[0].codec_context
            self.width_px, self.height_px = context.width, context.height

    def frames(self) -> Iterator[Frame]:
        """Yield the frames that are due; decoding that falls behind leaves frames out."""
        offset_s = 0.0
        while not self._pacer.stopped:
            end_s, is_empty = offset_s, True
            due_s = -1.0
            for at_s, frame in self._decoded():
                end_s, is_empty = max(end_s, offset_s + at_s), False
                if self._rate_hz is not None and at_s < due_s - 1e-3:
                    continue
                if self._pacer.misses(offset_s + at_s):
                    continue
                if not self._pacer.wait(offset_s + at_s):
                    return
                if self._rate_hz is not None:
                    due_s = max(due_s, at_s - 1 / self._rate_hz) + 1 / self._rate_hz
                yield _to_rgb(frame, self.width_px, self.height_px)
            if not self._loop or is_empty:
                return
            offset_s = end_s + 1 / (self._rate_hz or 25.0)

    def sampled(self, count: int) -> Iterator[Frame]:
        """Yield about so many frames, evenly spaced, as fast as they are decoded.

        Raises:
            InvalidInputError: the file is corrupt.
        """
        with open_container(self._address) as container:
            # In microseconds; a file that does not say is sampled once a second.
            step_s = container.duration / 1e6 / count if container.duration else 1.0
        due_s = 0.0
        for at_s, frame in self._decoded():
            if at_s >= due_s - 1e-3:
                due_s += step_s
                count -= 1
                yield _to_rgb(frame, self.width_px, self.height_px)
            if count <= 0:
                return

    def close(self) -> None:
        """End `frames`."""
        self._pacer.stop()

    def _decoded(self) -> Iterator[tuple[float, Any]]:
        """Yield (seconds from the first frame, frame)."""
        with open_container(self._address) as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            step_s = 1 / float(stream.average_rate or 25)
            first_s: float | None = None
            try:
                for number, frame in enumerate(container.decode(stream)):
                    at_s = number * step_s if frame.time is None else float(frame.time)
                    first_s = at_s if first_s is None else first_s
                    yield at_s - first_s, frame
            except import_av().error.FFmpegError as error:
                raise InvalidInputError(f"{self._path}: the video is broken: {error}") from None


class LiveSource:
    """A stream or a device: a thread reads it, only the newest frame is kept.

    With `retry` a stream that breaks off is opened again, for ever; `trouble` says meanwhile what
    is wrong. Frames of another size than announced are scaled.
    """

    def __init__(
        self,
        address: SourceAddress,
        credentials: Credentials | None = None,
        rate_hz: float | None = None,
        retry: Retry | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Open it.

        Args:
            address: where it is.
            credentials: for it, if it needs any.
            rate_hz: at most so many frames a second; None: all.
            retry: when to open it again; None: never, `frames` raises then.
            wall_ns: the wall clock, for people: since when it is lost.

        Raises:
            SourceError: it cannot be opened now.
        """
        self.trouble: SourceTrouble | None = None
        self._open: Callable[[], LiveStream] = partial(LiveStream, address, credentials)
        self._shown = address.shown
        self._stream = self._open()
        self.width_px, self.height_px = self._stream.width_px, self._stream.height_px
        self._rate_hz = rate_hz
        self._due_s = 0.0
        self._retry = retry
        self._wall_ns = wall_ns
        self._changed = threading.Condition()
        self._newest: DecodedPicture | None = None
        self._ended: SourceError | None = None
        self._closed = False
        self._reader: threading.Thread | None = None

    def frames(self) -> Iterator[Frame]:
        """Yield the newest frame each time there is one."""
        self._reader = threading.Thread(target=self._read, name="live-source", daemon=True)
        self._reader.start()
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._newest is not None or self._ended is not None or self._closed
                )
                picture, self._newest = self._newest, None
            if self._closed:
                return
            if picture is None:
                assert self._ended is not None
                raise self._ended
            yield picture.rgb(self.width_px, self.height_px)

    def close(self) -> None:
        """End `frames` and hang up."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._stream.close()
        if self._reader is not None and self._reader is not threading.current_thread():
            # A reader that is stuck in the network ends by its own timeout.
            self._reader.join(timeout=2.0)

    def _read(self) -> None:
        """Read for as long as there is a stream, in a thread of its own."""
        stream: LiveStream | None = self._stream
        since_ms = 0
        while not self._closed:
            try:
                stream = stream or self._open()
                with self._changed:
                    self._stream = stream
                if self._closed:
                    stream.close()
                self._drain(stream)
            except Exception as broken:  # a decoder's defect must not end the reading for ever
                error = SourceError(self._shown, cause_of_failure(broken))
                if self._retry is None:
                    with self._changed:
                        self._ended = error
                        self._changed.notify_all()
                    return
                since_ms = since_ms if self.trouble else self._wall_ns() // 1_000_000
                text = lost_text(since_ms, error.cause.reason)
                self.trouble = SourceTrouble(text, error.cause.remedy)
            stream = None
            if self._retry is not None:
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, self._retry.wait_s())

    def _drain(self, stream: LiveStream) -> None:
        """Take frames until the stream breaks off or is closed."""
        for picture in stream.pictures(self._wanted):
            self.trouble = None
            if self._retry is not None:
                self._retry.reset()
            with self._changed:
                self._newest = picture
                self._changed.notify_all()

    def _wanted(self, captured_ns: int) -> bool:
        if self._rate_hz is None:
            return True
        now_s, period_s = time.monotonic(), 1 / self._rate_hz
        if now_s < self._due_s - period_s / 4:
            return False
        self._due_s = max(self._due_s, now_s - period_s) + period_s
        return True


def _to_rgb(frame: Any, width_px: int, height_px: int) -> Frame:
    """Convert; a stream that changes its size is scaled to what was announced."""
    # One thread: FFmpeg would start some for each frame, which costs half as much again.
    rgb: Frame = frame.to_ndarray(format="rgb24", width=width_px, height=height_px, threads=1)
    return rgb
