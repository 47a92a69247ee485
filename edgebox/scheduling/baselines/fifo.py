"""Decides the next batch in order of arrival: the plainest baseline. Pure."""

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues, oldest


class FirstInFirstOut(QueueingPolicy):
    """Whoever came first runs first, as many as fit into the largest batch.

    Only what is past its deadline is dropped. Cost: O(n log n) per batch.
    """

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Give away the oldest requests of the queue whose oldest came first."""
        variant, queue, row = min(queues, key=lambda item: min(item[1].requests))
        return self._batch(variant, row, oldest(queue, row.sizes[-1]))

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        return 0.0
