"""Owns the events that the Scheduler takes: facts, in the past tense. Pure data.

Instants are passed separately: `now_ns` of `Scheduler.handle`, integer nanoseconds on the box's
monotonic clock. `scheduling.actions` has what the Scheduler returns.
"""

from dataclasses import dataclass

from edgebox.domain.cascades import CascadeCurve
from edgebox.domain.learned import Learned
from edgebox.domain.model_family import (
    ExecutorId,
    LatencyProfile,
    Variant,
    VariantName,
    Weights,
    WeightsId,
)
from edgebox.domain.plans import Plan
from edgebox.domain.requests import (
    BatchId,
    Camera,
    CameraId,
    DropReason,
    FrameId,
    LinkState,
    Request,
    RequestId,
)


@dataclass(frozen=True, slots=True)
class MemoryLimited:
    """An executor can hold only part of its variants' weights; without this event, all of them."""

    executor: ExecutorId
    limit_bytes: int
    weights: tuple[Weights, ...]
    """All weights; the smallest of every family fit together."""
    resident: tuple[WeightsId, ...]
    """The weights in memory now: at least the smallest of every family."""


@dataclass(frozen=True, slots=True)
class ExecutorStarted:
    """An executor is idle and has these variants warm, each with its profile."""

    executor: ExecutorId
    profiles: tuple[LatencyProfile, ...]
    opened_ns: int = 0
    """The time that opening and warming took; 0: not known."""
    memory: MemoryLimited | None = None
    """What it has in memory, if that does not hold all of them: batches may start at once."""


@dataclass(frozen=True, slots=True)
class ProfilesChanged:
    """An executor that is up runs these variants from now on, each with its profile.

    They replace all that it had, once the batch or sample that it runs has ended.
    """

    executor: ExecutorId
    profiles: tuple[LatencyProfile, ...]


@dataclass(frozen=True, slots=True)
class ExecutorStopped:
    """An executor was stopped on purpose, with the batch it ran; it is not opened again."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class ExecutorHung:
    """Work that was not ordered, such as a measurement, does not return from an executor."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class ExecutorLent:
    """Work that was not ordered begins on an executor, or has ended; what is ordered waits."""

    executor: ExecutorId
    lent: bool


@dataclass(frozen=True, slots=True)
class ExecutorGone:
    """What runs an executor's batches, a process or a node, has ended, and reads no more inputs."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class OpenFailed:
    """An `Open` has ended without an executor."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class WeightsLoaded:
    """A `Load` has succeeded: the weights are in memory and warm."""

    executor: ExecutorId
    weights: WeightsId


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """A `Load` has ended, and the weights are not in memory."""

    executor: ExecutorId
    weights: WeightsId


@dataclass(frozen=True, slots=True)
class LoadReturned:
    """A load has returned whose executor was lost meanwhile: its thread no longer hangs."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class VariantsAvailable:
    """The zoo now holds exactly these variants (all families).

    Nothing is known of one that it did not hold before: its name may have been another model's.
    """

    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class CameraConnected:
    """A camera has sent its hello."""

    camera: Camera


@dataclass(frozen=True, slots=True)
class CameraChanged:
    """A connected camera's settings were changed on the box; its link and its frames stay."""

    camera: Camera


@dataclass(frozen=True, slots=True)
class CameraDisconnected:
    """A camera is gone; its answers are no longer needed."""

    camera: CameraId


@dataclass(frozen=True, slots=True)
class RequestCancelled:
    """Nobody needs the answer of a request any more: who sent the picture has left."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class CascadeMeasured:
    """What the cascade of a camera does on its last pictures, by the share that is sent on."""

    camera: CameraId
    curve: CascadeCurve


@dataclass(frozen=True, slots=True)
class LinkMeasured:
    """The estimate of a camera's link changed."""

    camera: CameraId
    link: LinkState


@dataclass(frozen=True, slots=True)
class RequestArrived:
    """A frame has arrived completely and is not decoded yet."""

    request: Request


@dataclass(frozen=True, slots=True)
class FrameDetected:
    """A frame has arrived whose first stage its camera has run: with its detections and crops."""

    request: Request
    spawned: tuple[Request, ...] = ()
    """The crops for later stages of its camera's pipeline."""


