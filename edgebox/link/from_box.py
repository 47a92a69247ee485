"""Owns the messages that only the box sends: welcome, ack, result, drop, advice, ping, pong.

Encoding builds one dict and leaves the rest to orjson: about 1 us for an ack. Decoding validates
everything: a wrong message raises InvalidInputError that names every wrong field. Pure: no clock,
no I/O; the caller checks whether a message is allowed at this point.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import orjson

from edgebox.domain.cascades import CascadeOutcome, cascade_json
from edgebox.domain.field_reader import INTEGER_MAX, FieldReader
from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import DropReason, Outcome, StagePlacement
from edgebox.link.from_camera import SLO_MAX_MS
from edgebox.link.placement_offer import PlacementOffer, placement_json
from edgebox.link.protocol import FRAME_NUMBER_MAX, OWN_SIDE_MAX_PX

_DETECTIONS_MAX = 100_000
_TIME_MAX_MS = 1e9


@dataclass(frozen=True, slots=True)
class Welcome:
    """The box accepts a camera."""

    TYPE: ClassVar = "welcome"
    version: int
    camera: str
    box: str
    clock_ns: int
    frame_bytes_max: int
    unacknowledged_max: int
    family: str
    labels: tuple[str, ...]
    advice: Advice
    slo_ms: float | None = None
    """The deadline that was set on the box; None: the hello's."""
    pipeline: str | None = None
    """The pipeline that its frames run through; None: they run on the family only."""
    placement: PlacementOffer | None = None
    """What it needs to run the first stage itself; None: it did not ask, or cannot."""

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps(
            {
                "type": self.TYPE,
                "version": self.version,
                "camera": self.camera,
                "box": self.box,
                "clock_ns": self.clock_ns,
                "frame_bytes_max": self.frame_bytes_max,
                "unacknowledged_max": self.unacknowledged_max,
                "family": self.family,
                "labels": self.labels,
                "advice": self.advice,
                **_deadline(self.slo_ms),
                **({} if self.pipeline is None else {"pipeline": self.pipeline}),
                **({} if self.placement is None else {"placement": self.placement.to_json()}),
            }
        )

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("welcome", fields)
        labels = read.items("labels", 100_000)
        welcome = cls(
            version=read.integer("version", 1, 255),
            camera=read.text("camera"),
            box=read.text("box", "", length_max=128),
            clock_ns=read.instant("clock_ns"),
            frame_bytes_max=read.integer("frame_bytes_max", 1, INTEGER_MAX),
            unacknowledged_max=read.integer("unacknowledged_max", 1, INTEGER_MAX),
            family=read.text("family", "", length_max=128),
            labels=tuple(str(label) for label in labels),
            advice=_advice(read),
            slo_ms=_read_deadline(read),
            pipeline=read.text("pipeline", "", length_max=128) or None,
            placement=PlacementOffer.read(read.inner("placement")) if "placement" in read else None,
        )
        read.finish()
        return welcome


@dataclass(frozen=True, slots=True)
class Ack:
    """A frame was received completely."""

    TYPE: ClassVar = "ack"
    frame: int
    received_ns: int
    accepted: bool
    advice: Advice

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps(
            {
                "type": "ack",
                "frame": self.frame,
                "received_ns": self.received_ns,
                "accepted": self.accepted,
                "advice": self.advice,
            }
        )

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("ack", fields)
        ack = cls(
            frame=read.integer("frame", 0, FRAME_NUMBER_MAX),
            received_ns=read.instant("received_ns"),
            accepted=read.flag("accepted"),
            advice=_advice(read),
        )
        read.finish()
        return ack


@dataclass(frozen=True, slots=True)
class WireDetection:
    """One detected object, in pixels of the camera's own picture."""

    label: str
    score: float
    box: tuple[float, float, float, float]
    """x1, y1, x2, y2."""
    stages: Mapping[str, object] = field(default_factory=dict)
    """What the later stages of the pipeline say about it, by the stage's name."""

    def to_json(self) -> dict[str, object]:
        """Return the fields in their wire format."""
        plain = {"label": self.label, "score": self.score, "box": self.box}
        return {**plain, "stages": self.stages} if self.stages else plain


@dataclass(frozen=True, slots=True)
class TrackedDetection(WireDetection):
    """A detected object of a camera that is tracked."""

    track: int | None = None
    """The number of the object; None: it has none yet."""

    def to_json(self) -> dict[str, object]:
        """Return the fields in their wire format."""
        # `super()` does not work in a dataclass with slots.
        return {**WireDetection.to_json(self), "track": self.track}


@dataclass(frozen=True, slots=True)
class Timing:
    """The parts of a frame's latency, by the box's estimate."""

    network_ms: float
    queue_ms: float
    inference_ms: float
    return_ms: float
    total_ms: float
    batch_size: int

    def to_json(self) -> dict[str, float]:
        """Return the fields in their wire format."""
        return {
            "network": self.network_ms,
            "queue": self.queue_ms,
            "inference": self.inference_ms,
            "return": self.return_ms,
            "total": self.total_ms,
            "batch_size": self.batch_size,
        }


