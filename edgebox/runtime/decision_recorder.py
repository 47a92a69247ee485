"""Records every call of the core: in the journal, on the timeline and how long it took."""

from collections import deque
from collections.abc import Callable

import numpy as np

from edgebox.domain.errors import InvariantViolation
from edgebox.runtime.journal import Journal
from edgebox.runtime.timeline_recorder import Timeline
from edgebox.scheduling.events import Action, Event
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.scheduler import Scheduler

_DECISION_SAMPLES = 4_096


class DecisionRecorder:
    """The records of one Scheduler."""

    def __init__(self, scheduler: Scheduler, journal: Journal, clock_ns: Callable[[], int]) -> None:
        """Begin to record."""
        self._scheduler = scheduler
        self.journal = journal
        self.journal.attach(scheduler, clock_ns)
        self.timeline = Timeline(scheduler.times.expectations.usual_batch_ns)
        self.durations_ns: deque[int] = deque(maxlen=_DECISION_SAMPLES)
        """Durations of the latest calls."""

    def record(self, now_ns: int, took_ns: int, event: Event | None, actions: list[Action]) -> None:
        """Record a call that began at `now_ns` and took so long."""
        self.durations_ns.append(took_ns)
        self.journal.record(now_ns, event, actions)
        self.timeline.see(now_ns, event, actions)

    def record_raised(self, now_ns: int, event: Event | None, error: Exception) -> None:
        """Record a call that raised."""
        self.journal.record_raised(now_ns, event, f"{type(error).__name__}: {error}")

    def audit(self, now_ns: int) -> None:
        """Check the core's state where the journal begins a new segment.

        Raises:
            InvariantViolation: the state contradicts itself.
        """
        if now_ns >= self.journal.due_ns:
            check_invariants(self._scheduler)
            self.journal.checkpoint(now_ns)

    def violation(self, what: str) -> InvariantViolation:
        """Return the error of a core that contradicts itself, with the end of the journal."""
        return InvariantViolation(what, self.journal.tail())

    def quantiles_us(self) -> dict[str, float] | None:
        """Return P50 and P99 of the durations; None before the first call."""
        if not self.durations_ns:
            return None
        p50, p99 = np.quantile(np.array(self.durations_ns), (0.5, 0.99)) / 1e3
        return {"p50": round(float(p50), 1), "p99": round(float(p99), 1)}
