"""Video as a source of frames: files in real time, live streams, devices. Needs PyAV.

PyAV is an extra (`pip install av`) and is imported only when a video is opened.
Live sources that are read too slowly drop old frames: only the newest is kept.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import InvalidInputError
from edgebox.media.pacing import Pacer

OPEN_TIMEOUT_S = 10.0
LIVE_SILENCE_S = 15.0
RETRIES = 10
RETRY_WAIT_S = 3.0
BEHIND_MAX_S = 0.5
"""A file's frame that is decoded later than this is left out."""

Frame = NDArray[np.uint8]


class VideoFileSource:
    """A video file, played in real time by its timestamps."""

    def __init__(self, path: Path, rate_hz: float | None, loop: bool) -> None:
        self._path = path
        self._rate_hz = rate_hz
        self._loop = loop
        self._pacer = Pacer()
        with _open_video(str(path)) as container:
            self.width_px, self.height_px = _size_of(container, str(path))

    def frames(self) -> Iterator[Frame]:
        """Yield the frames that are due; decoding that falls behind leaves frames out."""
        offset_s = 0.0
        while not self._pacer.stopped:
            end_s = offset_s
            due_s = -1.0
            for at_s, frame in self._decoded():
                end_s = max(end_s, offset_s + at_s)
                if self._rate_hz is not None and at_s < due_s - 1e-3:
                    continue
                if self._pacer.behind_s(offset_s + at_s) > BEHIND_MAX_S:
                    continue
                if not self._pacer.wait(offset_s + at_s):
                    return
                if self._rate_hz is not None:
                    due_s = max(due_s, at_s - 1 / self._rate_hz) + 1 / self._rate_hz
                yield _to_rgb(frame, self.width_px, self.height_px)
            if not self._loop or end_s == offset_s:
                return
            offset_s = end_s + 1 / (self._rate_hz or 25.0)

    def sampled(self, count: int) -> Iterator[Frame]:
        """Yield about so many frames, evenly spaced, as fast as they are decoded.

        Raises:
            InvalidInputError: the file is corrupt.
        """
        with _open_video(str(self._path)) as container:
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
        with _open_video(str(self._path)) as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            step_s = 1 / float(stream.average_rate or 25)
            first_s: float | None = None
            try:
                for number, frame in enumerate(container.decode(stream)):
                    at_s = number * step_s if frame.time is None else float(frame.time)
                    first_s = at_s if first_s is None else first_s
                    yield at_s - first_s, frame
            except _av().error.FFmpegError as error:
                raise InvalidInputError(f"{self._path}: the video is broken: {error}") from None


class LiveSource:
    """A stream or a device: a thread reads it, only the newest frame is kept.

    A stream that breaks off is opened again; after `retries` attempts in a row without a frame
    `frames` raises. Frames of another size than announced are scaled.
    """

    def __init__(
        self,
        address: str,
        device_format: str | None,
        rate_hz: float | None,
        retries: int = RETRIES,
    ) -> None:
        self._address = address
        self._device_format = device_format
        self._container = _open_video(address, device_format, live=True)
        self.width_px, self.height_px = _size_of(self._container, address)
        self._rate_hz = rate_hz
        self._retries = retries
        self._changed = threading.Condition()
        self._newest: Any = None
        self._ended: str | None = None
        self._closed = False
        self._reader: threading.Thread | None = None

    def frames(self) -> Iterator[Frame]:
        """Yield the newest frame each time there is one."""
        self._reader = threading.Thread(target=self._read, name="live-source", daemon=True)
        self._reader.start()
        due_s = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._newest is not None or self._ended is not None or self._closed
                )
                frame, self._newest = self._newest, None
            if self._closed:
                return
            if frame is None:
                raise InvalidInputError(f"{self._address}: the stream ended: {self._ended}")
            now_s = time.monotonic()
            if self._rate_hz is not None:
                period_s = 1 / self._rate_hz
                if now_s < due_s - period_s / 4:
                    continue
                due_s = max(due_s, now_s - period_s) + period_s
            yield _to_rgb(frame, self.width_px, self.height_px)

    def close(self) -> None:
        """End `frames` and hang up."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._reader is None:
            self._container.close()
        elif self._reader is not threading.current_thread():
            # A reader that is stuck in the network ends by its own timeout.
            self._reader.join(timeout=2.0)

    def _read(self) -> None:
        """Read for as long as there is a stream, in a thread of its own."""
        why, received = self._drain(self._container)
        left = self._retries
        while not self._closed:
            left = self._retries if received else left
            if left == 0:
                with self._changed:
                    self._ended = why
                    self._changed.notify_all()
                return
            left -= 1
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, RETRY_WAIT_S):
                    return
            try:
                container = _open_video(self._address, self._device_format, live=True)
            except InvalidInputError as error:
                why, received = str(error), False
            else:
                why, received = self._drain(container)

    def _drain(self, container: Any) -> tuple[str, bool]:
        """Take frames until the stream breaks off; return (why it did, whether any came)."""
        received = False
        try:
            with container:
                for frame in container.decode(container.streams.video[0]):
                    received = True
                    with self._changed:
                        if self._closed:
                            break
                        self._newest = frame
                        self._changed.notify_all()
        except _av().error.FFmpegError as error:
            return str(error), received
        return "the other side closed it", received


def _av() -> Any:
    try:
        import av  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise InvalidInputError(
            "video needs PyAV, which is not installed: pip install av"
        ) from None
    return av


def _open_video(address: str, device_format: str | None = None, *, live: bool = False) -> Any:
    av = _av()
    options = {"fflags": "nobuffer", "flags": "low_delay"} if live else {}
    if address.startswith("rtsp"):
        options["rtsp_transport"] = "tcp"
    try:
        container = av.open(
            address,
            format=device_format,
            options=options,
            timeout=(OPEN_TIMEOUT_S, LIVE_SILENCE_S) if live else None,
        )
    except (av.error.FFmpegError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"{address}: cannot be opened as video: {reason}") from None
    if not container.streams.video:
        container.close()
        raise InvalidInputError(f"{address}: there is no video in it")
    return container


def _size_of(container: Any, address: str) -> tuple[int, int]:
    context = container.streams.video[0].codec_context
    if not (context.width and context.height):
        with suppress(_av().error.FFmpegError):
            container.close()
        raise InvalidInputError(f"{address}: the video does not say how large it is")
    return context.width, context.height


def _to_rgb(frame: Any, width_px: int, height_px: int) -> Frame:
    """Convert; a stream that changes its size is scaled to what was announced."""
    rgb: Frame = frame.to_ndarray(format="rgb24", width=width_px, height=height_px)
    return rgb
