"""Decides the next batch by earliest deadline first over one queue per variant.

Pure. The size of a batch is what its earliest deadline allows at the profile's high quantile,
and a request is dropped only when it would miss even at the low one of what its application is
expected to take (`expectations`), by which it was admitted. One with several deadlines
is ordered by the earliest that it would not miss so, and dropped when that is none. Textbook EDF
collapses when overloaded, more so with batches; where ours departs from it is said at each place.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request, RequestId, UtilityStep
from edgebox.scheduling.affinity import NONE, Excluded
from edgebox.scheduling.events import Infer
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies, Row
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

WORTH_GROWING = 1.03
"""A larger batch must answer this many times as many requests per second as a smaller one."""

Queue = list[tuple[int, RequestId]]
"""(deadline_ns, request), sorted: a few comparisons and a short memmove per change beat a heap
whose entries must also be removed from the middle and looked at in order."""


def fill(row: Row, waiting: int, time_left_ns: int) -> tuple[int, int]:
    """Choose how many requests to run and the batch size to pad them to.

    Of the profiled sizes whose high-quantile time fits, the one that answers most requests per
    second (by the median), a smaller one where a larger gains nothing worth its delay. So a
    batch is padded where the accelerator takes it for nothing, and grows only where growing pays:
    on a CPU it mostly does not. When not even the smallest size fits, one request is tried.

    Args:
        row: expected times, overhead excluded.
        waiting: requests there are to choose from, at least 1.
        time_left_ns: until the earliest deadline, overhead taken off.

    Returns:
        How many requests, and the profiled size to run them at.
    """
    best, best_rate = 0, 0.0
    for at in range(max(1, bisect_right(row.high_ns, time_left_ns))):
        rate = min(waiting, row.sizes[at]) / max(1, row.median_ns[at])
        if rate > best_rate * WORTH_GROWING:
            best, best_rate = at, rate
    size = row.sizes[best]
    if row.high_ns[best] > time_left_ns:
        return 1, size
    return min(waiting, size), size


def _give_up_heads(
    row: Row, queue: Queue, batch: tuple[int, int, int], ready_ns: int
) -> tuple[int, int, int]:
    """Pass over the earliest deadlines where serving them would cost more of the later ones.

    In an overload the head of the queue always has hardly any time left, which allows batches
    of one only, at which the overload never ends. A larger batch from further back is taken
    instead if it answers more requests per second and could not wait for the small one.

    Args:
        row: expected times.
        queue: the whole queue.
        batch: (start in the queue, how many, at which size) to be improved on.
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
        if larger > rate * WORTH_GROWING and not can_wait:
            batch, rate = (start, count, row.sizes[at]), larger
    return batch


