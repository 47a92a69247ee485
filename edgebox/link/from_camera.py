"""Owns the messages that only a camera sends: hello, frames, pong, ping, report.

Decoding validates everything: a wrong message raises InvalidInputError that names every wrong
field. Pure: no clock, no I/O; the caller checks whether a message is allowed at this point.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import orjson

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import INSTANT_MAX_NS, FieldReader
from edgebox.link.deadlines import LaterDeadlines, read_deadlines, written_deadlines
from edgebox.link.protocol import (
    DETECTED_MESSAGE_TYPE,
    FRAME_HEADER_BYTES,
    FRAME_MESSAGE_TYPE,
    NAME_PATTERN,
    NAME_WANTED,
    OWN_SIDE_MAX_PX,
    VERSION,
    VERSIONS,
)

_FRAME_STRUCT = struct.Struct("<BBHIQQHHI")
SKIP_REASONS_MAX = 16
SLO_MS = 300.0
SLO_MIN_MS = 1
SLO_MAX_MS = 60_000
RATE_HZ = 10.0
RATE_MAX_HZ = 1_000


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """The 32 bytes before each JPEG; see the table in docs/reference/protocol.md, section 3."""

    frame: int
    captured_ns: int
    sent_ns: int
    width_px: int
    height_px: int
    captured_total: int

    def encode(
        self, kind: int = FRAME_MESSAGE_TYPE, header_bytes: int = FRAME_HEADER_BYTES
    ) -> bytes:
        """Return these 32 bytes; the rest of a longer header or the JPEG follows."""
        return _FRAME_STRUCT.pack(
            kind,
            VERSION,
            header_bytes,
            self.frame,
            self.captured_ns,
            self.sent_ns,
            self.width_px,
            self.height_px,
            self.captured_total,
        )

    @classmethod
    def decode(
        cls,
        message: bytes | memoryview,
        kind_wanted: int = FRAME_MESSAGE_TYPE,
        header_bytes_min: int = FRAME_HEADER_BYTES,
    ) -> tuple[Self, memoryview]:
        """Split a binary message into its header and its JPEG, which is neither copied nor read.

        Args:
            message: the whole message.
            kind_wanted: the kind of message that it must be.
            header_bytes_min: the least length of that kind's header.

        Raises:
            InvalidInputError: too short, another type or version, or impossible field values.
        """
        if len(message) < header_bytes_min:
            raise InvalidInputError(
                f"a frame starts with a header of {header_bytes_min} bytes; "
                f"this message has {len(message)} bytes in all"
            )
        kind, version, header_bytes, *numbers = _FRAME_STRUCT.unpack_from(message)
        if kind != kind_wanted:
            raise InvalidInputError(f"a frame's kind must be {kind_wanted}, not {kind}")
        if version != VERSION:
            raise InvalidInputError(f"a frame's version must be {VERSION}, not {version}")
        if not header_bytes_min <= header_bytes <= len(message):
            raise InvalidInputError(
                f"a frame's header_bytes must be from {header_bytes_min} to the "
                f"{len(message)} bytes of the message, not {header_bytes}"
            )
        return cls._checked(numbers), memoryview(message)[header_bytes:]

    @classmethod
    def decode_alone(cls, start: bytes) -> Self:
        """Read the header of a frame of either kind, of which nothing else was read.

        Raises:
            InvalidInputError: as `decode`.
        """
        if len(start) < FRAME_HEADER_BYTES:
            return cls.decode(start)[0]
        kind, version, _, *numbers = _FRAME_STRUCT.unpack_from(start)
        if version != VERSION or kind not in (FRAME_MESSAGE_TYPE, DETECTED_MESSAGE_TYPE):
            return cls.decode(start)[0]
        return cls._checked(numbers)

    @classmethod
    def _checked(cls, numbers: list[int]) -> Self:
        header = cls(*numbers)
        header._check()
        return header

    def _check(self) -> None:
        if not self.captured_ns <= self.sent_ns <= INSTANT_MAX_NS:
            raise InvalidInputError(
                f"a frame's sent_ns ({self.sent_ns}) must not be before its captured_ns "
                f"({self.captured_ns}), and both must fit in 63 bits"
            )
        if not (self.width_px and self.height_px):
            raise InvalidInputError(
                f"a frame's width_px and height_px must be at least 1, "
                f"not {self.width_px} × {self.height_px}"
            )


@dataclass(frozen=True, slots=True)
class Hello:
    """A camera's first message: its settings."""

    TYPE: ClassVar = "hello"
    camera: str
    width_px: int
    height_px: int
    versions: tuple[int, ...] = VERSIONS
    instance: str | None = None
    slo_ms: float = SLO_MS
    """The deadline; of several, the first."""
    rate_hz: float = RATE_HZ
    app: str = "default"
    family: str | None = None
    min_accuracy: float = 0.0
    min_rate_hz: float = 0.0
    site: str | None = None
    """The site of the cameras that share its uplink."""
    agent: str = ""
    later: LaterDeadlines = ()
    """The later deadlines; on the wire all deadlines are in `slo_ms`."""
    pipeline: str | None = None
    """The pipeline that its frames run through; None: the box's default, if it names no family."""
    placement: bool = False
    """Whether it can run the first stage of its frames itself."""
    redirects: int | None = None
    """How often it was redirected since its last welcome; None: it does not follow redirects."""
    named: frozenset[str] = field(default=frozenset(), compare=False)
    """The fields that a received message has; the others are at their defaults."""

    @property
    def last_slo_ms(self) -> float:
        """The deadline after which an answer has no utility."""
        return self.later[-1][0] if self.later else self.slo_ms

    def encode(self) -> bytes:
        """Return the message as JSON."""
        fields = orjson.loads(orjson.dumps(self, default=list))
        del fields["later"], fields["named"]
        if not self.placement:
            del fields["placement"]
        fields["slo_ms"] = written_deadlines(self.slo_ms, self.later)
        kept = {name: value for name, value in fields.items() if value not in (None, "")}
        return orjson.dumps({"type": self.TYPE, **kept})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON.

        Raises:
            InvalidInputError: lists every wrong field.
        """
        read = FieldReader("hello", fields)
        versions = read.items("versions", 16)
        numbers = tuple(v for v in versions if isinstance(v, int) and not isinstance(v, bool))
        if (versions and len(numbers) < len(versions)) or fields.get("versions") == []:
            read.refuse("versions", "must be an array of 1 to 16 integers", versions)
        hello = cls(
            camera=read.text("camera", pattern=NAME_PATTERN, expected=NAME_WANTED),
            width_px=read.integer("width_px", 1, OWN_SIDE_MAX_PX),
            height_px=read.integer("height_px", 1, OWN_SIDE_MAX_PX),
            versions=numbers,
            instance=read.text("instance", "", length_min=1) or None,
            slo_ms=(deadlines := _deadlines(read, fields))[0],
            rate_hz=(rate_hz := read.number("rate_hz", 0, RATE_MAX_HZ, RATE_HZ, above=True)),
            app=read.text("app", "default", pattern=NAME_PATTERN, expected=NAME_WANTED),
            family=read.text("family", "", length_min=1) or None,
            min_accuracy=read.number("min_accuracy", 0, 1, 0.0),
            min_rate_hz=_least_rate(read, rate_hz),
            site=_name(read, fields, "site"),
            pipeline=_name(read, fields, "pipeline", may_be_empty=True),
            agent=read.text("agent", "", length_max=128),
            later=deadlines[1],
            placement=read.flag("placement", False),
            redirects=read.count("redirects") if "redirects" in read else None,
            named=frozenset(name for name, value in fields.items() if value not in (None, "")),
        )
        read.finish()
        return hello

    def common_version(self) -> int | None:
        """Return the highest version that both sides support; None if there is none."""
        return max(set(self.versions) & set(VERSIONS), default=None)


def _deadlines(read: FieldReader, fields: dict[str, object]) -> tuple[float, LaterDeadlines]:
    """Read `slo_ms`: a number, or pairs of deadline and utility."""
    written = fields.get("slo_ms")
    if not isinstance(written, list):
        return read.number("slo_ms", SLO_MIN_MS, SLO_MAX_MS, SLO_MS), ()
    try:
        return split_slo(written)
    except InvalidInputError as error:
        read.errors.append(str(error))
        return SLO_MS, ()


def _name(
    read: FieldReader, fields: dict[str, object], field_name: str, *, may_be_empty: bool = False
) -> str | None:
    """Read a name that may be absent; an empty one is, where it may be empty."""
    given = fields.get(field_name)
    if given is None or (may_be_empty and given == ""):
        return None
    return read.text(field_name, pattern=NAME_PATTERN, expected=NAME_WANTED)


def _least_rate(read: FieldReader, rate_hz: float) -> float:
    """Read `min_rate_hz`, which may not exceed the rate that the camera would like to send."""
    least_hz = read.number("min_rate_hz", 0, RATE_MAX_HZ, 0.0)
    if 0 < rate_hz < least_hz:  # a rate_hz that is wrong itself reads as 0
        read.refuse("min_rate_hz", f"must not be above rate_hz ({rate_hz:g}), not {least_hz:g}")
    return least_hz


def split_slo(slo_ms: float | Sequence[object]) -> tuple[float, LaterDeadlines]:
    """Return the first deadline and the later ones, from a number or from pairs.

    Raises:
        InvalidInputError: the pairs are wrong; a number is not checked.
    """
    if isinstance(slo_ms, int | float):
        return slo_ms, ()
    try:
        return read_deadlines(slo_ms, SLO_MIN_MS, SLO_MAX_MS)
    except InvalidInputError as error:
        raise InvalidInputError(f"hello.slo_ms{error}") from None


@dataclass(frozen=True, slots=True)
class Pong:
    """The camera's clock, in answer to a ping."""

    TYPE: ClassVar = "pong"
    id: int
    camera_ns: int

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps({"type": "pong", "id": self.id, "camera_ns": self.camera_ns})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("pong", fields)
        pong = cls(id=read.count("id"), camera_ns=read.instant("camera_ns"))
        read.finish()
        return pong


