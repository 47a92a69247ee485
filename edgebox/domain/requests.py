"""What a camera and a request are, and how a request can end. Pure data."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from edgebox.domain.models import FamilyName, VariantName

CameraId = NewType("CameraId", str)
RequestId = NewType("RequestId", int)
BatchId = NewType("BatchId", int)


class Outcome(StrEnum):
    """How a request ended; every request ends exactly once."""

    ON_TIME = "on_time"
    LATE = "late"
    DROPPED = "dropped"


class DropReason(StrEnum):
    """Why a frame was not answered."""

    SENDER = "sender"
    """The camera never sent it (a newer frame, or no time left on the link)."""
    QUEUE = "queue"
    """While it waited, its deadline came out of reach."""
    INFEASIBLE = "infeasible"
    """On arrival there was already too little time left."""
    INVALID = "invalid"
    """Not a picture the box can decode."""
    OVERLOAD = "overload"
    """Too many frames of this camera, or of all, are at the box."""
    FAILED = "failed"
    """The model failed on its batch."""
    DEPARTED = "departed"
    """Its camera left before the answer."""
    SHUTDOWN = "shutdown"
    """The box is stopping."""


@dataclass(frozen=True, slots=True)
class Camera:
    """What a camera asked for in its hello. Sizes are of its own picture."""

    id: CameraId
    app: str
    family: FamilyName
    slo_ns: int
    rate_hz: float
    width_px: int
    height_px: int
    min_accuracy: float = 0.0


@dataclass(frozen=True, slots=True)
class Request:
    """One frame at the box. The core sees numbers only; the pixels stay in the runtime.

    `deadline_ns` is the compute deadline: capture + SLO less the way back. Instants are on the
    box's monotonic clock.
    """

    id: RequestId
    camera: CameraId
    app: str
    captured_ns: int
    arrival_ns: int
    deadline_ns: int
    width_px: int
    height_px: int
    """Size of the picture that was sent."""
    size_bytes: int
    variant: VariantName | None = None
    """Run on exactly this variant (one-shot use), else the plan decides."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """What is known of one camera's link. None: not known yet."""

    bandwidth_bps: float | None = None
    rtt_ns: int | None = None
    """Least round trip of the window."""
    clock_error_ns: int | None = None
    bytes_per_pixel: float | None = None
    """A high quantile of JPEG bytes per pixel of a picture of 256x256, learnt from this camera's
    own frames of any size."""
