"""Opens video with PyAV, and says in plain words why that failed.

PyAV is an extra (`pip install av`) and is imported only when a video is opened. Messages have of an
address only what may be shown: FFmpeg's own have all of it, the password too.
"""

import errno
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.source_address import Credentials, SourceAddress, SourceKind

OPEN_TIMEOUT_S = 10.0
SILENCE_S = 15.0
"""A stream without a picture for so long has broken off."""
SOFTWARE = "software"


class SourceError(InvalidInputError):
    """A source cannot be opened, or has broken off."""

    code = "source"
    title = "The source of pictures cannot be used"

    def __init__(self, shown: str, reason: str) -> None:
        """Name the source as it may be shown, and what is wrong in a few words."""
        super().__init__(f"{shown}: {reason}")
        self.reason = reason


def import_av() -> Any:
    """Return PyAV.

    Raises:
        InvalidInputError: it is not installed.
    """
    try:
        import av  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise InvalidInputError(
            "video needs PyAV, which is not installed: pip install av"
        ) from None
    return av


def open_container(
    address: SourceAddress, credentials: Credentials | None = None, decoder: str = SOFTWARE
) -> Any:
    """Open a source; return PyAV's container, which has a video stream of a known size. Blocks.

    Args:
        address: where it is.
        credentials: for it, if it needs any.
        decoder: a type of FFmpeg's hardware devices, or "software". Where the device is missing or
            does not know the codec, the video is decoded in software.

    Raises:
        SourceError: it cannot be opened; the message says why.
    """
    av, shown = import_av(), address.shown
    live = address.kind is not SourceKind.FILE
    options: dict[str, str] = {}
    if live:
        options |= {"fflags": "nobuffer", "flags": "low_delay"}
    if address.text.startswith("rtsp"):
        options |= {"rtsp_transport": "tcp", "allowed_media_types": "video"}
    named: dict[str, Any] = {"options": options}
    if live:
        named["timeout"] = (OPEN_TIMEOUT_S, SILENCE_S)
    place = address.with_credentials(credentials)
    if address.kind is SourceKind.WEBCAM:
        place, named["format"] = device_of(address), "v4l2"
    try:
        container = _opened(av, place, decoder, named)
    except (av.error.FFmpegError, OSError) as error:
        raise SourceError(shown, reason_of(error)) from None
    try:
        if not container.streams.video:
            raise SourceError(shown, "there is no video in it")
        context = container.streams.video[0].codec_context
        if not (context.width and context.height):
            raise SourceError(shown, "the video does not say how large it is")
    except SourceError:
        with suppress(av.error.FFmpegError):
            container.close()
        raise
    return container


def _opened(av: Any, place: str, decoder: str, named: dict[str, Any]) -> Any:
    if decoder == SOFTWARE:
        return av.open(place, **named)
    from av.codec.hwaccel import HWAccel  # noqa: PLC0415 - part of an extra

    try:
        hwaccel = HWAccel(decoder, allow_software_fallback=True)
        return av.open(place, hwaccel=hwaccel, **named)
    except (ValueError, NotImplementedError, RuntimeError):
        return av.open(place, **named)


def device_of(address: SourceAddress) -> str:
    """Return the device file of a webcam.

    Raises:
        SourceError: this machine has none.
    """
    device = f"/dev/video{address.text}"
    if not Path(device).exists():
        raise SourceError(device, "there is no such camera on this machine")
    return device


def reason_of(error: BaseException) -> str:
    """Return what FFmpeg or the system complains about, in a few plain words."""
    av = import_av()
    for kind, words in (
        (av.error.HTTPUnauthorizedError, "the user name or the password is wrong or missing"),
        (av.error.HTTPForbiddenError, "the camera does not allow this user to see it"),
        (av.error.HTTPNotFoundError, "the camera has no stream at this path"),
        (av.error.ExitError, f"nothing was received for {SILENCE_S:g} s"),
        (av.error.EOFError, "the other side ended the stream"),
        (av.error.InvalidDataError, "what is there is not video"),
        (TimeoutError, f"no answer within {OPEN_TIMEOUT_S:g} s"),
        (socket.gaierror, "there is no machine of that name"),
    ):
        if isinstance(error, kind):
            return words
    if getattr(error, "errno", None) == errno.EIO:
        return "the connection broke off"
    text = getattr(error, "strerror", None)
    return str(text).lower() if text else type(error).__name__


def measured_path_ns(address: SourceAddress) -> int:
    """Return how long the way from a source takes: half a TCP handshake; 0 on this machine. Blocks.

    Raises:
        SourceError: the source does not answer.
    """
    place = address.host_and_port
    if place is None:
        return 0
    began_ns = time.monotonic_ns()
    try:
        with socket.create_connection(place, OPEN_TIMEOUT_S):
            # A name is looked up before, which makes the path at most look longer.
            return (time.monotonic_ns() - began_ns) // 2
    except OSError as error:
        raise SourceError(address.shown, reason_of(error)) from None


def hardware_decoders() -> dict[str, bool]:
    """Return PyAV's types of hardware decoders, and whether this machine has such a device. Blocks.

    Raises:
        InvalidInputError: PyAV is not installed.
    """
    av = import_av()
    from av.codec.hwaccel import HWAccel, hwdevices_available  # noqa: PLC0415 - part of an extra

    codec, found = av.codec.Codec("h264", "r"), {}
    for name in hwdevices_available():
        try:
            HWAccel(name, allow_software_fallback=False).create(codec)
        except Exception:  # each driver fails in its own way
            found[name] = False
        else:
            found[name] = True
    return found
