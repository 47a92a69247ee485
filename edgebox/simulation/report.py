"""Owns what a simulated run left behind. Pure data."""

from collections import Counter
from dataclasses import dataclass, field

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import CameraId, DropReason, Outcome, Request, SiteId
from edgebox.scheduling.events import Action, Event


@dataclass(frozen=True, slots=True)
class Ended:
    """How one request ended: as its camera sees it, which knows when it captured it."""

    request: Request
    variant: VariantName | None
    """What it ran on; None if it never did."""
    outcome: Outcome
    reason: DropReason | None
    at_ns: int
    started_ns: int | None = None
    """When its batch started; None if it never ran."""
    captured_ns: int | None = None
    """When it really was captured; None: when the box believed."""

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
    """A `SkipReason`, or what else became of it: `UNDELIVERED` or `DEPARTED`."""


UNDELIVERED = "undelivered"
"""When the run ended it was still at the camera or on its way."""

DEPARTED = str(DropReason.DEPARTED)
"""It was at the camera or on its way when the camera left."""


@dataclass(frozen=True, slots=True)
class UtilityStep:
    """One call of `Scheduler.handle`."""

    now_ns: int
    event: Event | None
    actions: tuple[Action, ...]


@dataclass(slots=True)
class Report:
    """Everything that happened."""

    journal: list[UtilityStep] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    captured: Counter[CameraId] = field(default_factory=Counter)
    unsent: Counter[CameraId] = field(default_factory=Counter)
    """Frames that the camera itself skipped, and those that were on their way at the end."""
    lost: list[Unsent] = field(default_factory=list)
    """The same frames one by one; complete once the run is closed."""
    changes: Counter[CameraId] = field(default_factory=Counter)
    """How often a camera was advised of another variant than before."""
    refused: Counter[CameraId] = field(default_factory=Counter)
    """How often a camera was turned away at its hello."""
    busy_ns: Counter[ExecutorId] = field(default_factory=Counter)
    plans: int = 0
    sites: list[tuple[int, CameraId, SiteId | None]] = field(default_factory=list)
    """(instant, camera, site): whenever it was found out whose uplink a camera shares."""

    def outcomes(self) -> Counter[str]:
        """Count endings by outcome, drops by reason; `sender` is what never arrived."""
        counts = Counter(str(e.reason or e.outcome) for e in self.ended)
        counts[DropReason.SENDER] += self.unsent.total()
        return +counts

    def on_time_share(self) -> float:
        """Return the share of the frames at the box that were answered in time."""
        on_time = sum(e.outcome is Outcome.ON_TIME for e in self.ended)
        return on_time / len(self.ended) if self.ended else 1.0

    def utility(self) -> float:
        """Return the mean worth of the frames at the box; of the dropped it is 0."""
        gained = (e.request.utility_at(e.at_ns) for e in self.ended if e.reason is None)
        return sum(gained) / len(self.ended) if self.ended else 1.0
