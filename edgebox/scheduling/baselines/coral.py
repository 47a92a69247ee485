"""Decides the next batch as OctopInf's CORAL does: models run in time slots of streams. Pure.

Source: Nguyen et al., "OctopInf", arXiv 2502.01277. `coral_plan` has the slots, and how they differ
from the paper's. A batch starts only in a slot of its model, on that slot's executor, if it is
expected to end in the slot. Of each device as many executors have slots as may run at once.

Slots are planned again from the measured rates at intervals. The paper does that every six minutes;
edgebox does it every few seconds, because a plan takes well below a millisecond. In between, a
model gets another slot where more requests wait than its slots hold, and loses it again when it was
idle for a while (the paper's AutoScaler).

Admission is edgebox's own: a request that cannot be answered in time in the next slot with room is
dropped at once, instead of delaying others until it has expired.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from math import inf, sqrt

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request, RequestId
from edgebox.scheduling.affinity import NONE, Excluded
from edgebox.scheduling.baselines.coral_plan import (
    Batches,
    ModelDemand,
    Slot,
    Stream,
    batch_size,
    place,
    plan_streams,
)
from edgebox.scheduling.expected_latencies import Row
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy

PLAN_INTERVAL_NS = 4_000_000_000
"""Time between two plans. Shorter, and the measured rates are noise."""
_FIRST_INTERVAL_NS = 250_000_000
"""The first time after a new model appears; it doubles until it is `PLAN_INTERVAL_NS`."""
SCALE_INTERVAL_NS = 250_000_000
"""Time between two looks at the queues."""
IDLE_NS = 5_000_000_000
"""An additional slot that was not used for this long is given back."""
_FORGET_NS = 10_000_000_000
"""A model without a request for this long loses its slots; until then it keeps one."""
_SLOT_QUANTILE = 0.9
"""A slot is as long as a batch takes in nine of ten cases: a longer one delays the next slot."""
_SLO_QUANTILE = 0.25
"""Quantile of the times to the deadline that slots hold; these differ by link and stage."""
_BUDGETS_MAX = 64
_CHANGE_MIN = 0.1
"""Slots are kept as they are if their lengths would change by less than this share."""


@dataclass(slots=True)
class Arrivals:
    """What is measured of one model's requests."""

    count: int = 0
    gap_sum_ns: int = 0
    gap_squares_ns2: float = 0.0
    last_ns: int | None = None
    """When the last counted request came."""
    seen_ns: int = 0
    """When the last request came."""
    budgets_ns: deque[int] = field(default_factory=deque)
    """Times to the deadline of the last requests."""

    def add(self, now_ns: int, budget_ns: int) -> None:
        """Note a request."""
        if self.last_ns is not None:
            gap_ns = now_ns - self.last_ns
            self.gap_sum_ns += gap_ns
            self.gap_squares_ns2 += gap_ns * gap_ns
        self.count += 1
        self.last_ns = self.seen_ns = now_ns
        self.budgets_ns.append(max(1, budget_ns))
        if len(self.budgets_ns) > _BUDGETS_MAX:
            self.budgets_ns.popleft()

    @property
    def burstiness(self) -> float:
        """The coefficient of variation of the gaps; 1 until there are some."""
        gaps = self.count - 1
        mean_ns = self.gap_sum_ns / max(1, gaps)
        if gaps < 2 or mean_ns <= 0:
            return 1.0
        return sqrt(max(0.0, self.gap_squares_ns2 / gaps - mean_ns**2)) / mean_ns

    @property
    def slo_ns(self) -> int:
        """The time to the deadline that the slots hold."""
        return sorted(self.budgets_ns)[int(_SLO_QUANTILE * (len(self.budgets_ns) - 1))]

    def begin(self) -> None:
        """Begin to count anew."""
        self.count, self.gap_sum_ns, self.gap_squares_ns2, self.last_ns = 0, 0, 0.0, None


