"""Owns the entry point of the wire protocol: every message, and how to read a text message.

The messages are defined in `from_camera`, `from_box` and `protocol` (those that both send); import
them from here. Each is a frozen value with `encode() -> bytes`. Text messages are WebSocket text,
frames are binary. Pure: no clock, no I/O.
"""

from collections.abc import Iterable

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import parse_object, shown
from edgebox.link.fleet_messages import OtherBoxes, Redirect
from edgebox.link.from_box import (
    Ack,
    AdviceMessage,
    BoxPong,
    DropNotice,
    Ping,
    Result,
    Timing,
    TrackedDetection,
    Welcome,
    WireDetection,
)
from edgebox.link.from_camera import CameraPing, FrameHeader, Hello, Pong, Report
from edgebox.link.protocol import (
    BAD_MESSAGES_CLOSE_CODE,
    BAD_MESSAGES_MAX,
    ERROR_CODES,
    FRAME_HEADER_BYTES,
    FRAME_NUMBER_MAX,
    HELLO_TIMEOUT_NS,
    NAME_PATTERN,
    SILENCE_MAX_NS,
    SOURCE_BACK,
    SOURCE_LOST,
    VERSION,
    VERSIONS,
    Bye,
    ErrorCode,
    ErrorMessage,
)

__all__ = [
    "BAD_MESSAGES_CLOSE_CODE",
    "BAD_MESSAGES_MAX",
    "ERROR_CODES",
    "FRAME_HEADER_BYTES",
    "FRAME_NUMBER_MAX",
    "HELLO_TIMEOUT_NS",
    "NAME_PATTERN",
    "SILENCE_MAX_NS",
    "SOURCE_BACK",
    "SOURCE_LOST",
    "VERSION",
    "VERSIONS",
    "Ack",
    "AdviceMessage",
    "BoxMessage",
    "BoxPong",
    "Bye",
    "CameraMessage",
    "CameraPing",
    "DropNotice",
    "ErrorCode",
    "ErrorMessage",
    "FrameHeader",
    "Hello",
    "OtherBoxes",
    "Ping",
    "Pong",
    "Redirect",
    "Report",
    "Result",
    "Timing",
    "TrackedDetection",
    "Welcome",
    "WireDetection",
    "decode_from_box",
    "decode_from_camera",
]

CameraMessage = Hello | Pong | CameraPing | Report | ErrorMessage | Bye
BoxMessage = (
    Welcome
    | Ack
    | Result
    | DropNotice
    | AdviceMessage
    | Ping
    | BoxPong
    | ErrorMessage
    | Bye
    | Redirect
    | OtherBoxes
)

_FROM_CAMERA: dict[object, type[CameraMessage]] = {
    message_type.TYPE: message_type
    for message_type in (Hello, Pong, CameraPing, Report, ErrorMessage, Bye)
}
_FROM_BOX: dict[object, type[BoxMessage]] = {
    message_type.TYPE: message_type
    for message_type in (
        Welcome,
        Ack,
        Result,
        DropNotice,
        AdviceMessage,
        Ping,
        BoxPong,
        ErrorMessage,
        Bye,
        Redirect,
        OtherBoxes,
    )
}


def decode_from_camera(text: str | bytes) -> CameraMessage:
    """Read a text message from a camera.

    Raises:
        InvalidInputError: not JSON, an unknown type, or wrong fields; the message says which.
    """
    fields = parse_object(text)
    message_type = _FROM_CAMERA.get(_type_of(fields))
    if message_type is None:
        raise _unknown_type(fields, _FROM_CAMERA)
    return message_type.decode(fields)


def decode_from_box(text: str | bytes) -> BoxMessage:
    """Read a text message from the box.

    Raises:
        InvalidInputError: not JSON, an unknown type, or wrong fields; the message says which.
    """
    fields = parse_object(text)
    message_type = _FROM_BOX.get(_type_of(fields))
    if message_type is None:
        raise _unknown_type(fields, _FROM_BOX)
    return message_type.decode(fields)


def _type_of(fields: dict[str, object]) -> str | None:
    message_type = fields.get("type")
    return message_type if isinstance(message_type, str) else None


def _unknown_type(fields: dict[str, object], known: Iterable[object]) -> InvalidInputError:
    names = ", ".join(str(name) for name in known)
    return InvalidInputError(f"type must be one of {names}, not {shown(fields.get('type'))}")
