"""Records the last minute for people: batches, queues and changes of plan.

It sees every call of the core and keeps references and numbers, which costs the loop about a
microsecond a call; documents are made on request (web/timeline_documents.py). Limits: a minute
(changes of plan: the last `CHANGES_KEPT`), at most `KEPT_MAX` of each kind. It decides nothing; the
journal is the full record. If it fails, it logs the error and stops. Lives on the event loop.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import BatchId, CameraId, DropReason, Outcome, Request, RequestId
from edgebox.scheduling import actions, events
from edgebox.scheduling.actions import Action
from edgebox.scheduling.events import Event

_log = logging.getLogger(__name__)

WINDOW_NS = 60_000_000_000
KEPT_MAX = 12_000
"""Most entries of each kind: a minute at 200 batches a second."""
CHANGES_KEPT = 200
CHANGES_WINDOW_NS = 24 * 3600 * 1_000_000_000
"""Changes are kept longer than a minute, because plans change rarely."""
SLOT_NS = 100_000_000
"""Length of a slot; the longest queue within each slot is kept."""

T = TypeVar("T")


class Recent(Generic[T]):
    """The latest entries of one kind, numbered so that a reader can continue."""

    def __init__(self, kept_max: int = KEPT_MAX, window_ns: int = WINDOW_NS) -> None:
        """Start empty, with limits on number and age."""
        self.total = 0
        """Number of entries so far; also the number of the newest."""
        self._kept: deque[tuple[int, T]] = deque(maxlen=kept_max)
        self._window_ns = window_ns

    def add(self, at_ns: int, item: T) -> None:
        """Append an entry; discard old ones."""
        kept = self._kept
        kept.append((at_ns, item))
        self.total += 1
        horizon_ns = at_ns - self._window_ns
        while kept[0][0] < horizon_ns:
            kept.popleft()

    def after(self, number: int, limit: int = KEPT_MAX) -> tuple[int, list[T]]:
        """Return the first `limit` entries after `number`, and the number of the last."""
        first = max(number, self.total - len(self._kept))
        skipped = first - (self.total - len(self._kept))
        found = [item for _, item in islice(self._kept, skipped, skipped + limit)]
        return first + len(found), found


@dataclass(slots=True)
class RanBatch:
    """One batch, or one sample, on its executor. Instants are on the box's clock."""

    id: BatchId
    executor: ExecutorId
    variant: VariantName
    batch_size: int
    """Padded size."""
    requests: tuple[Request, ...]
    ordered_ns: int
    expected_ns: int | None
    """Median execution time that the core expected; None: it had no profile."""
    sample: bool = False
    """Whether it is a sample: a finished request that runs again, alone."""
    threads: int = 0
    """CPU threads that the core chose for it; 0: it had no choice."""
    started_ns: int = 0
    """When the executor began; 0: not known, or never."""
    ended_ns: int = 0
    """When the executor was done; 0: not known, or never."""
    closed_ns: int = 0
    """When the core received its result and its requests ended; 0: it is running."""
    endings: dict[RequestId, str] = field(default_factory=dict)
    """Results of its requests: an outcome or a drop reason."""
    written: bytes = b""
    """Its cached document; empty until requested and final."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A request that was dropped before any batch took it."""

    at_ns: int
    request: Request
    variant: VariantName | None
    """Variant it waited for; None: it was not admitted."""
    reason: DropReason


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A change of a camera's advised variant, size or rate."""

    at_ns: int
    camera: CameraId
    before: Advice | None
    after: Advice


@dataclass(frozen=True, slots=True)
class PlanRun:
    """One result of the planner."""

    asked_ns: int
    answered_ns: int
    utilisation: float


@dataclass(frozen=True, slots=True)
class QueueSlot:
    """Longest queue lengths from this instant to the next slot."""

    at_ns: int
    longest: Mapping[VariantName, int]


