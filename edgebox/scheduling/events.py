"""Owns the events that the Scheduler takes and the actions it returns. Pure data.

Events are facts in the past tense, actions are orders in the imperative. Instants are passed
separately: `now_ns` of `Scheduler.handle`, integer nanoseconds on the box's monotonic clock.
"""

from dataclasses import dataclass

from edgebox.domain.cascades import CascadeCurve
from edgebox.domain.learned import Learned
from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import (
    ExecutorId,
    LatencyProfile,
    Variant,
    VariantName,
    Weights,
    WeightsId,
)
from edgebox.domain.pipelines import StageName
from edgebox.domain.plans import Advice, Plan, PlanningSnapshot
from edgebox.domain.requests import (
    BatchId,
    Camera,
    CameraId,
    DropReason,
    LinkState,
    Outcome,
    Request,
    RequestId,
)
from edgebox.scheduling.request_stages import Cause


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
class RequestsRefused:
    """A server has refused these members of a batch, which others may run: it has too much to do.

    The batch ends with a BatchCompleted of the others; if there are none, after a rest.
    """

    executor: ExecutorId
    batch: BatchId
    requests: tuple[RequestId, ...]


@dataclass(frozen=True, slots=True)
class BatchCompleted:
    """A batch has completed; its results are ready to send. `took_ns` is its execution only."""

    executor: ExecutorId
    batch: BatchId
    took_ns: int
    spawned: tuple[Request, ...] = ()
    """The crops that later stages of the members' pipelines take."""
    refused: bool = False
    """Whether a server refused all of it (`RequestsRefused`); its executor has rested since."""


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
    """As with a BatchCompleted."""


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
    ExecutorStarted | ExecutorStopped | ExecutorHung | ExecutorLent | ExecutorGone | OpenFailed
    | MemoryLimited | WeightsLoaded | LoadFailed | LoadReturned | VariantsAvailable
    | CameraConnected | CameraChanged | CameraDisconnected | LinkMeasured | CascadeMeasured
    | RequestArrived | FrameDetected | RequestPrepared | CropsPrepared | PartialAnswered
    | RequestRejected | RequestCancelled | RequestsRefused | BatchCompleted | BatchFailed
    | RequestSampled | LearningRestored | SampleCompleted | SampleFailed | PlanComputed | PlanFailed
    | ShutdownRequested
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prepare:
    """Decode a frame to this variant's input size, or cut a crop for it."""

    request: RequestId
    variant: VariantName


@dataclass(frozen=True, slots=True)
class Infer:
    """Run these requests as one batch on an idle executor, padded to `batch_size`."""

    executor: ExecutorId
    batch: BatchId
    variant: VariantName
    requests: tuple[RequestId, ...]
    batch_size: int
    threads: int = 0
    """CPU threads that it computes with; 0: all of the executor's."""


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Keep a request whose batch had no answer: it is prepared, and waits for an executor."""

    request: RequestId
    variant: VariantName
    refused: bool = False
    """Whether a server had too much to do for it; else what ran its batch has ended."""


@dataclass(frozen=True, slots=True)
class Retain:
    """Keep the input of a request after its `Finish`, because a `Sample` may use it."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Release:
    """Free the input that a `Retain` kept: it will not be sampled."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Sample:
    """Run a retained request again, in a batch of its own, on an idle executor, and free its input.

    Answer with SampleCompleted or SampleFailed. Only the time is used; the results are discarded.
    """

    executor: ExecutorId
    batch: BatchId
    variant: VariantName
    request: RequestId
    batch_size: int
    """The smallest profiled size; the rest is padding."""


@dataclass(frozen=True, slots=True)
class Collect:
    """Keep a result for a frame's answer: a crop's, or its own while its crops are on their way."""

    request: RequestId
    batch: BatchId


@dataclass(frozen=True, slots=True)
class Finish:
    """Send a frame's result; it has ended with this outcome."""

    request: RequestId
    batch: BatchId | None
    """The batch of its first stage; None: that ran at its camera."""
    outcome: Outcome
    missing: tuple[StageName, ...] = ()
    """The stages of its pipeline that some crop was not answered by."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A request has ended without an answer; report the reason to its camera."""

    request: RequestId
    reason: DropReason
    cause: Cause
    """What decided it: several causes share a reason."""


@dataclass(frozen=True, slots=True)
class Advise:
    """New advice is in force for a camera: add it to every message from now on."""

    camera: CameraId
    advice: Advice


@dataclass(frozen=True, slots=True)
class ComputePlan:
    """Run the planner outside the event loop; answer with PlanComputed or PlanFailed."""

    snapshot: PlanningSnapshot


@dataclass(frozen=True, slots=True)
class Load:
    """Load weights while batches run; answer with WeightsLoaded or LoadFailed."""

    executor: ExecutorId
    weights: WeightsId


@dataclass(frozen=True, slots=True)
class Unload:
    """Free the memory of weights that no request runs on or waits for."""

    executor: ExecutorId
    weights: WeightsId


@dataclass(frozen=True, slots=True)
class ReportDrift:
    """Report that an executor has drifted from its profiles, which are now corrected."""

    executor: ExecutorId
    variant: VariantName
    """The variant whose batches showed it."""
    ratio: float
    """The batches' times relative to the previous profile."""
    factor: float
    """The new factor of the measured profile; 1: as measured."""
    since_ns: int
    """When it began, approximately."""
    apps: tuple[str, ...] = ()
    """The applications whose batches showed it; if only one, its requests may have changed."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Take an executor out of service: do not wait for its current work, and give it no more.

    Its requests have been dropped. Its current work may still come back: report it as always.
    """

    executor: ExecutorId
    cause: LossCause
    variant: VariantName | None
    """The variant it ran; None: no batch."""
    waited_ns: int
    """How long its work had been running."""
    wedged: bool = False
    """Whether it stays closed unless its current work comes back."""
    excluded: bool = False
    """Whether the variant is not run there any more."""


@dataclass(frozen=True, slots=True)
class Open:
    """Open a lost executor again, in a new thread; answer with ExecutorStarted or OpenFailed."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class ExitProcess:
    """End the process: no executor is left, and only another process can open one."""


Action = (
    Prepare | Infer | RunAgain | Retain | Release | Sample | Collect | Finish | Drop | Advise
    | ComputePlan | Load | Unload | ReportDrift | Abandon | Open | ExitProcess
)  # fmt: skip
