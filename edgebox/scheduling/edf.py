"""Decides the next batch by earliest deadline first, with one queue per variant.

Pure. A batch is as large as its earliest deadline allows at the profile's high quantile. A request
is dropped only if it would miss even at the low quantile of its application's expected time
(`expectations`), which is also what admission uses. A request with several deadlines is ordered by
the earliest one that it can still meet, and dropped when there is none. Textbook EDF collapses
under overload, more so with batches; each deviation from it is explained where it occurs.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request, RequestId, UtilityStep
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.affinity import NONE, Excluded
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies, Row
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

GROWTH_MIN = 1.03
"""A larger batch must answer this many times as many requests per second as a smaller one."""

Queue = list[tuple[int, RequestId]]
"""(deadline_ns, request), sorted. A few comparisons and a short memmove per change are cheaper than
a heap, whose entries must also be removed from the middle and read in order."""


def fill(row: Row, waiting: int, time_left_ns: int) -> tuple[int, int]:
    """Choose how many requests to run, and the batch size to pad them to.

    Of the profiled sizes whose high-quantile time fits, the one that answers most requests per
    second (by the median) is used; a larger size must exceed a smaller one by `GROWTH_MIN`. So a
    batch is padded if the accelerator runs the padding at no cost, and grows only if that increases
    throughput; on a CPU it mostly does not. If not even the smallest size fits, one request is
    tried.

    Args:
        row: expected times without overhead.
        waiting: number of requests to choose from, at least 1.
        time_left_ns: until the earliest deadline, overhead subtracted.

    Returns:
        The number of requests, and the profiled size to run them at.
    """
    best, best_rate = 0, 0.0
    for at in range(max(1, bisect_right(row.high_ns, time_left_ns))):
        rate = min(waiting, row.sizes[at]) / max(1, row.median_ns[at])
        if rate > best_rate * GROWTH_MIN:
            best, best_rate = at, rate
    size = row.sizes[best]
    if row.high_ns[best] > time_left_ns:
        return 1, size
    return min(waiting, size), size


def _skip_tight_heads(
    row: Row, queue: Queue, batch: tuple[int, int, int], ready_ns: int
) -> tuple[int, int, int]:
    """Skip the earliest deadlines if serving them would cost more of the later ones.

    Under overload the head of the queue always has hardly any time left. It then allows only
    batches of one, with which the overload never ends. A larger batch from further back is taken
    instead if it answers more requests per second and could not wait for the small one.

    Args:
        row: expected times.
        queue: the whole queue.
        batch: (start in the queue, number of requests, batch size) to improve on.
        ready_ns: now plus the overhead of a batch.
    """
    first = row.sizes.index(batch[2])
    rate = batch[1] / max(1, row.median_ns[first])
    for at in range(first + 1, len(row.sizes)):
        start = bisect_left(queue, (ready_ns + row.high_ns[at],), batch[0])
        count = min(len(queue) - start, row.sizes[at])
        if count <= batch[1]:
            return batch
        can_wait = queue[start][0] >= ready_ns + row.high_ns[first] + row.high_ns[at]
        larger = count / max(1, row.median_ns[at])
        if larger > rate * GROWTH_MIN and not can_wait:
            batch, rate = (start, count, row.sizes[at]), larger
    return batch


class EarliestDeadlineFirst:
    """The queue whose head has the earliest deadline runs next, with as many requests as are on
    time.

    Three types of heads are skipped, so that they block no others: a head that would certainly be
    late on this executor (a faster one might be in time); a head that would probably be late, as
    long as another request would probably be in time; and under overload the heads that would keep
    batches small. Cost: O(variants * applications that wait) per decision, O(log n) comparisons per
    change.
    """

    wants_samples = False

    def __init__(self) -> None:
        self._latencies = Latencies(SchedulerParameters())
        self._learning = Learning(self._latencies)
        self._expectations = Expectations(self._latencies, self._learning)
        self._entries: dict[RequestId, tuple[VariantName, int, int]] = {}
        """Variant, application and the deadline by which the request is queued."""
        self._later: dict[RequestId, tuple[UtilityStep, ...]] = {}
        """For requests with several deadlines, those after the one they are queued by."""
        self._preparing: dict[VariantName, Queue] = {}
        self._ready: dict[VariantName, Queue] = {}
        self._by_app: dict[tuple[VariantName, int], Queue] = {}
        """Both, by variant and application: in each of these queues, requests expire in order."""

    def attach(self, latencies: Latencies, learning: Learning, expectations: Expectations) -> None:
        """Set the expected times to decide by."""
        self._latencies = latencies
        self._learning = learning
        self._expectations = expectations

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Add a request that is being decoded."""
        app = self._learning.app(variant, request.app, now_ns)
        self._entries[request.id] = variant, app, request.deadline_ns
        if request.steps:
            self._later[request.id] = request.steps
        at = request.deadline_ns, request.id
        insort(self._preparing.setdefault(variant, []), at)
        insort(self._by_app.setdefault((variant, app), []), at)

    def prepared(self, request: RequestId, now_ns: int) -> None:
        """Queue a request."""
        variant, _, deadline_ns = self._entries[request]
        _remove(self._preparing[variant], deadline_ns, request)
        insort(self._ready.setdefault(variant, []), (deadline_ns, request))

    def removed(self, request: RequestId) -> None:
        """Forget a request."""
        variant, deadline_ns = self._forget(request)
        self._unqueue(variant, deadline_ns, request)

    def batch_completed(self, batch: Infer, took_ns: int, now_ns: int) -> None:
        """Learn nothing: the policy uses only what the Scheduler learns."""

    def expired(self, now_ns: int) -> list[RequestId]:
        """Remove and return the requests that would miss even in a batch of their own, started now.

        A request that can still meet a later deadline is queued by that one instead.
        """
        gone: list[RequestId] = []
        for (variant, app), queue in list(self._by_app.items()):
            if queue[0][0] < (bound_ns := now_ns + self._quickest_ns(variant, app)):
                passed = [request for _, request in queue[: bisect_left(queue, (bound_ns,))]]
                gone.extend(r for r in passed if not self._requeue(r, bound_ns))
        for request in gone:
            self.removed(request)
        return gone

    def _requeue(self, request: RequestId, bound_ns: int) -> bool:
        """Queue a request by its next deadline at or after this instant; False: it has none."""
        left = [step for step in self._later.get(request, ()) if step.by_ns >= bound_ns]
        if not left:
            return False
        variant, app, deadline_ns = self._entries[request]
        queue = self._unqueue(variant, deadline_ns, request)
        _remove(self._by_app[variant, app], deadline_ns, request)
        self._later[request] = tuple(left[1:])
        self._entries[request] = variant, app, left[0].by_ns
        for of in (queue, self._by_app[variant, app]):
            insort(of, (left[0].by_ns, request))
        return True

    def _unqueue(self, variant: VariantName, deadline_ns: int, request: RequestId) -> Queue:
        """Remove a request from its queue and return the queue."""
        ready = self._ready.get(variant, [])
        if _remove(ready, deadline_ns, request):
            return ready
        preparing = self._preparing[variant]
        _remove(preparing, deadline_ns, request)
        return preparing

    def _forget(self, request: RequestId) -> tuple[VariantName, int]:
        if self._later:
            self._later.pop(request, None)
        variant, app, deadline_ns = self._entries.pop(request)
        alike = self._by_app[variant, app]
        _remove(alike, deadline_ns, request)
        if not alike:
            del self._by_app[variant, app]
        return variant, deadline_ns

    def next_batch(
        self, executor: ExecutorId, now_ns: int, excluded: Excluded = NONE
    ) -> Batch | None:
        """Remove and return the batch with the earliest deadline that this executor can meet."""
        best = self._first(executor, now_ns, excluded, likely=True) or self._first(
            executor, now_ns, excluded, likely=False
        )
        if best is None:
            return None
        (deadline_ns, _), variant, row, start = best
        queue = self._ready[variant]
        ready_ns = now_ns + self._latencies.overhead_ns(executor)
        count, size = fill(row, len(queue) - start, deadline_ns - ready_ns)
        start, count, size = _skip_tight_heads(row, queue, (start, count, size), ready_ns)
        members = tuple(request for _, request in queue[start : start + count])
        del queue[start : start + count]
        for request in members:
            self._forget(request)
        return Batch(variant, members, size)

    def _first(
        self, executor: ExecutorId, now_ns: int, excluded: Excluded, *, likely: bool
    ) -> tuple[tuple[int, RequestId], VariantName, Row, int] | None:
        """Return the earliest deadline that this executor meets usually, or at least at its
        fastest."""
        best: tuple[tuple[int, RequestId], VariantName, Row, int] | None = None
        for variant, queue in self._ready.items():
            if not queue or (best is not None and best[0] < queue[0]):
                continue
            if variant in excluded:
                continue
            row = self._latencies.row(executor, variant)
            if row is None:
                continue
            begin_ns = now_ns + (self._latencies.overhead_ns(executor) if likely else 0)
            start = self._passed(variant, row, begin_ns, likely=likely)
            if start < len(queue) and (best is None or queue[start] < best[0]):
                best = queue[start], variant, row, start
        return best

    def _passed(self, variant: VariantName, row: Row, now_ns: int, *, likely: bool) -> int:
        """Return how many requests at the head an executor would miss in batches of their own.

        Args:
            variant: the variant of the queue.
            row: what its batches take on this executor, whatever the application.
            now_ns: when a batch would start.
            likely: use the median time; otherwise the low quantile.
        """
        queue = self._ready[variant]
        takes_ns: dict[int, int] = {}
        for at, (deadline_ns, request) in enumerate(queue):
            app = self._entries[request][1]
            if app not in takes_ns:
                takes_ns[app] = self._takes_ns(variant, app, row, likely=likely)
            if deadline_ns >= now_ns + takes_ns[app]:
                return at
        return len(queue)

    def _takes_ns(self, variant: VariantName, app: int, row: Row, *, likely: bool) -> int:
        """Return the time of a request in a batch of its own on an executor.

        The ratio between applications is the same on every executor.
        """
        profiled_ns = row.median_ns[0] if likely else row.low_ns[0]
        best = self._latencies.best(variant)
        own = self._expectations.single_request(variant, self._learning.name(variant, app))
        if best is None or own is None:
            return profiled_ns
        own_ns, best_ns = (
            (own.usual_ns, best.median_ns[0]) if likely else (own.low_ns, best.low_ns[0])
        )
        return round(profiled_ns * own_ns / max(1, best_ns))

    def next_wakeup_ns(self) -> int | None:
        """Return when the next request expires."""
        return min(
            (
                queue[0][0] - self._quickest_ns(variant, app) + 1
                for (variant, app), queue in self._by_app.items()
            ),
            default=None,
        )

    def pending(self) -> Iterable[RequestId]:
        """Iterate over every request in the queues."""
        for queues in (self._ready, self._preparing):
            for queue in queues.values():
                yield from (request for _, request in queue)

    def _quickest_ns(self, variant: VariantName, app: int) -> int:
        # If no executor has the variant, requests are kept until the deadline: one may come back.
        single_request = self._expectations.single_request(
            variant, self._learning.name(variant, app)
        )
        return 0 if single_request is None else int(single_request.low_ns)


def _remove(queue: Queue, deadline_ns: int, request: RequestId) -> bool:
    at = bisect_left(queue, (deadline_ns, request))
    if at < len(queue) and queue[at][1] == request:
        del queue[at]
        return True
    return False