@dataclass(frozen=True, slots=True)
class RequestPrepared:
    """A frame is decoded at the size its `Prepare` asked for.

    `took_ns` counts from the order, so it includes the wait for a decoding thread.
    """

    request: RequestId
    took_ns: int


@dataclass(frozen=True, slots=True)
class CropsPrepared:
    """Crops of one frame were cut and scaled to the sizes that their `Prepare`s asked for."""

    requests: tuple[RequestId, ...]
    took_ns: int | None = None
    """Counts from the order, as in `RequestPrepared`; None: there was nothing to cut."""


@dataclass(frozen=True, slots=True)
class PartialAnswered:
    """An answer without some of its stages was written to its connection."""

    took_ns: int
    """Since it was due, or since the call that ended it if nothing was due."""


@dataclass(frozen=True, slots=True)
class RequestRejected:
    """A frame could not be decoded."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class RequestsUnanswered:
    """A batch has come back without an answer to these members.

    It ends with a BatchCompleted, of the others if there are any: at once, or after its executor
    has rested.
    """

    executor: ExecutorId
    batch: BatchId
    requests: tuple[RequestId, ...]
    reason: DropReason
    """`overload`: a server has too much to do, and others may run them; `invalid`: they are no
    pictures that can be decoded; `failed`: the model gives nothing for them."""
    rests_ns: int = 0
    """For how long the executor rests from now on, because a server has too much to do."""


@dataclass(frozen=True, slots=True)
class BatchCompleted:
    """A batch has completed; its results are ready to send. `took_ns` is its execution only."""

    executor: ExecutorId
    batch: BatchId
    took_ns: int
    spawned: tuple[Request, ...] = ()
    """The crops that later stages of the members' pipelines take."""


@dataclass(frozen=True, slots=True)
class CropsSpawned:
    """A `SpawnCrops` was carried out: the crops of what a frame's first stage has found."""

    frame: FrameId
    spawned: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class RequestSampled:
    """The measured time of a request that ran in a batch of its own, elsewhere or earlier."""

    executor: ExecutorId
    variant: VariantName
    app: str
    took_ns: int


@dataclass(frozen=True, slots=True)
class LearningRestored:
    """The knowledge of the box from before a restart, each value with its age."""

    learned: Learned


@dataclass(frozen=True, slots=True)
class SampleCompleted:
    """A `Sample` has completed; its results are discarded. `took_ns` is its execution only."""

    executor: ExecutorId
    batch: BatchId
    took_ns: int
    refused: bool = False
    """Whether a server had too much to do for it."""


@dataclass(frozen=True, slots=True)
class SampleFailed:
    """The model raised on a `Sample`; the executor is idle again."""

    executor: ExecutorId
    batch: BatchId


@dataclass(frozen=True, slots=True)
class BatchFailed:
    """The model raised on a batch, or the connection to what runs it broke; it is idle again."""

    executor: ExecutorId
    batch: BatchId
    disconnected: bool = False


@dataclass(frozen=True, slots=True)
class PlanComputed:
    """The planner has answered a `ComputePlan`."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """The planner has failed; the plan in force stays."""


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The box is stopping: drop what waits, accept nothing more; running batches may finish."""


Event = (
    ExecutorStarted
    | ProfilesChanged
    | ExecutorStopped
    | ExecutorHung
    | ExecutorLent
    | ExecutorGone
    | OpenFailed
    | MemoryLimited
    | WeightsLoaded
    | LoadFailed
    | LoadReturned
    | VariantsAvailable
    | CameraConnected
    | CameraChanged
    | CameraDisconnected
    | LinkMeasured
    | CascadeMeasured
    | RequestArrived
    | FrameDetected
    | RequestPrepared
    | CropsPrepared
    | PartialAnswered
    | RequestRejected
    | RequestCancelled
    | RequestsUnanswered
    | BatchCompleted
    | BatchFailed
    | CropsSpawned
    | RequestSampled
    | LearningRestored
    | SampleCompleted
    | SampleFailed
    | PlanComputed
    | PlanFailed
    | ShutdownRequested
)