class Timeline:
    """The timeline of one core."""

    def __init__(self) -> None:
        """Record a new core."""
        self.failure = ""
        """Why recording stopped; empty: it goes on."""
        self.batches: Recent[RanBatch] = Recent()
        """Finished batches, in the order of their end."""
        self.drops: Recent[Dropped] = Recent()
        self.changes: Recent[PlanChange] = Recent(CHANGES_KEPT, CHANGES_WINDOW_NS)
        self.plans: Recent[PlanRun] = Recent()
        self.queues: Recent[QueueSlot] = Recent()
        self.running: dict[ExecutorId, RanBatch] = {}
        self.variants: tuple[VariantName, ...] = ()
        """All available variants."""
        self.waiting: dict[VariantName, int] = {}
        """Requests being prepared or waiting for a batch."""
        self._expected_ns: Iterator[int | None] = iter(())
        """Of the batches and samples of the present call that are still to be noted."""
        self._executors: dict[ExecutorId, None] = {}
        self._living: dict[RequestId, Request] = {}
        self._joined: set[RequestId] = set()
        """Frames whose own batch has ended, and whose crops have not."""
        self._waits_for: dict[RequestId, VariantName] = {}
        self._batch_of: dict[RequestId, RanBatch] = {}
        self._retained: dict[RequestId, Request] = {}
        self._advice: dict[CameraId, Advice] = {}
        self._slot_end_ns = SLOT_NS
        self._longest: dict[VariantName, int] = {}

    @property
    def executors(self) -> tuple[ExecutorId, ...]:
        """Every executor that may run something."""
        return tuple(self._executors)

    def see(
        self,
        now_ns: int,
        event: Event | None,
        orders: Iterable[Action],
        expected_ns: Sequence[int | None] = (),
    ) -> None:
        """Record one call of the core.

        Args:
            now_ns: when it was.
            event: what it was told.
            orders: what it ordered.
            expected_ns: the median execution time that it expected of each batch and sample among
                these; None, or none given: nothing.
        """
        if self.failure:
            return
        self._expected_ns = iter(expected_ns)
        try:
            if now_ns >= self._slot_end_ns:
                self.pass_time(now_ns)
            hear = _EVENTS.get(type(event))
            if hear is not None:
                hear(self, event, now_ns)
            for action in orders:
                note = _ACTIONS.get(type(action))
                if note is not None:
                    note(self, action, now_ns)
        except Exception as error:  # the recorder must not stop the box
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Stop recording."""
        self.failure = f"{type(error).__name__}: {error}"
        _log.error("the timeline has stopped: %s", self.failure, exc_info=error)

    def ran(self, executor: ExecutorId, batch: BatchId, started_ns: int, ended_ns: int) -> None:
        """Record when an executor began and ended a batch; called before the core is informed."""
        running = self.running.get(executor)
        if running is not None and running.id == batch:
            running.started_ns, running.ended_ns = started_ns, ended_ns

    # -- queues -----------------------------------------------------------------------------

    def pass_time(self, now_ns: int) -> None:
        """Store the finished slot; without events the lengths stay the same."""
        end_ns = self._slot_end_ns
        if now_ns < end_ns:
            return
        slot_ns = now_ns - now_ns % SLOT_NS
        self.queues.add(now_ns, QueueSlot(end_ns - SLOT_NS, self._longest))
        if end_ns < slot_ns and self._longest != self.waiting:
            self.queues.add(now_ns, QueueSlot(end_ns, dict(self.waiting)))
        self._slot_end_ns, self._longest = slot_ns + SLOT_NS, dict(self.waiting)

    def _waits(self, order: actions.Prepare | actions.RunAgain, now_ns: int) -> None:
        variant = order.variant
        self._waits_for[order.request] = variant
        length = self.waiting[variant] = self.waiting.get(variant, 0) + 1
        if length > self._longest.get(variant, 0):
            self._longest[variant] = length

    def _waits_no_more(self, request: RequestId) -> VariantName | None:
        variant = self._waits_for.pop(request, None)
        if variant is not None:
            left = self.waiting[variant] - 1
            if left:
                self.waiting[variant] = left
            else:
                del self.waiting[variant]
        return variant

    # -- requests ---------------------------------------------------------------------------

    def _arrived(self, event: events.RequestArrived, now_ns: int) -> None:
        self._living.setdefault(event.request.id, event.request)

    def _detected(self, event: events.FrameDetected, now_ns: int) -> None:
        for each in (event.request, *event.spawned):
            self._living.setdefault(each.id, each)

    def _spawned(self, event: events.BatchCompleted | events.CropsSpawned, now_ns: int) -> None:
        self._living.update((crop.id, crop) for crop in event.spawned)

    def _collect(self, order: actions.Collect, now_ns: int) -> None:
        request = self._living[order.request]
        if request.frame is None:
            self._joined.add(request.id)
        else:
            del self._living[request.id]
        in_time = now_ns <= request.deadline_ns
        self._ended_in_batch(request.id, Outcome.ON_TIME if in_time else Outcome.LATE, now_ns)

    def _finish(self, order: actions.Finish, now_ns: int) -> None:
        del self._living[order.request]
        if order.request in self._joined:
            self._joined.remove(order.request)
        elif order.batch is not None:
            self._ended_in_batch(order.request, order.outcome, now_ns)

    def _drop(self, order: actions.Drop, now_ns: int) -> None:
        request = self._living.pop(order.request)
        if order.request in self._joined:
            self._joined.remove(order.request)
        elif order.request in self._batch_of:
            self._ended_in_batch(order.request, order.reason, now_ns)
        else:
            variant = self._waits_no_more(order.request)
            self.drops.add(now_ns, Dropped(now_ns, request, variant, order.reason))

    # -- batches ----------------------------------------------------------------------------

    def _infer(self, order: actions.Infer, now_ns: int) -> None:
        living = self._living
        members = tuple([living[request] for request in order.requests])
        batch = self.running[order.executor] = self._ordered(order, members, now_ns)
        for request in order.requests:
            self._waits_no_more(request)
            self._batch_of[request] = batch

    def _ordered(
        self, order: actions.Infer | actions.Sample, members: tuple[Request, ...], now_ns: int
    ) -> RanBatch:
        executor, variant, size = order.executor, order.variant, order.batch_size
        sample = isinstance(order, actions.Sample)
        threads = 0 if isinstance(order, actions.Sample) else order.threads
        expected_ns = next(self._expected_ns, None)
        return RanBatch(
            order.batch, executor, variant, size, members, now_ns, expected_ns, sample, threads
        )

    def _run_again(self, order: actions.RunAgain, now_ns: int) -> None:
        ending = DropReason.OVERLOAD if order.refused else DropReason.FAILED
        self._ended_in_batch(order.request, ending, now_ns)
        self._waits(order, now_ns)

    def _ended_in_batch(self, request: RequestId, ending: str, now_ns: int) -> None:
        batch = self._batch_of.pop(request)
        batch.endings[request] = ending
        if len(batch.endings) == len(batch.requests):
            self._close(batch, now_ns)

    def _close(self, batch: RanBatch, now_ns: int) -> None:
        batch.closed_ns = now_ns
        self.batches.add(now_ns, batch)
        if self.running.get(batch.executor) is batch:
            del self.running[batch.executor]

    # -- samples ----------------------------------------------------------------------------

    def _retain(self, order: actions.Retain, now_ns: int) -> None:
        self._retained[order.request] = self._living[order.request]

    def _release(self, order: actions.Release, now_ns: int) -> None:
        self._retained.pop(order.request, None)

    def _sample(self, order: actions.Sample, now_ns: int) -> None:
        members = (self._retained.pop(order.request),)
        self.running[order.executor] = self._ordered(order, members, now_ns)

    def _sample_ended(
        self, event: events.SampleCompleted | events.SampleFailed, now_ns: int
    ) -> None:
        running = self.running.get(event.executor)
        if running is not None and running.sample and running.id == event.batch:
            self._close(running, now_ns)

    # -- plans and resources ----------------------------------------------------------------

    def _planned(self, event: events.PlanComputed, now_ns: int) -> None:
        plan = event.plan
        self.plans.add(now_ns, PlanRun(plan.computed_ns, now_ns, plan.utilisation))

    def _advise(self, order: actions.Advise, now_ns: int) -> None:
        before, after = self._advice.get(order.camera), order.advice
        self._advice[order.camera] = after
        if before is None or _told(before) != _told(after):
            self.changes.add(now_ns, PlanChange(now_ns, order.camera, before, after))

    def _camera_opened(self, event: events.CameraConnected, now_ns: int) -> None:
        self._advice.pop(event.camera.id, None)

    def _camera_closed(self, event: events.CameraDisconnected, now_ns: int) -> None:
        self._advice.pop(event.camera, None)

    def _executor_started(self, event: events.ExecutorStarted, now_ns: int) -> None:
        self._end_sample_of(event.executor, now_ns)
        self._executors[event.executor] = None

    def _executor_stopped(
        self, event: events.ExecutorStopped | actions.Abandon, now_ns: int
    ) -> None:
        self._end_sample_of(event.executor, now_ns)
        self._executors.pop(event.executor, None)

    def _end_sample_of(self, executor: ExecutorId, now_ns: int) -> None:
        """End the sample of a lost executor; a batch ends when its requests are dropped."""
        running = self.running.get(executor)
        if running is not None and running.sample:
            self._close(running, now_ns)

    def _variants_offered(self, event: events.VariantsAvailable, now_ns: int) -> None:
        self.variants = tuple(variant.name for variant in event.variants)


def _told(advice: Advice) -> tuple[object, ...]:
    return advice.variant, advice.width_px, advice.height_px, advice.rate_hz


_Note = Callable[[Timeline, Any, int], None]
_EVENTS: dict[type[object], _Note] = {
    events.RequestArrived: Timeline._arrived,
    events.FrameDetected: Timeline._detected,
    events.BatchCompleted: Timeline._spawned,
    events.CropsSpawned: Timeline._spawned,
    events.PlanComputed: Timeline._planned,
    events.CameraConnected: Timeline._camera_opened,
    events.CameraDisconnected: Timeline._camera_closed,
    events.SampleCompleted: Timeline._sample_ended,
    events.SampleFailed: Timeline._sample_ended,
    events.ExecutorStarted: Timeline._executor_started,
    events.ExecutorStopped: Timeline._executor_stopped,
    events.VariantsAvailable: Timeline._variants_offered,
}
_ACTIONS: dict[type[object], _Note] = {
    actions.Prepare: Timeline._waits,
    actions.Infer: Timeline._infer,
    actions.RunAgain: Timeline._run_again,
    actions.Retain: Timeline._retain,
    actions.Release: Timeline._release,
    actions.Sample: Timeline._sample,
    actions.Collect: Timeline._collect,
    actions.Finish: Timeline._finish,
    actions.Drop: Timeline._drop,
    actions.Advise: Timeline._advise,
    actions.Abandon: Timeline._executor_stopped,
}
