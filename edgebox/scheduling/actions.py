"""Owns the actions that the Scheduler returns: orders, in the imperative. Pure data.

The runtime carries them out in their order, and answers with `scheduling.events`.
"""

from dataclasses import dataclass

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, VariantName, WeightsId
from edgebox.domain.pipelines import StageName
from edgebox.domain.plans import Advice, PlanningSnapshot
from edgebox.domain.requests import BatchId, CameraId, DropReason, Outcome, RequestId
from edgebox.scheduling.request_stages import Cause


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
class SpawnCrops:
    """Cut the crops of what a frame's first stage has found; answer with CropsSpawned.

    Its cascade had sent it on, and the large model does not answer it.
    """

    request: RequestId


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
    Prepare
    | Infer
    | RunAgain
    | Retain
    | Release
    | Sample
    | Collect
    | SpawnCrops
    | Finish
    | Drop
    | Advise
    | ComputePlan
    | Load
    | Unload
    | ReportDrift
    | Abandon
    | Open
    | ExitProcess
)
