"""Cameras, requests and the outcomes of requests. Pure data."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from edgebox.domain.cascades import Cascade
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import Pipeline, StageName

CameraId = NewType("CameraId", str)
RequestId = NewType("RequestId", int)
FrameId = NewType("FrameId", int)
"""A frame that takes several requests, by the number of its first one."""
BatchId = NewType("BatchId", int)
SiteId = NewType("SiteId", str)
"""A site: cameras that share one uplink."""


class Outcome(StrEnum):
    """The outcome of a request; every request ends exactly once."""

    ON_TIME = "on_time"
    LATE = "late"
    DROPPED = "dropped"


class StagePlacement(StrEnum):
    """Where the first stage of a frame ran."""

    BOX = "box"
    CAMERA = "camera"


class DropReason(StrEnum):
    """The reason why a frame was not answered."""

    SENDER = "sender"
    """The camera never sent it (a newer frame, or no time left on the link)."""
    PLAN = "plan"
    """The plan asks the camera for fewer frames than it captures: it was not to be sent."""
    QUEUE = "queue"
    """It expired while it waited."""
    INFEASIBLE = "infeasible"
    """On arrival there was already too little time left."""
    INVALID = "invalid"
    """Not a picture the box can decode."""
    OVERLOAD = "overload"
    """Too many frames of this camera, or of all cameras, are at the box, the executors could not
    work off its crops in time as well, or a server elsewhere had too much to do for it."""
    FAILED = "failed"
    """The model failed on its batch, or no executor that runs it is up."""
    DEPARTED = "departed"
    """Its camera left before the answer."""
    SHUTDOWN = "shutdown"
    """The box is stopping."""


@dataclass(frozen=True, slots=True)
class UtilityStep:
    """A deadline and the utility of an answer by it; an earlier deadline has a higher utility."""

    by_ns: int
    utility: float


@dataclass(frozen=True, slots=True)
class Camera:
    """The settings that a camera sent in its hello. Sizes are of its own picture."""

    id: CameraId
    app: str
    family: FamilyName
    slo_ns: int
    """An answer within it is on time and has utility 1."""
    rate_hz: float
    width_px: int
    height_px: int
    min_accuracy: float = 0.0
    min_rate_hz: float = 0.0
    """The minimum useful rate."""
    steps: tuple[UtilityStep, ...] = ()
    """Later deadlines, counted like `slo_ns` from the capture: rising, with falling utility."""
    site: SiteId | None = None
    """The site whose cameras share its uplink; None: it has its own, as far as is known."""
    pipeline: Pipeline | None = None
    """The pipeline that its frames run through; None: they run on its family only."""

    @property
    def cascade(self) -> Cascade | None:
        """The cascade that its pipeline has; None: it has none."""
        return None if self.pipeline is None else self.pipeline.cascade

    @property
    def variant_max(self) -> VariantName | None:
        """The largest variant that its frames may run on; None: the largest of its family."""
        return None if self.pipeline is None else self.pipeline.first.variant

    @property
    def last_slo_ns(self) -> int:
        """The last deadline at which an answer is worth something, counted from the capture."""
        return self.steps[-1].by_ns if self.steps else self.slo_ns

    def steps_after(self, deadline_ns: int) -> tuple[UtilityStep, ...]:
        """Return the later deadlines of a frame whose first is at this instant."""
        if not self.steps:
            return ()
        shift_ns = deadline_ns - self.slo_ns
        return tuple(UtilityStep(step.by_ns + shift_ns, step.utility) for step in self.steps)


@dataclass(frozen=True, slots=True)
class Request:
    """One frame at the box, or one crop of it for a later stage of its camera's pipeline.

    The core sees numbers only; the pixels stay in the runtime.

    `deadline_ns` is the compute deadline: capture + SLO minus the way back. An answer by it is on
    time and has utility 1; by a later one of `steps` it is late but has some utility. Instants are
    on the box's monotonic clock.
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
    """The variant to run on (one-shot use); None: the plan decides."""
    steps: tuple[UtilityStep, ...] = ()
    """Later deadlines, rising, with falling utility."""
    advised: VariantName | None = None
    """The variant of the advice that its camera followed for this frame; None: not known."""
    sent_ns: int | None = None
    """When it left its camera; None: not known."""
    frame: FrameId | None = None
    """The frame that it is a crop of; None: it is a frame itself."""
    stage: StageName | None = None
    """The pipeline's stage that a crop is for; None: it is a frame."""
    pipeline: Pipeline | None = None
    """The pipeline of a frame whose variant is given; other frames have that of their camera."""
    optional: bool = False
    """Whether its frame is answered in full without it, too: a cascade's large model."""

    @property
    def last_deadline_ns(self) -> int:
        """The instant after which an answer has no utility."""
        return self.steps[-1].by_ns if self.steps else self.deadline_ns

    def utility_at(self, at_ns: int) -> float:
        """Return the utility of an answer at this instant."""
        return utility_at(at_ns, self.deadline_ns, self.steps)


def utility_at(at_ns: int, deadline_ns: int, steps: Sequence[UtilityStep]) -> float:
    """Return the utility of an answer at an instant: 1 by the deadline, less by a later one."""
    if at_ns <= deadline_ns:
        return 1.0
    return next((step.utility for step in steps if at_ns <= step.by_ns), 0.0)


def single_deadlines(steps: Sequence[UtilityStep]) -> tuple[UtilityStep, ...]:
    """Return single deadlines whose utilities, each gained independently, add up to these steps.

    An answer by one deadline also meets all later ones, so each deadline counts with the utility
    that is lost after it.
    """
    after = [*(step.utility for step in steps[1:]), 0.0]
    return tuple(
        UtilityStep(step.by_ns, step.utility - rest)
        for step, rest in zip(steps, after, strict=True)
    )


@dataclass(frozen=True, slots=True)
class LinkState:
    """The state of one camera's link. None: not known yet."""

    bandwidth_bps: float | None = None
    rtt_ns: int | None = None
    """The least round trip of the window."""
    clock_error_ns: int | None = None
    bytes_per_pixel: float | None = None
    """A high quantile of JPEG bytes per pixel of a picture of 256x256, learned from this camera's
    own frames of any size."""
    throughput_stability: float | None = None
    """The fraction of the estimated bandwidth that frames get in bad seconds, at most 1."""
