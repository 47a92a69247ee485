"""Opens video with PyAV, and says in plain words why that failed.

PyAV is an extra (`pip install av`) and is imported only when a video is opened. Messages have of an
address only what may be shown: FFmpeg's own have all of it, the password too.
"""

import errno
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.source_address import Credentials, SourceAddress, SourceKind
from edgebox.media import losses
from edgebox.media.losses import LossCause

OPEN_TIMEOUT_S = 10.0
SILENCE_S = 15.0
"""A stream without a picture for so long has broken off."""
SOFTWARE = "software"
_TEXT_FORMATS = ("tty",)
"""FFmpeg plays any text file as the picture of a terminal: that is no camera."""


class SourceError(InvalidInputError):
    """A source cannot be opened, or has broken off."""

    code = "source"
    title = "The source of pictures cannot be used"

    def __init__(self, shown: str, cause: LossCause) -> None:
        """Name the source as it may be shown, what is wrong, and what to do."""
        super().__init__(f"{shown}: {cause.reason}; {cause.remedy}")
        self.cause = cause


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
    # What describes a stream is not used, and need not be text in UTF-8.
    named: dict[str, Any] = {"options": options, "metadata_errors": "replace"}
    if live:
        named["timeout"] = (OPEN_TIMEOUT_S, SILENCE_S)
    place = address.with_credentials(credentials)
    if address.kind is SourceKind.WEBCAM:
        place, named["format"] = device_of(address), "v4l2"
    try:
        if not live:
            place = _file_of(address)
        container = _opened(av, place, decoder, named)
    except (av.error.FFmpegError, OSError) as error:
        raise SourceError(shown, cause_of(error, address)) from None
    try:
        if container.format.name in _TEXT_FORMATS:
            raise SourceError(shown, _no_video(address))
        if not container.streams.video:
            raise SourceError(shown, losses.NO_VIDEO)
        context = container.streams.video[0].codec_context
        if context is None:
            raise SourceError(shown, losses.UNKNOWN_CODEC)
        if not (context.width and context.height):
            raise SourceError(shown, losses.NO_SIZE)
    except SourceError:
        with suppress(av.error.FFmpegError):
            container.close()
        raise
    return container


def _file_of(address: SourceAddress) -> str:
    """Return a file as FFmpeg takes it; its name may look like another protocol: "12:30.mp4".

    Raises:
        OSError: there is nothing, it is a folder, or it may not be looked at.
        SourceError: it is something else, which may be read for ever, as a pipe.
    """
    mode = Path(address.text).stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):
        raise SourceError(address.shown, losses.NOT_A_VIDEO_FILE)
    return f"file:{address.text}"


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
        raise SourceError(device, losses.NO_WEBCAM)
    return device


def cause_of(error: BaseException, address: SourceAddress) -> LossCause:
    """Return what FFmpeg or the system complains about, and what helps."""
    av, errors = import_av(), import_av().error
    on_network = address.kind is SourceKind.NETWORK
    kinds: list[tuple[Any, LossCause]] = [
        (errors.HTTPUnauthorizedError, losses.WRONG_PASSWORD),
        (errors.HTTPForbiddenError, losses.FORBIDDEN),
        (errors.HTTPNotFoundError, losses.NOT_FOUND),
        (errors.HTTPClientError, losses.STREAM_REFUSED),
        (errors.HTTPServerError, losses.FAULTY),
        (errors.ExitError, losses.silent(SILENCE_S)),
        (errors.EOFError, losses.ENDED if on_network else losses.BROKEN_FILE),
        (errors.InvalidDataError, _no_video(address)),
        (errors.DecoderNotFoundError, losses.UNKNOWN_CODEC),
        (TimeoutError, losses.timed_out(OPEN_TIMEOUT_S)),
        (socket.gaierror, losses.NO_SUCH_NAME),
        (ConnectionRefusedError, losses.REFUSED),
        (ConnectionError, losses.CUT_OFF),
        (FileNotFoundError, losses.NO_FILE),
        (NotADirectoryError, losses.NO_FILE),
        (IsADirectoryError, losses.FOLDER),
        (PermissionError, losses.FORBIDDEN_FILE),
    ]
    if address.text.startswith("http"):
        kinds.append((av.error.ArgumentError, losses.REDIRECTED))
    for kind, cause in kinds:
        if isinstance(error, kind):
            return cause
    match getattr(error, "errno", None):
        case errno.EIO if not on_network:
            return losses.BROKEN_FILE
        case errno.EIO:
            encrypted = address.text.startswith(("rtsps:", "https:"))
            return losses.NO_TLS if encrypted else losses.CUT_OFF
        case errno.EBUSY:
            return losses.BUSY_WEBCAM
        case errno.EHOSTUNREACH | errno.ENETUNREACH:
            return losses.NO_ROUTE
    text = getattr(error, "strerror", None)
    return LossCause(str(text).lower() if text else type(error).__name__, losses.CHECK_ANY)


def cause_of_failure(error: Exception) -> LossCause:
    """Return why a source gives no pictures, whatever was raised while it was opened or read."""
    if isinstance(error, SourceError):
        return error.cause
    if isinstance(error, EdgeboxError):
        return LossCause(str(error), losses.CHECK_ANY)
    reason = f"it could not be decoded ({type(error).__name__})"
    return LossCause(reason, losses.UNKNOWN_CODEC.remedy)


def _no_video(address: SourceAddress) -> LossCause:
    is_file = address.kind is SourceKind.FILE
    return losses.NOT_A_VIDEO_FILE if is_file else losses.NOT_VIDEO


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
        raise SourceError(address.shown, cause_of(error, address)) from None
    except UnicodeError:  # no name that can be looked up
        raise SourceError(address.shown, losses.NO_SUCH_NAME) from None


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