@dataclass(frozen=True, slots=True)
class Result:
    """The detections of a frame."""

    TYPE: ClassVar = "result"
    frame: int
    outcome: Outcome
    variant: str
    detections: tuple[WireDetection, ...]
    timing: Timing
    advice: Advice
    missing: tuple[str, ...] = ()
    """The stages of the pipeline that some object was not answered by in time."""
    placement: StagePlacement = StagePlacement.BOX
    """Where the first stage ran."""
    cascade: CascadeOutcome | None = None
    """The model whose objects it has; None: there is no cascade."""

    def encode(self) -> bytes:
        """Return the message as JSON; round scores and boxes before, because they cost most."""
        return orjson.dumps(
            {
                "type": "result",
                "frame": self.frame,
                "outcome": self.outcome.value,
                "variant": self.variant,
                "detections": [one.to_json() for one in self.detections],
                **({"missing": self.missing} if self.missing else {}),
                **placement_json(self.placement),
                **cascade_json(self.cascade),
                "timing_ms": self.timing.to_json(),
                "advice": self.advice,
            }
        )

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("result", fields)
        result = cls(
            frame=read.integer("frame", 0, FRAME_NUMBER_MAX),
            outcome=Outcome(read.choice("outcome", (Outcome.ON_TIME.value, Outcome.LATE.value))),
            variant=read.text("variant", length_max=128),
            detections=_detections(read),
            timing=_timing(read.inner("timing_ms")),
            advice=_advice(read),
            missing=tuple(read.texts("missing")),
            placement=StagePlacement(
                read.choice("placement", tuple(StagePlacement), StagePlacement.BOX)
            ),
            cascade=CascadeOutcome(read.choice("cascade", tuple(CascadeOutcome)))
            if "cascade" in read
            else None,
        )
        read.finish()
        return result


@dataclass(frozen=True, slots=True)
class DropNotice:
    """A frame will not be answered."""

    TYPE: ClassVar = "drop"
    frame: int
    reason: DropReason
    message: str
    advice: Advice

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps(
            {
                "type": "drop",
                "frame": self.frame,
                "reason": self.reason.value,
                "message": self.message,
                "advice": self.advice,
            }
        )

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("drop", fields)
        notice = cls(
            frame=read.integer("frame", 0, FRAME_NUMBER_MAX),
            reason=DropReason(read.choice("reason", tuple(reason.value for reason in DropReason))),
            message=read.text("message", "", length_max=4096),
            advice=_advice(read),
        )
        read.finish()
        return notice


@dataclass(frozen=True, slots=True)
class AdviceMessage:
    """The advice in force has changed."""

    TYPE: ClassVar = "advice"
    advice: Advice
    slo_ms: float | None = None
    """The deadline that was set on the box; None: the hello's."""

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps({"type": "advice", "advice": self.advice, **_deadline(self.slo_ms)})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("advice", fields)
        message = cls(advice=_advice(read), slo_ms=_read_deadline(read))
        read.finish()
        return message


@dataclass(frozen=True, slots=True)
class Ping:
    """The box asks for the camera's clock."""

    TYPE: ClassVar = "ping"
    id: int
    box_ns: int

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps({"type": "ping", "id": self.id, "box_ns": self.box_ns})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("ping", fields)
        ping = cls(id=read.count("id"), box_ns=read.instant("box_ns"))
        read.finish()
        return ping


def _deadline(slo_ms: float | None) -> dict[str, float]:
    return {} if slo_ms is None else {"slo_ms": slo_ms}


def _read_deadline(read: FieldReader) -> float | None:
    # 0 is no valid deadline; it represents a missing one.
    return read.number("slo_ms", 0, SLO_MAX_MS, 0.0) or None


@dataclass(frozen=True, slots=True)
class BoxPong:
    """The box's answer to a camera's ping."""

    TYPE: ClassVar = "pong"
    id: int

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return orjson.dumps({"type": "pong", "id": self.id})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("pong", fields)
        pong = cls(id=read.count("id"))
        read.finish()
        return pong


def _advice(read: FieldReader) -> Advice:
    inner = read.inner("advice")
    return Advice(
        variant=VariantName(inner.text("variant", length_max=128)),
        width_px=inner.integer("width_px", 1, OWN_SIDE_MAX_PX),
        height_px=inner.integer("height_px", 1, OWN_SIDE_MAX_PX),
        rate_hz=inner.number("rate_hz", 0, 1_000, above=True),
        quality=inner.integer("quality", 1, 100),
        bandwidth_bps=inner.integer("bandwidth_bps", 0, INTEGER_MAX),
        reason=inner.text("reason", "", length_max=4096),
    )


def _timing(read: FieldReader) -> Timing:
    def time_ms(name: str) -> float:
        return read.number(name, -_TIME_MAX_MS, _TIME_MAX_MS)

    return Timing(
        network_ms=time_ms("network"),
        queue_ms=time_ms("queue"),
        inference_ms=time_ms("inference"),
        return_ms=time_ms("return"),
        total_ms=time_ms("total"),
        batch_size=read.count("batch_size", 1),
    )


def _detections(read: FieldReader) -> tuple[WireDetection, ...]:
    return tuple(_detection(one) for one in read.objects("detections", _DETECTIONS_MAX))


def _detection(read: FieldReader) -> WireDetection:
    label, score, box = read.text("label", length_max=1024), read.number("score", 0, 1), _box(read)
    stages = _stages(read)
    if "track" not in read:
        return WireDetection(label, score, box, stages)
    track = read.integer("track", 0, INTEGER_MAX, 0) or None
    return TrackedDetection(label, score, box, stages, track)


def _stages(read: FieldReader) -> Mapping[str, object]:
    stages = read.inner("stages", optional=True)
    return {name: stages.raw(name) for name in stages.names()}


def _box(read: FieldReader) -> tuple[float, float, float, float]:
    x1, y1, x2, y2 = read.numbers("box", -1e6, 1e6, length=4)
    return x1, y1, x2, y2