class EarliestDeadlineFirst:
    """The queue whose head has the earliest deadline runs next, as many as still make it.

    Three things are passed over, so that they block nobody: a head that this executor would miss
    for certain (a faster one might make it); one that it would probably miss, as long as anything
    likely waits for it; and in an overload the heads that would force small batches for ever.
    Cost: O(variants * applications that wait) per question, O(log n) comparisons per change.
    """

    wants_samples = False

    def __init__(self) -> None:
        self._latencies = Latencies(SchedulerParameters())
        self._learning = Learning(self._latencies)
        self._expectations = Expectations(self._latencies, self._learning)
        self._entries: dict[RequestId, tuple[VariantName, int, int]] = {}
        """Variant, application and the deadline that it is queued by."""
        self._later: dict[RequestId, tuple[UtilityStep, ...]] = {}
        """Of those with several deadlines the ones after that they are queued by."""
        self._preparing: dict[VariantName, Queue] = {}
        self._ready: dict[VariantName, Queue] = {}
        self._alike: dict[tuple[VariantName, int], Queue] = {}
        """Both, by variant and application: of these all become hopeless in order."""

    def attach(self, latencies: Latencies, learning: Learning, expectations: Expectations) -> None:
        """Take the expected times to decide by."""
        self._latencies = latencies
        self._learning = learning
        self._expectations = expectations

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Watch the deadline of a request that is being decoded."""
        app = self._learning.app(variant, request.app, now_ns)
        self._entries[request.id] = variant, app, request.deadline_ns
        if request.steps:
            self._later[request.id] = request.steps
        at = request.deadline_ns, request.id
        insort(self._preparing.setdefault(variant, []), at)
        insort(self._alike.setdefault((variant, app), []), at)

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
        """Learn nothing: what the Scheduler learns is all this policy uses."""

    def expired(self, now_ns: int) -> list[RequestId]:
        """Give away the requests that would miss even if run alone, now, and quickly.

        Who would miss all but a later deadline is queued by that one instead.
        """
        gone: list[RequestId] = []
        for (variant, app), queue in list(self._alike.items()):
            if queue[0][0] < (bound_ns := now_ns + self._quickest_ns(variant, app)):
                passed = [request for _, request in queue[: bisect_left(queue, (bound_ns,))]]
                gone.extend(r for r in passed if not self._requeue(r, bound_ns))
        for request in gone:
            self.removed(request)
        return gone

    def _requeue(self, request: RequestId, bound_ns: int) -> bool:
        """Queue a request by its next deadline that is not before this; False: it has none."""
        left = [step for step in self._later.get(request, ()) if step.by_ns >= bound_ns]
        if not left:
            return False
        variant, app, deadline_ns = self._entries[request]
        queue = self._unqueue(variant, deadline_ns, request)
        _remove(self._alike[variant, app], deadline_ns, request)
        self._later[request] = tuple(left[1:])
        self._entries[request] = variant, app, left[0].by_ns
        for of in (queue, self._alike[variant, app]):
            insort(of, (left[0].by_ns, request))
        return True

    def _unqueue(self, variant: VariantName, deadline_ns: int, request: RequestId) -> Queue:
        """Take a request out of the queue that it is in; return that."""
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
        alike = self._alike[variant, app]
        _remove(alike, deadline_ns, request)
        if not alike:
            del self._alike[variant, app]
        return variant, deadline_ns

    def next_batch(
        self, executor: ExecutorId, now_ns: int, excluded: Excluded = NONE
    ) -> Batch | None:
        """Give away the batch with the earliest deadline that this executor can still make."""
        best = self._first(executor, now_ns, excluded, likely=True) or self._first(
            executor, now_ns, excluded, likely=False
        )
        if best is None:
            return None
        (deadline_ns, _), variant, row, start = best
        queue = self._ready[variant]
        ready_ns = now_ns + self._latencies.overhead_ns(executor)
        count, size = fill(row, len(queue) - start, deadline_ns - ready_ns)
        start, count, size = _give_up_heads(row, queue, (start, count, size), ready_ns)
        members = tuple(request for _, request in queue[start : start + count])
        del queue[start : start + count]
        for request in members:
            self._forget(request)
        return Batch(variant, members, size)

    def _first(
        self, executor: ExecutorId, now_ns: int, excluded: Excluded, *, likely: bool
    ) -> tuple[tuple[int, RequestId], VariantName, Row, int] | None:
        """Find the earliest deadline that this executor makes usually, or at its quickest."""
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
        """Return how many ready requests from the head on an executor would miss alone.

        Args:
            variant: what they wait for.
            row: what its batches take on this executor, whatever the application.
            now_ns: when one would begin.
            likely: by what it takes usually, not at its quickest.
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
        """Return what a request takes alone on an executor.

        What an application takes, relative to others, is the same on every executor.
        """
        profiled_ns = row.median_ns[0] if likely else row.low_ns[0]
        best = self._latencies.best(variant)
        own = self._expectations.alone(variant, self._learning.name(variant, app))
        if best is None or own is None:
            return profiled_ns
        own_ns, best_ns = (
            (own.usual_ns, best.median_ns[0]) if likely else (own.low_ns, best.low_ns[0])
        )
        return round(profiled_ns * own_ns / max(1, best_ns))

    def next_wakeup_ns(self) -> int | None:
        """Return when the next request comes out of reach."""
        return min(
            (
                queue[0][0] - self._quickest_ns(variant, app) + 1
                for (variant, app), queue in self._alike.items()
            ),
            default=None,
        )

    def pending(self) -> Iterable[RequestId]:
        """Iterate over every request in the queues."""
        for queues in (self._ready, self._preparing):
            for queue in queues.values():
                yield from (request for _, request in queue)

    def _quickest_ns(self, variant: VariantName, app: int) -> int:
        # A variant that no executor has keeps its requests to the deadline: one may come back.
        alone = self._expectations.alone(variant, self._learning.name(variant, app))
        return 0 if alone is None else int(alone.low_ns)


def _remove(queue: Queue, deadline_ns: int, request: RequestId) -> bool:
    at = bisect_left(queue, (deadline_ns, request))
    if at < len(queue) and queue[at][1] == request:
        del queue[at]
        return True
    return False
