"""Owns the record of a simulated run. Pure data."""

from collections import Counter
from dataclasses import dataclass, field

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import CameraId, DropReason, Outcome, Request, SiteId
from edgebox.scheduling.actions import Action
from edgebox.scheduling.events import Event
from edgebox.simulation.simulated_pipelines import ExecutorTime, FrameWork


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of one request as its camera sees it, which knows when it captured it."""

    request: Request
    variant: VariantName | None
    """The variant it ran on; None if it did not run."""
    outcome: Outcome
    reason: DropReason | None
    at_ns: int
    started_ns: int | None = None
    """When its batch started; None if it never ran."""
    captured_ns: int | None = None
    """When it was captured; None: when the box estimated."""
    work: FrameWork | None = None
    """Its crops; None: they were not recorded."""

    @property
    def truly_captured_ns(self) -> int:
        """When it was captured."""
        return self.request.captured_ns if self.captured_ns is None else self.captured_ns


@dataclass(frozen=True, slots=True)
class Unsent:
    """A captured frame that never reached the box."""

    camera: CameraId
    captured_ns: int
    reason: str
    """A `SkipReason`, `UNDELIVERED` or `DEPARTED`."""


UNDELIVERED = "undelivered"
"""At the end of the run it was still at the camera or in transit."""

DEPARTED = str(DropReason.DEPARTED)
"""It was at the camera or in transit when the camera left."""


@dataclass(frozen=True, slots=True)
class SchedulerCall:
    """One call of `Scheduler.handle`."""

    now_ns: int
    event: Event | None
    actions: tuple[Action, ...]


@dataclass(slots=True)
class Report:
    """The record of a run."""

    journal: list[SchedulerCall] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    captured: Counter[CameraId] = field(default_factory=Counter)
    unsent: Counter[CameraId] = field(default_factory=Counter)
    """The number of frames that the camera itself skipped, and of those in transit at the end."""
    lost: list[Unsent] = field(default_factory=list)
    """The same frames one by one; complete once the run is closed."""
    changes: Counter[CameraId] = field(default_factory=Counter)
    """How often a camera's advice named another variant than before."""
    refused: Counter[CameraId] = field(default_factory=Counter)
    """How often a camera was refused at its hello."""
    busy: dict[ExecutorId, list[tuple[int, int]]] = field(default_factory=dict)
    """From when to when each executor ran batches, instants in ns; complete once it is closed."""
    plans: int = 0
    spent: ExecutorTime = field(default_factory=ExecutorTime)
    """What the executors' time was spent on."""
    sites: list[tuple[int, CameraId, SiteId | None]] = field(default_factory=list)
    """(instant, camera, site): each time the inferred site of a camera changed."""

    @property
    def busy_ns(self) -> dict[ExecutorId, int]:
        """How long each executor ran batches, those after the last picture included."""
        return {of: sum(end - start for start, end in spans) for of, spans in self.busy.items()}

    def busy_until_ns(self, executor: ExecutorId, until_ns: int) -> int:
        """Return how long an executor ran batches before an instant."""
        spans = self.busy.get(executor, ())
        return sum(max(0, min(end, until_ns) - start) for start, end in spans)

    def outcomes(self) -> Counter[str]:
        """Count requests by outcome and drops by reason; `sender`: frames that never arrived."""
        counts = Counter(str(e.reason or e.outcome) for e in self.ended)
        counts[DropReason.SENDER] += self.unsent.total()
        return +counts

    def on_time_share(self) -> float:
        """Return the share of the frames at the box that were answered in time."""
        on_time = sum(e.outcome is Outcome.ON_TIME for e in self.ended)
        return on_time / len(self.ended) if self.ended else 1.0

    def utility(self) -> float:
        """Return the mean utility of the frames at the box; a dropped one counts 0."""
        gained = (e.request.utility_at(e.at_ns) for e in self.ended if e.reason is None)
        return sum(gained) / len(self.ended) if self.ended else 1.0
