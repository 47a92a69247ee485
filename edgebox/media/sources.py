"""Sources of frames: the synthetic scene, a folder, a file, a stream, a webcam.

A source is a blocking iterator of (height, width, 3) uint8 RGB, meant to run in a thread of its
own; each frame comes when it is due, so the moment `next` returns is the moment of capture. Live
sources that are read too slowly drop old frames (ffmpeg's own queue and ours keep the newest).
Video needs PyAV (`pip install av`); everything else needs nothing beyond Pillow.
"""

import io
import stat
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from edgebox.domain.errors import FileAccessError, InvalidInputError
from edgebox.domain.home_folder import given_path
from edgebox.domain.source_address import Credentials, SourceAddress, SourceKind, read_address
from edgebox.media import losses
from edgebox.media.containers import SourceError
from edgebox.media.jpeg import decode
from edgebox.media.jpeg_header import JpegLimits
from edgebox.media.losses import SourceTrouble
from edgebox.media.pacing import Pacer
from edgebox.media.rgb import rgb_of
from edgebox.media.video import LiveSource, Retry, VideoFileSource

RATE_DEFAULT_HZ = 10.0
SCENE_SIZE_PX = (1280, 720)
PICTURE_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".webp"))
_FORMATS = ("PNG", "BMP", "WEBP", "GIF", "TIFF")
"""Beside JPEG. Of all that Pillow reads some start other programs."""
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""By the orientation that EXIF has: how the pixels are turned to be seen as they were."""
_BROKEN_EXIF = (OSError, SyntaxError, EOFError, ValueError, TypeError, LookupError, struct.error)
"""What Pillow raises for some that is broken."""
FILE_LIMITS = JpegLimits(
    side_max_px=65_500, pixels_max=178_956_970, scan_pixels_max=20 * 178_956_970
)
"""Limits for local files, the same as Pillow's."""

Frame = NDArray[np.uint8]


class FrameSource(Protocol):
    """Frames, each when it is due."""

    width_px: int
    height_px: int
    """Size of every frame, known before the first."""

    @property
    def trouble(self) -> SourceTrouble | None:
        """Why no frames come; None: nothing is wrong. May be asked in any thread."""
        ...

    def frames(self) -> Iterator[Frame]:
        """Yield frames until the source ends or `close` is called; blocks in between.

        Raises:
            InvalidInputError: a live source broke off or a file is corrupt.
        """
        ...

    def close(self) -> None:
        """End `frames`, from any thread, soon; harmless twice."""
        ...


class PictureSource:
    """Frames made or fetched one by one by number, at a fixed rate."""

    trouble = None

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
        self._pacer = Pacer()

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


def open_source(
    text: str,
    rate_hz: float | None = None,
    *,
    loop: bool = True,
    size_px: tuple[int, int] = SCENE_SIZE_PX,
    credentials: Credentials | None = None,
    retry: Retry | None = None,
) -> FrameSource:
    """Open a source by its name.

    Args:
        text: "scene:" or "scene:7" (its seed), "webcam:0" or "/dev/video0", an rtsp(s):// or
            http(s):// address, a folder of pictures, or a video file.
        rate_hz: at most so many frames per second; None: as the source gives them, and
            `RATE_DEFAULT_HZ` where it has no rate of its own.
        loop: start folders and files over at their end.
        size_px: of the scene.
        credentials: for a stream; None: those in its address, if there are any.
        retry: when to open a stream again that breaks off; None: never.

    Raises:
        InvalidInputError: there is no such source, or it cannot be read; the message says why.
    """
    if rate_hz is not None and not 0 < rate_hz <= 1000:
        raise InvalidInputError(f"the rate must be above 0 and at most 1000 Hz, not {rate_hz:g}")
    if text.startswith("scene:"):
        return _open_scene(text, rate_hz or RATE_DEFAULT_HZ, size_px)
    if text.startswith("/dev/video"):
        text = f"webcam:{text.removeprefix('/dev/video')}"
    if "://" in text or text.startswith("webcam"):
        address, found = _read_address(text)
        if address.kind is not SourceKind.FILE:
            return LiveSource(address, credentials or found, rate_hz, retry)
        text = address.text
    path = given_path(text)
    try:
        if path.is_dir():
            return _open_folder(path, rate_hz or RATE_DEFAULT_HZ, loop)
        # Whoever opens a pipe waits for somebody who writes into it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SourceError(text, losses.NOT_A_VIDEO_FILE)
        with path.open("rb"):
            pass
        if path.suffix.lower() in PICTURE_SUFFIXES:
            return _open_pictures([path], rate_hz or RATE_DEFAULT_HZ, loop)
    except FileNotFoundError:
        raise FileAccessError(
            f"{text}: no such file or folder (sources: scene:, webcam, rtsp://..., http://..., "
            "a video file, a folder of pictures)"
        ) from None
    except OSError as error:
        raise FileAccessError(f"{text}: cannot be read: {error.strerror}") from None
    return VideoFileSource(path, rate_hz, loop)


