"""The facts that go into the Scheduler and the orders that come out. Pure data.

Events are in the past tense, actions in the imperative. Instants are integer nanoseconds on the
box's monotonic clock and come beside the event, as `now_ns` of `Scheduler.handle`.
"""

from dataclasses import dataclass
from enum import StrEnum

from edgebox.domain.learned import Learned
from edgebox.domain.model_family import (
    ExecutorId,
    LatencyProfile,
    Variant,
    VariantName,
    Weights,
    WeightsId,
)
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


@dataclass(frozen=True, slots=True)
class ExecutorStarted:
    """An executor is idle and has these variants warm, each with its profile."""

    executor: ExecutorId
    profiles: tuple[LatencyProfile, ...]
    opened_ns: int = 0
    """What opening and warming it took; 0: not known."""


@dataclass(frozen=True, slots=True)
class ExecutorStopped:
    """An executor is gone in order, and with it the batch it ran; it is not opened anew."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class ExecutorHung:
    """Something that was not ordered here, a measurement, does not come back from an executor."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class OpenFailed:
    """An `Open` has ended, and the executor is not there."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class MemoryLimited:
    """An executor holds only part of its variants' weights at a time; without it, all."""

    executor: ExecutorId
    limit_bytes: int
    weights: tuple[Weights, ...]
    """All there are; the smallest of every family fit together."""
    resident: tuple[WeightsId, ...]
    """What is in memory now: at least the smallest of every family."""


@dataclass(frozen=True, slots=True)
class WeightsLoaded:
    """A `Load` has ended well: the weights are in memory and warm."""

    executor: ExecutorId
    weights: WeightsId


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """A `Load` has ended, and the weights are not in memory."""

    executor: ExecutorId
    weights: WeightsId


@dataclass(frozen=True, slots=True)
class LoadReturned:
    """A load has ended whose executor was lost meanwhile: its thread hangs no more."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class VariantsAvailable:
    """The zoo now holds exactly these variants (all families)."""

    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class CameraConnected:
    """A camera said hello."""

    camera: Camera


@dataclass(frozen=True, slots=True)
class CameraChanged:
    """A connected camera's settings were changed on the box; its link and its frames stay."""

    camera: Camera


@dataclass(frozen=True, slots=True)
class CameraDisconnected:
    """A camera is gone; nobody waits for its answers."""

    camera: CameraId


@dataclass(frozen=True, slots=True)
class LinkMeasured:
    """The estimate of a camera's link changed."""

    camera: CameraId
    link: LinkState


@dataclass(frozen=True, slots=True)
class RequestArrived:
    """A frame is at the box, whole, not yet decoded."""

    request: Request


@dataclass(frozen=True, slots=True)
class RequestPrepared:
    """A frame is decoded at the size its `Prepare` asked for.

    `took_ns` runs from the order, so it includes the wait for a decoding thread.
    """

    request: RequestId
    took_ns: int


@dataclass(frozen=True, slots=True)
class RequestRejected:
    """A frame could not be decoded."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class BatchCompleted:
    """A batch came back; its results are ready to send. `took_ns` is execution alone."""

    executor: ExecutorId
    batch: BatchId
    took_ns: int


@dataclass(frozen=True, slots=True)
class RequestSampled:
    """A request was run alone, elsewhere or earlier: so much do its like take."""

    executor: ExecutorId
    variant: VariantName
    app: str
    took_ns: int


@dataclass(frozen=True, slots=True)
class LearningRestored:
    """The box has started again and knows what it had learned before, each with its age."""

    learned: Learned


@dataclass(frozen=True, slots=True)
class SampleCompleted:
    """A `Sample` came back; nobody waits for its results. `took_ns` is execution alone."""

    executor: ExecutorId
    batch: BatchId
    took_ns: int


@dataclass(frozen=True, slots=True)
class SampleFailed:
    """The model raised on a `Sample`; the executor is idle again."""

    executor: ExecutorId
    batch: BatchId


@dataclass(frozen=True, slots=True)
class BatchFailed:
    """The model raised on a batch; the executor is idle again."""

    executor: ExecutorId
    batch: BatchId


@dataclass(frozen=True, slots=True)
class PlanComputed:
    """Planning answered a `ComputePlan`."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """Planning raised; the plan in force stays."""


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The box is stopping: drop what waits, accept nothing more; what runs may finish."""


