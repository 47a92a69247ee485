"""Records every call of the core: in the journal, on the timeline and how long it took.

Calls are written in groups: what writes one has left the processor's caches when the next comes,
and then takes several times as long. Whoever reads a record finds all calls in it.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import BatchId
from edgebox.runtime.journal import Journal
from edgebox.runtime.timeline_recorder import Timeline
from edgebox.scheduling.actions import Action, Infer, Sample
from edgebox.scheduling.events import Event
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.scheduler import Scheduler

_DECISION_SAMPLES = 4_096
_GROUP = 16
"""Calls written together: enough for nearly all of the gain, in .2 ms of the event loop."""


class _Call(NamedTuple):
    now_ns: int
    event: Event | None
    actions: list[Action]
    expected_ns: tuple[int | None, ...]


class _Ran(NamedTuple):
    executor: ExecutorId
    batch: BatchId
    started_ns: int
    ended_ns: int


class DecisionRecorder:
    """The records of one Scheduler."""

    def __init__(self, scheduler: Scheduler, journal: Journal, clock_ns: Callable[[], int]) -> None:
        """Begin to record."""
        self._scheduler = scheduler
        self.journal = journal
        self._timeline = Timeline()
        self._calls: list[_Call | _Ran] = []
        """What is not yet written: calls, and when batches ran."""
        self.journal.attach(scheduler, clock_ns, self.write)
        self.durations_ns: deque[int] = deque(maxlen=_DECISION_SAMPLES)
        """Durations of the latest calls."""

    @property
    def timeline(self) -> Timeline:
        """The record for people."""
        self.write()
        return self._timeline

    def record(self, now_ns: int, took_ns: int, event: Event | None, actions: list[Action]) -> None:
        """Record a call that began at `now_ns` and took so long, before the next one."""
        self.durations_ns.append(took_ns)
        self._calls.append(_Call(now_ns, event, actions, self._expected_ns(actions)))
        if len(self._calls) >= _GROUP:
            self.write()

    def _expected_ns(self, actions: list[Action]) -> tuple[int | None, ...]:
        """Return what is expected of the batches and samples among some orders."""
        ordered = [order for order in actions if isinstance(order, Infer | Sample)]
        try:
            return tuple([self._scheduler.expected_ns(order) for order in ordered])
        except Exception as error:  # what is recorded must not stop the box
            self._timeline.fail(error)
            return ()

    def ran(self, executor: ExecutorId, batch: BatchId, started_ns: int, ended_ns: int) -> None:
        """Record when an executor began and ended a batch; called before the core is informed."""
        self._calls.append(_Ran(executor, batch, started_ns, ended_ns))

    def write(self) -> None:
        """Write the calls that wait for it."""
        calls, self._calls = self._calls, []
        for call in calls:
            if isinstance(call, _Call):
                now_ns, event, actions, expected_ns = call
                self.journal.record(now_ns, event, actions)
                self._timeline.see(now_ns, event, actions, expected_ns)
            else:
                self._timeline.ran(*call)

    def record_raised(self, now_ns: int, event: Event | None, error: Exception) -> None:
        """Record a call that raised."""
        self.write()
        self.journal.record_raised(now_ns, event, f"{type(error).__name__}: {error}")

    def audit(self, now_ns: int) -> None:
        """Check the core's state where the journal begins a new segment.

        Raises:
            InvariantViolation: the state contradicts itself.
        """
        if now_ns >= self.journal.due_ns:
            self.write()
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
