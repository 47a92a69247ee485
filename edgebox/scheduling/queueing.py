"""Owns what most policies share: queues by deadline, and dropping expired requests. Pure."""

from collections.abc import Iterable, Sequence

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request, RequestId
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.affinity import NONE, Excluded
from edgebox.scheduling.deadline_queue import DeadlineQueues, ReadyQueue
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies, Row
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

Queues = list[tuple[VariantName, ReadyQueue, Row]]
"""Each variant with waiting requests: its queue and the expected times of its batches."""


class QueueingPolicy:
    """A base policy: it queues by deadline, learns nothing and starts nothing.

    A derived policy decides what to run (`_choose`). Where it differs from this one, it also
    decides when a request expires (`_quickest_ns`) and what it learns.
    """

    wants_samples = False

    def __init__(self) -> None:
        self._latencies = Latencies(SchedulerParameters())
        self._learning = Learning(self._latencies)
        self._expectations = Expectations(self._latencies, self._learning)
        self._waiting = DeadlineQueues(self._quickest_ns)

    def attach(self, latencies: Latencies, learning: Learning, expectations: Expectations) -> None:
        """Set the expected times to decide by."""
        self._expectations = expectations
        self._latencies = latencies
        self._learning = learning

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Add a request that is being decoded."""
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
        """Remove and return the requests that would miss even if they took `_quickest_ns`."""
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
        """Return when the next request expires."""
        return self._waiting.next_expiry_ns()

    def pending(self) -> Iterable[RequestId]:
        """Iterate over every request the policy knows."""
        return iter(self._waiting)

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        """Return the minimum time of a request: with less time left it has expired."""
        # If no executor has the variant, requests are kept until the deadline: one may come back.
        single_request = self._expectations.single_request(
            variant, self._learning.name(variant, app)
        )
        return 0.0 if single_request is None else single_request.low_ns

    def _queues(self, executor: ExecutorId, excluded: Excluded) -> Queues:
        """Return the non-empty queues that an executor can serve, the earliest deadline first."""
        waiting = [
            (variant, queue, row)
            for variant, queue in self._waiting.queues.items()
            if len(queue) and variant not in excluded
            if (row := self._latencies.row(executor, variant)) is not None
        ]
        waiting.sort(key=lambda item: item[1].deadlines[0])
        return waiting

    def _batch(self, variant: VariantName, row: Row, indices: Sequence[int]) -> Batch:
        """Remove the requests at these indices and return them as a batch, padded to a profiled
        size."""
        members = self._waiting.take(variant, indices)
        size = next(size for size in row.sizes if size >= len(members))
        return Batch(variant, tuple(member.id for member in members), size)


def oldest(queue: ReadyQueue, count: int) -> list[int]:
    """Return the indices of the requests that arrived first."""
    return sorted(range(len(queue)), key=queue.requests.__getitem__)[:count]
