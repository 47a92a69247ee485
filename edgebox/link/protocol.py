"""Owns what both directions of the wire share: limits, the table of errors, error and bye.

The protocol is docs/reference/protocol.md, version 1. Pure: no clock, no I/O.
"""

import re
from dataclasses import dataclass
from typing import ClassVar, Self

import orjson

from edgebox.domain.field_reader import FieldReader

VERSION = 1
VERSIONS = (1,)
HELLO_TIMEOUT_NS = 10_000_000_000
SILENCE_MAX_NS = 30_000_000_000
BAD_MESSAGES_MAX = 100
BAD_MESSAGES_CLOSE_CODE = 4006

FRAME_MESSAGE_TYPE = 70
FRAME_HEADER_BYTES = 32
DETECTED_MESSAGE_TYPE = 68
DETECTED_HEADER_BYTES = 44
OWN_SIDE_MAX_PX = 65535
"""The largest side of a camera's own picture: the maximum of the header's fields."""
FRAME_NUMBER_MAX = 2**32 - 1

NAME_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""Valid names of cameras and applications; use fullmatch."""
NAME_WANTED = "1 to 64 letters, digits, '.', '_' or '-'"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row of the table of errors; it is fatal if and only if it has a close code."""

    code: str
    close_code: int | None
    meaning: str

    @property
    def fatal(self) -> bool:
        """Say whether the connection ends with it."""
        return self.close_code is not None


ERROR_CODES = {
    row.code: row
    for row in (
        ErrorCode("bad_hello", 4001, "hello missing, malformed or late"),
        ErrorCode("version", 4002, "no common protocol version"),
        ErrorCode("camera_in_use", 4003, "another camera with this name is connected"),
        ErrorCode("unknown_family", 4004, "the box has no such model family"),
        ErrorCode("too_large", 4005, "a message above frame_bytes_max"),
        ErrorCode("bad_message", None, "a text message that is not understood"),
        ErrorCode("too_slow", 4007, "the camera does not read what the box sends"),
        ErrorCode("box_full", 4008, "as many cameras as the box is configured for"),
        ErrorCode("silent", 4009, "nothing was heard from the camera for 30 s"),
        ErrorCode("replaced", 4010, "a newer connection of the same camera took over"),
        ErrorCode("no_capacity", 4011, "serving this camera would take service from others"),
        ErrorCode("too_fast", 4012, "more small messages a second than the box takes"),
        ErrorCode("unavailable", 4013, "no executor that runs its model family is up just now"),
        ErrorCode(
            "unknown_pipeline",
            4014,
            "the box has no such pipeline, or it begins with another family",
        ),
        ErrorCode("forbidden", 4015, "the token is of another camera, or the name has a token"),
    )
}


SOURCE_LOST = "source_lost"
"""Code of an error message: the camera's own source gives no pictures."""
SOURCE_BACK = "source_back"
"""It gives pictures again."""


@dataclass(frozen=True, slots=True)
class ErrorMessage:
    """An error report; if it is fatal, the connection closes."""

    TYPE: ClassVar = "error"
    code: str
    message: str
    fatal: bool
    remedy: str = ""
    """What a person can do about it, in the imperative; empty: that is not said."""

    def encode(self) -> bytes:
        """Return the message as JSON."""
        fields = {"code": self.code, "message": self.message, "fatal": self.fatal}
        told = {"remedy": self.remedy} if self.remedy else {}
        return orjson.dumps({"type": "error", **fields, **told})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("error", fields)
        error = cls(
            code=read.text("code"),
            message=read.text("message", "", length_max=4096),
            fatal=read.flag("fatal", False),
            remedy=read.text("remedy", "", length_max=1024),
        )
        read.finish()
        return error


@dataclass(frozen=True, slots=True)
class Bye:
    """The sender is about to close the connection."""

    TYPE: ClassVar = "bye"
    reason: str = ""

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps({"type": "bye", "reason": self.reason})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("bye", fields)
        bye = cls(reason=read.text("reason", "", length_max=1024))
        read.finish()
        return bye
