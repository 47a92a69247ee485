"""Owns where frames come from: the made-up scene, a folder, a file, a stream, a webcam.

A source is a blocking iterator of (height, width, 3) uint8 RGB, meant to run in a thread of its
own; each frame comes when it is due, so the moment `next` returns is the moment of capture. Live
sources that are read too slowly drop old frames (ffmpeg's own queue and ours keep the newest).
Video needs PyAV (`pip install 'edgebox[camera]'`); everything else needs nothing beyond Pillow.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from edgebox.domain.errors import InvalidInputError

RATE_DEFAULT_HZ = 10.0
SCENE_SIZE_PX = (1280, 720)
PICTURE_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".webp"))
OPEN_TIMEOUT_S = 10.0
LIVE_SILENCE_S = 15.0

Frame = NDArray[np.uint8]


class FrameSource(Protocol):
    """Frames, each when it is due."""

    width_px: int
    height_px: int
    """Size of every frame, known before the first."""

    def frames(self) -> Iterator[Frame]:
        """Yield frames until the source ends or `close` is called; blocks in between.

        Raises:
            InvalidInputError: a live source broke off or a file is corrupt.
        """
        ...

    def close(self) -> None:
        """End `frames`, from any thread, soon; harmless twice."""
        ...


class _Pacer:
    """Waits until the next frame is due; a late reader skips what it missed."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._origin_s: float | None = None

    def wait(self, at_s: float) -> bool:
        """Wait until `at_s` after the first call's; False: stopped."""
        now_s = time.monotonic()
        if self._origin_s is None:
            self._origin_s = now_s - at_s
        return not self._stopped.wait(max(0.0, self._origin_s + at_s - now_s))

    def behind_s(self, at_s: float) -> float:
        """Return how late a frame that is due at `at_s` would be."""
        return 0.0 if self._origin_s is None else time.monotonic() - self._origin_s - at_s

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()


class PictureSource:
    """Frames made or fetched one by one by number, at a fixed rate."""

    def __init__(
        self,
        size_px: tuple[int, int],
        rate_hz: float,
        picture: Callable[[int], Frame],
        count: int | None = None,
    ) -> None:
        self.width_px, self.height_px = size_px
        self._rate_hz = rate_hz
        self._picture = picture
        self._count = count
        self._pacer = _Pacer()

    def frames(self) -> Iterator[Frame]:
        """Yield one frame per period; periods that the maker missed are left out."""
        number = 0
        while self._count is None or number < self._count:
            if not self._pacer.wait(number / self._rate_hz):
                return
            yield self._picture(number)
            missed = int(self._pacer.behind_s((number + 1) / self._rate_hz) * self._rate_hz)
            number += 1 + (max(0, missed) if self._count is None else 0)

    def close(self) -> None:
        """End `frames`."""
        self._pacer.stop()