@dataclass(frozen=True, slots=True)
class CameraPing:
    """A camera asks for a sign of life; for cameras that cannot send a WebSocket ping."""

    TYPE: ClassVar = "ping"
    id: int

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps({"type": "ping", "id": self.id})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("ping", fields)
        ping = cls(id=read.count("id"))
        read.finish()
        return ping


@dataclass(frozen=True, slots=True)
class Report:
    """A camera's frame counts since its hello. None: it did not report the value."""

    TYPE: ClassVar = "report"
    captured: int | None = None
    sent: int | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    on_time: int | None = None
    late: int | None = None

    def encode(self) -> bytes:
        """Return the message as JSON."""
        counts = {
            "captured": self.captured,
            "sent": self.sent,
            "skipped": dict(self.skipped),
            "on_time": self.on_time,
            "late": self.late,
        }
        known = {name: value for name, value in counts.items() if value is not None}
        return orjson.dumps({"type": "report", **known})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("report", fields)
        skipped = read.inner("skipped", optional=True)
        reasons = skipped.names()
        if len(reasons) > SKIP_REASONS_MAX or any(len(reason) > 64 for reason in reasons):
            read.refuse(
                "skipped", f"must have at most {SKIP_REASONS_MAX} reasons of at most 64 characters"
            )
            reasons = []
        counts = {
            name: read.count(name)
            for name in ("captured", "sent", "on_time", "late")
            if fields.get(name) is not None
        }
        report = cls(skipped={reason: skipped.count(reason, 0) for reason in reasons}, **counts)
        read.finish()
        return report
