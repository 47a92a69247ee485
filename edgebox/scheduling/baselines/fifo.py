"""Decides the next batch in order of arrival: the simplest baseline. Pure."""

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues, oldest


class FirstInFirstOut(QueueingPolicy):
    """The oldest requests run first, as many as fit into the largest batch.

    Only requests past their deadlines are dropped. Cost: O(n log n) per batch.
    """

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Remove and return the oldest requests of the queue with the oldest one."""
        variant, queue, row = min(queues, key=lambda item: min(item[1].requests))
        return self._batch(variant, row, oldest(queue, row.sizes[-1]))

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        return 0.0
