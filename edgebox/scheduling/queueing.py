"""Owns what most policies share: queues by deadline, and dropping the hopeless. Pure."""

from collections.abc import Iterable, Sequence

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request, RequestId
from edgebox.scheduling.affinity import NONE, Excluded
from edgebox.scheduling.deadline_queue import ReadyQueue, Waiting
from edgebox.scheduling.events import Infer
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies, Row
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

Queues = list[tuple[VariantName, ReadyQueue, Row]]
"""What waits, variant by variant, with what its batches take."""


class QueueingPolicy:
    """A policy without an opinion: it queues by deadline, learns nothing and starts nothing.

    A policy derived from it says what to run (`_choose`), and where it differs, when a request
    is given up (`_quickest_ns`) and what it learns.
    """

    wants_samples = False

    def __init__(self) -> None:
        self._latencies = Latencies(SchedulerParameters())
        self._learning = Learning(self._latencies)
        self._expectations = Expectations(self._latencies, self._learning)
        self._waiting = Waiting(self._quickest_ns)

    def attach(self, latencies: Latencies, learning: Learning, expectations: Expectations) -> None:
        """Take the expected times to decide by."""
        self._expectations = expectations
        self._latencies = latencies
        self._learning = learning

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Watch the deadline of a request that is being decoded."""
        app = self._learning.app(variant, request.app, now_ns)
        self._waiting.admit(request, variant, app)

    def prepared(self, request: RequestId, now_ns: int) -> None:
        """Queue a request."""
        self._waiting.prepared(request)

    def removed(self, request: RequestId) -> None:
        """Forget a request."""
        self._waiting.remove(request)

    def batch_completed(self, batch: Infer, took_ns: int, now_ns: int) -> None:
        """Learn nothing from batches."""

    def expired(self, now_ns: int) -> list[RequestId]:
        """Give away the requests that would miss even at `_quickest_ns`."""
        return self._waiting.expired(now_ns)

    def next_batch(
        self, executor: ExecutorId, now_ns: int, excluded: Excluded = NONE
    ) -> Batch | None:
        """Choose among the queues that are not excluded from an executor."""
        queues = self._queues(executor, excluded)
        return self._choose(executor, queues, now_ns) if queues else None

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Start nothing."""
        return None

    def next_wakeup_ns(self) -> int | None:
        """Return when the next request is given up."""
        return self._waiting.next_hopeless_ns()

    def pending(self) -> Iterable[RequestId]:
        """Iterate over every request it knows."""
        return iter(self._waiting)

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        """Return the time that a request must still have to be kept."""
        # A variant that no executor has keeps its requests to the deadline: one may come back.
        alone = self._expectations.alone(variant, self._learning.name(variant, app))
        return 0.0 if alone is None else alone.low_ns

    def _queues(self, executor: ExecutorId, excluded: Excluded) -> Queues:
        """Return what waits for an executor, the queue with the earliest deadline first."""
        waiting = [
            (variant, queue, row)
            for variant, queue in self._waiting.queues.items()
            if len(queue) and variant not in excluded
            if (row := self._latencies.row(executor, variant)) is not None
        ]
        waiting.sort(key=lambda item: item[1].deadlines[0])
        return waiting

    def _batch(self, variant: VariantName, row: Row, places: Sequence[int]) -> Batch:
        """Give away the requests at these places, padded to the smallest profiled size."""
        members = self._waiting.take(variant, places)
        size = next(size for size in row.sizes if size >= len(members))
        return Batch(variant, tuple(member.id for member in members), size)


def oldest(queue: ReadyQueue, count: int) -> list[int]:
    """Return the places of the requests that came first."""
    return sorted(range(len(queue)), key=queue.requests.__getitem__)[:count]