def file_named(text: str) -> Path | None:
    """Return the file or folder that the name of a source names; None: it names none.

    Raises:
        InvalidInputError: it is an address that cannot be one of a source.
    """
    if text.startswith(("scene:", "/dev/video")):
        return None
    if "://" in text or text.startswith("webcam"):
        address, _ = _read_address(text)
        return given_path(address.text) if address.kind is SourceKind.FILE else None
    return given_path(text)


def _open_scene(text: str, rate_hz: float, size_px: tuple[int, int]) -> FrameSource:
    from edgebox.scene.street_camera import Scene  # noqa: PLC0415 - only who wants it pays for it

    seed = text.removeprefix("scene:") or "0"
    if not seed.isdecimal():
        raise InvalidInputError(f"{text}: a scene's seed must be a whole number, as in scene:7")
    scene = Scene(int(seed), *size_px)
    return PictureSource(size_px, rate_hz, lambda number: scene.render(number / rate_hz).rgb)


def _open_folder(path: Path, rate_hz: float, loop: bool) -> FrameSource:
    names = sorted(p for p in path.iterdir() if p.suffix.lower() in PICTURE_SUFFIXES)
    if not names:  # or nothing is mounted there yet
        raise FileAccessError(f"{path}: no pictures in this folder (.jpg, .png, .bmp, .webp)")
    return _open_pictures(names, rate_hz, loop)


def _open_pictures(names: list[Path], rate_hz: float, loop: bool) -> FrameSource:
    size = read_picture(names[0]).shape

    def picture(number: int) -> Frame:
        return read_picture(names[number % len(names)], (size[1], size[0]))

    count = None if loop else len(names)
    return PictureSource((size[1], size[0]), rate_hz, picture, count)


def read_picture(
    path: Path, size_px: tuple[int, int] | None = None, *, upright: bool = False
) -> Frame:
    """Read a picture file, scaled to a width and height if they are given.

    Args:
        path: the file.
        size_px: width and height to scale it to; None: it stays as it is.
        upright: turn it as its EXIF says, as phones store portraits lying.

    Raises:
        InvalidInputError: it is missing or no picture.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise FileAccessError(f"{path}: there is no such file") from None
    except OSError as error:
        raise FileAccessError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        picture = decode_picture(data)
        if upright and (turn := _UPRIGHT.get(_orientation(data))) is not None:
            picture = np.asarray(Image.fromarray(picture).transpose(turn))
        if size_px is not None and (picture.shape[1], picture.shape[0]) != size_px:
            picture = np.asarray(Image.fromarray(picture).resize(size_px))
        return picture
    except (OSError, ValueError, InvalidInputError) as error:
        raise InvalidInputError(f"{path}: not a picture that can be read: {error}") from None


def decode_picture(data: bytes) -> Frame:
    """Decode the bytes of a picture file.

    Raises:
        InvalidInputError, OSError, ValueError: they are none.
    """
    if data.startswith(b"\xff\xd8"):
        return decode(data, FILE_LIMITS)
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            FILE_LIMITS.check(image.format or "picture", *image.size)
            return rgb_of(image)
    except Image.DecompressionBombError:  # whose words name a limit of Pillow's
        raise InvalidInputError(f"it has too many pixels: {FILE_LIMITS.wanted}") from None
    except UnidentifiedImageError:  # whose own text names a buffer in memory
        raise InvalidInputError(f"it is none of JPEG, {', '.join(_FORMATS)}") from None
    except (SyntaxError, EOFError) as error:  # what Pillow raises for some that are broken
        raise InvalidInputError(f"it is broken or cut off: {error}") from None


def _orientation(data: bytes) -> int:
    """Return how a picture is to be turned, 2 to 8 as in EXIF; 1: not at all, or unreadable."""
    try:
        with (
            warnings.catch_warnings(action="ignore"),  # of a note that is cut off
            Image.open(io.BytesIO(data), formats=("JPEG", *_FORMATS)) as image,
        ):
            said = image.getexif().get(ExifTags.Base.Orientation)
    except _BROKEN_EXIF:
        return 1
    return said if isinstance(said, int) else 1


def _read_address(text: str) -> tuple[SourceAddress, Credentials | None]:
    try:
        return read_address(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"the source {error}") from None