class VideoFileSource:
    """A video file, played in real time by its timestamps."""

    def __init__(self, path: Path, rate_hz: float | None, loop: bool) -> None:
        self._path = path
        self._rate_hz = rate_hz
        self._loop = loop
        self._pacer = _Pacer()
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
                if self._pacer.behind_s(offset_s + at_s) > 0.5:
                    continue
                if not self._pacer.wait(offset_s + at_s):
                    return
                if self._rate_hz is not None:
                    due_s = max(due_s, at_s - 1 / self._rate_hz) + 1 / self._rate_hz
                yield _to_rgb(frame, self.width_px, self.height_px)
            if not self._loop or end_s == offset_s:
                return
            offset_s = end_s + 1 / (self._rate_hz or 25.0)

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
    """A stream or a device: a thread reads it, only the newest frame is kept."""

    def __init__(self, address: str, device_format: str | None, rate_hz: float | None) -> None:
        self._address = address
        self._container = _open_video(address, device_format, live=True)
        self.width_px, self.height_px = _size_of(self._container, address)
        self._rate_hz = rate_hz
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
                heard = self._changed.wait_for(
                    lambda: self._newest is not None or self._ended or self._closed, LIVE_SILENCE_S
                )
                frame, self._newest = self._newest, None
            if self._closed:
                return
            if frame is None:
                why = self._ended if heard else f"no frame for {LIVE_SILENCE_S:g} s"
                raise InvalidInputError(f"{self._address}: the stream ended: {why}")
            now_s = time.monotonic()
            if self._rate_hz is not None:
                period_s = 1 / self._rate_hz
                if now_s < due_s - period_s / 4:
                    continue
                due_s = max(due_s, now_s - period_s / 4) + period_s
            yield _to_rgb(frame, self.width_px, self.height_px)

    def close(self) -> None:
        """End `frames` and hang up."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        reader = self._reader
        if reader is not None and reader is not threading.current_thread():
            reader.join(timeout=2.0)
        elif reader is None:
            self._container.close()

    def _read(self) -> None:
        ended = "the other side closed it"
        try:
            with self._container as container:
                for frame in container.decode(container.streams.video[0]):
                    with self._changed:
                        if self._closed:
                            return
                        self._newest = frame
                        self._changed.notify_all()
        except _av().error.FFmpegError as error:
            ended = str(error)
        finally:
            with self._changed:
                self._ended = ended
                self._changed.notify_all()


def open_source(
    text: str,
    rate_hz: float | None = None,
    *,
    loop: bool = True,
    size_px: tuple[int, int] = SCENE_SIZE_PX,
) -> FrameSource:
    """Open a source by its name.

    Args:
        text: "scene:" or "scene:7" (its seed), "webcam" or "/dev/video0", an rtsp:// or
            http(s):// address, a folder of pictures, or a video file.
        rate_hz: at most so many frames per second; None: as the source gives them, and
            `RATE_DEFAULT_HZ` where it has no rate of its own.
        loop: start folders and files over at their end.
        size_px: of the scene.

    Raises:
        InvalidInputError: there is no such source, or it cannot be read; the message says why.
    """
    if rate_hz is not None and not 0 < rate_hz <= 1000:
        raise InvalidInputError(f"the rate must be above 0 and at most 1000 Hz, not {rate_hz:g}")
    if text.startswith("scene:"):
        return _open_scene(text, rate_hz or RATE_DEFAULT_HZ, size_px)
    if "://" in text:
        return _open_stream(text, rate_hz)
    if text == "webcam" or text.startswith("/dev/video"):
        device = "/dev/video0" if text == "webcam" else text
        if not Path(device).exists():
            raise InvalidInputError(f"{device}: there is no such camera on this machine")
        return LiveSource(device, "v4l2", rate_hz)
    path = Path(text).expanduser()
    try:
        if path.is_dir():
            return _open_folder(path, rate_hz or RATE_DEFAULT_HZ, loop)
        with path.open("rb"):
            pass
        if path.suffix.lower() in PICTURE_SUFFIXES:
            return _open_pictures([path], rate_hz or RATE_DEFAULT_HZ, loop)
    except FileNotFoundError:
        raise InvalidInputError(
            f"{text}: no such file or folder (sources: scene:, webcam, rtsp://..., http://..., "
            "a video file, a folder of pictures)"
        ) from None
    except OSError as error:
        raise InvalidInputError(f"{text}: cannot be read: {error.strerror}") from None
    return VideoFileSource(path, rate_hz, loop)


def _open_scene(text: str, rate_hz: float, size_px: tuple[int, int]) -> FrameSource:
    from edgebox.media.scene import Scene  # noqa: PLC0415 - only who wants it pays for it

    seed = text.removeprefix("scene:") or "0"
    if not seed.isdecimal():
        raise InvalidInputError(f"{text}: a scene's seed must be a whole number, as in scene:7")
    scene = Scene(int(seed), *size_px)
    return PictureSource(size_px, rate_hz, lambda number: scene.render(number / rate_hz).rgb)


def _open_folder(path: Path, rate_hz: float, loop: bool) -> FrameSource:
    names = sorted(p for p in path.iterdir() if p.suffix.lower() in PICTURE_SUFFIXES)
    if not names:
        raise InvalidInputError(f"{path}: no pictures in this folder (.jpg, .png, .bmp, .webp)")
    return _open_pictures(names, rate_hz, loop)


def _open_pictures(names: list[Path], rate_hz: float, loop: bool) -> FrameSource:
    size = _read_picture(names[0], None).shape

    def picture(number: int) -> Frame:
        return _read_picture(names[number % len(names)], (size[1], size[0]))

    count = None if loop else len(names)
    return PictureSource((size[1], size[0]), rate_hz, picture, count)


def _read_picture(path: Path, size_px: tuple[int, int] | None) -> Frame:
    try:
        with Image.open(path) as image:
            rgb = image.convert("RGB")
            if size_px is not None and rgb.size != size_px:
                rgb = rgb.resize(size_px)
            return np.asarray(rgb, dtype=np.uint8)
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise InvalidInputError(f"{path}: not a picture that can be read: {error}") from None


def _open_stream(text: str, rate_hz: float | None) -> FrameSource:
    scheme = text.split("://", 1)[0].lower()
    if scheme not in ("rtsp", "rtsps", "http", "https"):
        raise InvalidInputError(f"{text}: streams start with rtsp:// or http(s)://")
    return LiveSource(text, None, rate_hz)


def _av() -> Any:
    try:
        import av  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise InvalidInputError(
            "video needs PyAV, which is not installed: pip install 'edgebox[camera]'"
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