Event = (
    ExecutorStarted
    | ExecutorStopped
    | ExecutorHung
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
    | RequestArrived
    | RequestPrepared
    | RequestRejected
    | BatchCompleted
    | BatchFailed
    | RequestSampled
    | LearningRestored
    | SampleCompleted
    | SampleFailed
    | PlanComputed
    | PlanFailed
    | ShutdownRequested
)


@dataclass(frozen=True, slots=True)
class Prepare:
    """Decode a frame for this variant's input."""

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


@dataclass(frozen=True, slots=True)
class Retain:
    """Keep the input of a running request whose `Finish` follows: a `Sample` may want it."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Release:
    """Let go what a `Retain` kept: it will not be sampled."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Sample:
    """Run a retained request once more, alone, on an idle executor, and let it go.

    Answer with SampleCompleted or SampleFailed; its results are discarded; only its time is used.
    """

    executor: ExecutorId
    batch: BatchId
    variant: VariantName
    request: RequestId
    batch_size: int
    """The smallest profiled size; the rest is padding."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Send a request's result; it has ended with this outcome."""

    request: RequestId
    batch: BatchId
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Drop:
    """A request has ended without an answer; tell its camera why."""

    request: RequestId
    reason: DropReason


@dataclass(frozen=True, slots=True)
class Advise:
    """New advice is in force for a camera: put it on every message from now on."""

    camera: CameraId
    advice: Advice


@dataclass(frozen=True, slots=True)
class ComputePlan:
    """Run the planner off the loop; answer with PlanComputed or PlanFailed."""

    snapshot: PlanningSnapshot


@dataclass(frozen=True, slots=True)
class Load:
    """Load weights beside what runs; answer with WeightsLoaded or LoadFailed."""

    executor: ExecutorId
    weights: WeightsId


@dataclass(frozen=True, slots=True)
class Unload:
    """Give the memory of weights back: nothing runs on them any more, or waits to."""

    executor: ExecutorId
    weights: WeightsId


@dataclass(frozen=True, slots=True)
class ReportDrift:
    """Tell people that an executor has left its profiles, which are now corrected."""

    executor: ExecutorId
    variant: VariantName
    """Whose batches showed it."""
    ratio: float
    """Times they took by those believed until now."""
    factor: float
    """What its profile is multiplied by from now on; 1: as measured."""
    since_ns: int
    """When it began, about."""
    apps: tuple[str, ...] = ()
    """The applications whose batches showed it, all together. Of a single one nothing tells
    whether its requests have changed instead."""


class LossCause(StrEnum):
    """Why an executor was lost."""

    HUNG = "hung"
    """What it was ordered to do did not come back within its limit."""
    FAILING = "failing"
    """Too many batches in a row failed."""
    LOADING = "loading"
    """Weights that it was to load did not come within their limit."""
    OPENING = "opening"
    """It was lost before, and opening it anew did not come back."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Take an executor out of service: do not wait for what it does, order it nothing more.

    Its requests have been dropped. What it was doing may still come back: tell of it as always.
    """

    executor: ExecutorId
    cause: LossCause
    variant: VariantName | None
    """What it ran; None: no batch."""
    waited_ns: int
    """For how long."""
    wedged: bool = False
    """It is not opened anew, unless what it was doing comes back."""


@dataclass(frozen=True, slots=True)
class Open:
    """Open a lost executor anew, in a new thread; answer with ExecutorStarted or OpenFailed."""

    executor: ExecutorId


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the process: no executor is left, and only another process can open one."""


Action = (
    Prepare
    | Infer
    | Retain
    | Release
    | Sample
    | Finish
    | Drop
    | Advise
    | ComputePlan
    | Load
    | Unload
    | ReportDrift
    | Abandon
    | Open
    | GiveUp
)
