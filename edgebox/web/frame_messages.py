"""Reads the binary messages of cameras: pictures, and boxes with crops."""

from collections.abc import Callable

from edgebox.domain.errors import InvalidInputError
from edgebox.inference.family import Family
from edgebox.link.detected_frames import DetectedFrame, detected_header
from edgebox.link.messages import FrameHeader
from edgebox.link.protocol import DETECTED_MESSAGE_TYPE
from edgebox.link.receipts import MessageReceipt
from edgebox.media.jpeg import probe
from edgebox.runtime.camera_placement import check_pictures, limits_of
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frames import ArrivedFrame

_DETECTED = bytes((DETECTED_MESSAGE_TYPE,))


def read_frame(
    data: bytes,
    record: CameraRecord,
    family: Family | None,
    bytes_max: int,
    *,
    receipt: MessageReceipt | None,
    takes_frame: Callable[[], bool],
) -> ArrivedFrame:
    """Read a frame, whichever kind it is; what is wrong after its header is noted in it.

    Args:
        data: the whole message; of one that was cut, its first bytes.
        record: its camera.
        family: that its camera runs on.
        bytes_max: limit of what follows the header (limits.frame_bytes_max).
        receipt: when its bytes arrived; None: unknown.
        takes_frame: says whether to read a frame whose receipt is unknown, which arrived unasked.

    Raises:
        InvalidInputError: its header is wrong, or its camera was not offered this kind.
    """
    if receipt.cut if receipt is not None else not takes_frame():
        header = FrameHeader.decode_alone(data)
        size_bytes = len(data) if receipt is None else receipt.size_bytes
        return ArrivedFrame(header, b"", size_bytes, None, receipt=receipt, cut=True)
    if data[:1] == _DETECTED:
        return _detected(data, record, family, bytes_max, receipt)
    header, jpeg = FrameHeader.decode(data)
    picture_px: tuple[int, int] | None = None
    invalid_because = ""
    try:
        _check_length(jpeg, bytes_max, "picture has")
        picture_px = probe(jpeg)
    except InvalidInputError as error:
        invalid_because = str(error)
    return ArrivedFrame(header, jpeg, len(data), picture_px, invalid_because, receipt)


def _detected(
    data: bytes,
    record: CameraRecord,
    family: Family | None,
    bytes_max: int,
    receipt: MessageReceipt | None,
) -> ArrivedFrame:
    header, content = detected_header(data)
    if record.offer is None or family is None:
        raise InvalidInputError(
            "a frame with detections is taken only where the welcome has a placement; send "
            'pictures, or say "placement": true in the hello'
        )
    detected: DetectedFrame | None = None
    invalid_because = ""
    try:
        _check_length(content, bytes_max, "detections and crops have")
        limits = limits_of(record.offer, family)
        detected = DetectedFrame.decode(data, header, content, limits)
        check_pictures(detected)
    except InvalidInputError as error:
        invalid_because = str(error)
    return ArrivedFrame(header, b"", len(data), None, invalid_because, receipt, detected)


def _check_length(content: memoryview, bytes_max: int, what: str) -> None:
    if len(content) > bytes_max:
        raise InvalidInputError(
            f"the {what} {len(content)} bytes; at most {bytes_max} are taken "
            "(limits.frame_bytes_max)"
        )