class Coral(QueueingPolicy):
    """Batches in the time slots of streams, with admission (`batching = "coral"`)."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[ExecutorId, Stream] = {}
        """The slots in force."""
        self._epoch_ns = 0
        """When the cycles began."""
        self._planned_ns = 0
        self._interval_ns = _FIRST_INTERVAL_NS
        self._scaled_ns = 0
        self._now_ns = 0
        self._arrivals: dict[VariantName, Arrivals] = {}
        self._demands: dict[VariantName, ModelDemand] = {}
        self._state: tuple[int, int] = (-1, -1)
        """The versions of memory contents, and the number of streams, of the plan."""
        self._additional: dict[Slot, int] = {}
        """When each slot of the autoscaler was last used."""
        self._refused: Counter[VariantName] = Counter()
        self._new: dict[RequestId, None] = {}
        self._preparing: dict[RequestId, VariantName] = {}
        self._excluded: dict[ExecutorId, Excluded] = {}
        self._asked: set[ExecutorId] = set()
        """Executors that were asked about since requests expired: the next question is another."""
        self._changed = True

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Add a request that is being decoded, and measure the rate of its model."""
        super().admitted(request, variant, now_ns)
        self._now_ns = now_ns
        self._new[request.id] = None
        self._preparing[request.id] = variant
        arrivals = self._arrivals.get(variant)
        if not self._arrivals:
            self._planned_ns = now_ns
        if arrivals is None:
            arrivals = self._arrivals[variant] = Arrivals()
            self._changed = True
        arrivals.add(now_ns, request.deadline_ns - now_ns)

    def prepared(self, request: RequestId, now_ns: int) -> None:
        """Queue a request."""
        super().prepared(request, now_ns)
        del self._preparing[request]

    def removed(self, request: RequestId) -> None:
        """Forget a request."""
        super().removed(request)
        self._forget(request)

    def _forget(self, request: RequestId) -> None:
        self._new.pop(request, None)
        self._preparing.pop(request, None)

    def expired(self, now_ns: int) -> list[RequestId]:
        """Return what has expired, and the new requests that are refused.

        Slots are planned only when requests come, so that an early wake-up changes nothing.
        """
        self._now_ns = now_ns
        self._asked.clear()
        if self._new:
            self._plan_if_due(now_ns)
        gone = super().expired(now_ns)
        for request in gone:
            self._forget(request)
        for request in self._new:
            variant = self._waiting.variant(request)
            if not self._can_answer(self._waiting.request(request), variant, now_ns):
                super().removed(request)
                self._preparing.pop(request, None)
                self._refused[variant] += 1
                gone.append(request)
        if self._new:
            self._scale(now_ns)
            self._new.clear()
        return gone

    def next_batch(
        self, executor: ExecutorId, now_ns: int, excluded: Excluded = NONE
    ) -> Batch | None:
        """Remove and return the requests that run in the present slot of this executor."""
        # The second question is about work stealing, for which slots have no place.
        if executor not in self._asked and self._excluded.get(executor, NONE) != excluded:
            self._excluded[executor] = excluded
            self._changed = True
        self._asked.add(executor)
        stream = self.streams.get(executor)
        slot = None if stream is None else self._slot_at(stream, now_ns)
        if stream is None or slot is None or slot.variant in excluded:
            return None
        queue = self._waiting.queues.get(slot.variant)
        row = self._latencies.row(executor, slot.variant, len(self.streams) - 1)
        if not queue or row is None:
            return None
        left_ns = slot.end_ns - (now_ns - self._epoch_ns) % stream.duty_ns
        fitting = self._fitting(executor, row, slot, left_ns)
        if fitting is None:
            return None
        wanted = min(len(queue), row.sizes[fitting])
        at = next(at for at, size in enumerate(row.sizes) if size >= wanted)
        took_ns = row.median_ns[at] + self._latencies.overhead_ns(executor)
        # Those that would miss their deadline leave their places to others, if there are any.
        start = min(queue.first_from(now_ns + took_ns), len(queue) - 1)
        if slot in self._additional:
            self._additional[slot] = now_ns
        stop = min(len(queue), start + row.sizes[at])
        return self._batch(slot.variant, row, range(start, stop))

    def next_wakeup_ns(self) -> int | None:
        """Return when the next request expires, or the next slot of a waiting one begins.

        That is at once while there are new requests, which may be refused.
        """
        if self._new:
            return self._now_ns
        due = [super().next_wakeup_ns()]
        due += (
            self._next_start_ns(stream, slot, self._now_ns + 1)
            for stream in self.streams.values()
            for slot in stream.slots
            if self._waiting.queues.get(slot.variant)
        )
        return min((at for at in due if at is not None), default=None)

    # Slots

    def _slot_at(self, stream: Stream, now_ns: int) -> Slot | None:
        if not stream.slots:
            return None
        at_ns = (now_ns - self._epoch_ns) % stream.duty_ns
        index = bisect_right([slot.start_ns for slot in stream.slots], at_ns) - 1
        slot = stream.slots[index]
        return slot if index >= 0 and at_ns < slot.end_ns else None

    def _next_start_ns(self, stream: Stream, slot: Slot, from_ns: int) -> int:
        """Return the first start of a slot at or after an instant."""
        first_ns = self._epoch_ns + slot.start_ns
        cycles = max(0, -((first_ns - from_ns) // stream.duty_ns))
        return first_ns + cycles * stream.duty_ns

    def _fitting(self, executor: ExecutorId, row: Row, slot: Slot, left_ns: int) -> int | None:
        """Return the index of the largest size that usually ends in the rest of a slot."""
        left_ns -= self._latencies.overhead_ns(executor)
        fitting = [
            at
            for at, (size, median_ns) in enumerate(zip(row.sizes, row.median_ns, strict=True))
            if size <= slot.batch_size and median_ns <= left_ns
        ]
        return max(fitting, default=None)

    # Admission

    def _can_answer(self, request: Request, variant: VariantName, now_ns: int) -> bool:
        """Return whether the next slot with room answers a new request in time."""
        if not self._latencies.executors(variant):
            return True  # it is kept until its deadline: an executor may come back
        deadline_ns = request.steps[-1].by_ns if request.steps else request.deadline_ns
        queue = self._waiting.queues.get(variant)
        ahead = 0 if queue is None else queue.first_from(request.deadline_ns)
        ahead += sum(of == variant for of in self._preparing.values()) - (
            request.id in self._preparing
        )
        return self._answered_ns(variant, ahead, now_ns, deadline_ns) <= deadline_ns

    def _answered_ns(self, variant: VariantName, ahead: int, now_ns: int, until_ns: int) -> float:
        """Return when a request with so many before it is answered; inf: not before `until_ns`."""
        starts = list(self._starts(variant, now_ns))
        heapify(starts)
        while starts and starts[0][0] <= until_ns:
            start_ns, executor, slot_at, room, took_ns = starts[0]
            if ahead < room:
                return start_ns + took_ns
            ahead -= room
            stream = self.streams[executor]
            slot = stream.slots[slot_at]
            row = self._latencies.row(executor, variant, len(self.streams) - 1)
            assert row is not None
            next_ns = self._next_start_ns(stream, slot, start_ns + 1)
            full = bisect_right(row.sizes, slot.batch_size) - 1
            full_ns = row.median_ns[full] + self._latencies.overhead_ns(executor)
            heapreplace(starts, (next_ns, executor, slot_at, slot.batch_size, full_ns))
        return inf

    def _starts(
        self, variant: VariantName, now_ns: int
    ) -> Iterator[tuple[int, ExecutorId, int, int, int]]:
        """Yield for each slot of a model: when a batch may start, where, its size and its time."""
        busy = self._latencies.busy.executors
        for executor, stream in self.streams.items():
            row = self._latencies.row(executor, variant, len(self.streams) - 1)
            if row is None:
                continue
            overhead_ns = self._latencies.overhead_ns(executor)
            present = self._slot_at(stream, now_ns)
            for at, slot in enumerate(stream.slots):
                if slot.variant != variant:
                    continue
                if slot is present and executor not in busy:
                    left_ns = slot.end_ns - (now_ns - self._epoch_ns) % stream.duty_ns
                    fitting = self._fitting(executor, row, slot, left_ns)
                    if fitting is not None:
                        took_ns = row.median_ns[fitting] + overhead_ns
                        yield now_ns, executor, at, row.sizes[fitting], took_ns
                        continue
                full = bisect_right(row.sizes, slot.batch_size) - 1
                start_ns = self._next_start_ns(stream, slot, now_ns + 1)
                yield start_ns, executor, at, slot.batch_size, row.median_ns[full] + overhead_ns

    # Plans

    def _plan_if_due(self, now_ns: int) -> None:
        state = self._latencies.loaded_version, self._latencies.batches_at_once
        elapsed_ns = now_ns - self._planned_ns
        changed = self._changed or state != self._state
        if elapsed_ns < self._interval_ns and not changed:
            return
        self._state = state
        executors = self._stream_executors()
        self._arrivals = {
            variant: arrivals
            for variant, arrivals in self._arrivals.items()
            if now_ns - arrivals.seen_ns <= _FORGET_NS
        }
        self._demands = {
            demand.variant: demand
            for variant, arrivals in self._arrivals.items()
            if (demand := self._demand(variant, arrivals, executors, elapsed_ns)) is not None
        }
        if elapsed_ns >= self._interval_ns:
            self._planned_ns = now_ns
            self._interval_ns = min(2 * self._interval_ns, PLAN_INTERVAL_NS)
            for arrivals in self._arrivals.values():
                arrivals.begin()
        if changed:
            self._interval_ns = _FIRST_INTERVAL_NS
        planned = plan_streams(executors, self._demands.values())
        if changed or _differ(self.streams, planned):
            self.streams, self._epoch_ns = planned, now_ns
            self._additional.clear()
        self._changed = False

    def _stream_executors(self) -> list[ExecutorId]:
        """Return the executors with slots: of each device the fastest that may run at once."""
        taken: Counter[str] = Counter()
        found = []
        for executor in self._latencies.fastest_first():
            device = self._latencies.concurrency_of(executor)
            if taken[device.device] < device.limit:
                taken[device.device] += 1
                found.append(executor)
        return found

    def _demand(
        self,
        variant: VariantName,
        arrivals: Arrivals,
        executors: list[ExecutorId],
        elapsed_ns: int,
    ) -> ModelDemand | None:
        batches = {
            executor: of
            for executor in executors
            if variant not in self._excluded.get(executor, NONE)
            and (of := self._batches(executor, variant, len(executors) - 1))
        }
        if not batches:
            return None
        rate_hz = arrivals.count * 1e9 / max(elapsed_ns, _FIRST_INTERVAL_NS)
        return ModelDemand(variant, rate_hz, arrivals.burstiness, arrivals.slo_ns, batches)

    def _batches(self, executor: ExecutorId, variant: VariantName, others: int) -> Batches:
        profile = self._latencies.profiles(executor).get(variant)
        if profile is None:
            return ()
        factor = self._latencies.slowdown(executor) * profile.slowed(others)
        overhead_ns = self._latencies.overhead_ns(executor)
        found, longest_ns = [], 0
        for size in profile.batch_sizes:
            longest_ns = max(longest_ns, round(profile.quantile_ns(size, _SLOT_QUANTILE) * factor))
            found.append((size, longest_ns + overhead_ns))
        return tuple(found)

    def _scale(self, now_ns: int) -> None:
        """Give models another slot whose queues have grown; take back those not used for long."""
        if now_ns < self._scaled_ns + SCALE_INTERVAL_NS:
            return
        self._scaled_ns = now_ns
        for slot, used_ns in list(self._additional.items()):
            if now_ns - used_ns > IDLE_NS:
                del self._additional[slot]
                self.streams[slot.executor].remove(slot)
        room = Counter[VariantName]()
        for stream in self.streams.values():
            for slot in stream.slots:
                room[slot.variant] += slot.batch_size
        waiting = Counter(self._preparing.values())
        for variant, queue in self._waiting.queues.items():
            waiting[variant] += len(queue)
        for variant, demand in self._demands.items():
            if self._refused[variant] or waiting[variant] > room[variant]:
                added = place(self.streams.values(), demand, batch_size(demand))
                if added is not None:
                    self._additional[added] = now_ns
        self._refused.clear()


def _differ(old: dict[ExecutorId, Stream], new: dict[ExecutorId, Stream]) -> bool:
    """Return whether the slots of a new plan are others, apart from small changes of length."""
    if old.keys() != new.keys():
        return True
    for executor, before in old.items():
        after = new[executor]
        if abs(after.duty_ns - before.duty_ns) > _CHANGE_MIN * before.duty_ns:
            return True
        kept = sorted((slot.variant, slot.batch_size) for slot in before.slots)
        if kept != sorted((slot.variant, slot.batch_size) for slot in after.slots):
            return True
        busy_ns = sum(slot.length_ns for slot in before.slots)
        if abs(sum(slot.length_ns for slot in after.slots) - busy_ns) > _CHANGE_MIN * busy_ns:
            return True
    return False
