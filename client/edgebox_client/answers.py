"""What a box answers, typed: what is in a picture, results of cameras' frames, cameras."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Detection:
    """One object that was found."""

    label: str
    score: float
    box: tuple[float, float, float, float]
    """x1, y1, x2, y2 in pixels of the picture as it was captured."""
    label_id: int
    """The label's number in its family."""
    track: int | None = None
    """Which object of earlier pictures it is; None: it is not tracked."""
    attribute: str | None = None
    """The attribute that the label belongs to, for a classifier with several."""
    embedding: Sequence[float] | None = None
    """Of a family of embeddings: a vector of length 1."""
    stages: Mapping[str, Mapping[str, Any]] | None = None
    """What later stages of a pipeline say, by stage; None: nothing."""

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Read one of a box's document."""
        x1, y1, x2, y2 = fields["box"]
        return cls(
            label=fields["label"],
            score=fields["score"],
            box=(x1, y1, x2, y2),
            label_id=fields["label_id"],
            track=fields.get("track"),
            attribute=fields.get("attribute"),
            embedding=fields.get("embedding"),
            stages=fields.get("stages"),
        )


@dataclass(frozen=True, slots=True)
class Timing:
    """Where an answer's time went, in ms."""

    network: float
    """From the capture to the arrival at the box."""
    queue: float
    inference: float
    return_: float
    """What the way back is expected to take."""
    total: float
    batch_size: int
    """How many frames ran together."""

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Read one of a box's document."""
        return cls(
            network=fields["network"],
            queue=fields["queue"],
            inference=fields["inference"],
            return_=fields["return"],
            total=fields["total"],
            batch_size=int(fields["batch_size"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found in a picture, best first."""

    detections: Sequence[Detection]
    on_time: bool
    """Whether it was ready by the deadline."""
    variant: str
    """The variant of the model that ran."""
    width_px: int
    height_px: int
    timing_ms: Timing
    missing: Sequence[str] = ()
    """Stages of a pipeline that did not answer in time for some object."""

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Read a box's document."""
        return cls(**_answer(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraResult(Answer):
    """What was found in one frame of a camera."""

    camera: str
    frame: int
    """The camera's own number."""
    captured_at: datetime
    """By the box's clock."""
    app: str
    family: str
    zones: Mapping[str, Mapping[str, int]]
    """Of a tracked camera: objects in each zone, by label."""
    lines: Mapping[str, Mapping[str, Mapping[str, int]]]
    """Crossings of each line, by direction and label."""
    events: Sequence[Mapping[str, Any]]
    """What happened in zones and on lines with this frame."""

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Read a message of the type "result"."""
        return cls(
            **_answer(fields),
            camera=fields["camera"],
            frame=fields["frame"],
            captured_at=datetime.fromtimestamp(fields["captured_at_ms"] / 1e3, UTC),
            app=fields["app"],
            family=fields["family"],
            zones=fields.get("zones", {}),
            lines=fields.get("lines", {}),
            events=fields.get("events", ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCamera:
    """A camera that the box knows, and its settings by name."""

    id: str
    connected: bool
    requested: Mapping[str, Any]
    """What it asks for itself; None where it is not known."""
    overrides: Mapping[str, Any]
    """What is set for it on the box; None: nothing."""
    in_force: Mapping[str, Any] | None
    """What holds; None: it has not connected since the box started, or not for ten minutes."""
    versions: Mapping[str, str]
    """Of each field of `overrides`, for the `base` of a change."""

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Read a camera of a box's document."""
        return cls(**{field.name: fields[field.name] for field in dataclass_fields(cls)})


def _answer(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "detections": tuple(map(Detection.read, fields["detections"])),
        "on_time": fields["outcome"] == "on_time",
        "variant": fields["variant"],
        "width_px": fields["width_px"],
        "height_px": fields["height_px"],
        "timing_ms": Timing.read(fields["timing_ms"]),
        "missing": tuple(fields.get("missing", ())),
    }
