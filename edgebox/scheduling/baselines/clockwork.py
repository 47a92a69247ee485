"""Decides the next batch as Clockwork does: plan with the worst of recent measurements. Pure.

Source: Gujarati et al., "Serving DNNs like Clockwork", OSDI 2020, section 5.3, and its published
scheduler. Per model and batch size the estimate is a high percentile of the last ten measurements
(of ten, the maximum). The largest batch size that is full and can meet its deadlines is chosen. A
request that cannot meet its deadline even in a batch of its own is cancelled ahead of time. Left
out: placement of models in GPU memory, and the worker's own window for starting an action, which
this box does not need because it hands over one batch at a time.
"""

from collections import deque

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.expected_latencies import Row
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues

RECENT = 10
"""Measurements per batch size."""


class Clockwork(QueueingPolicy):
    """The largest full batch that is on time by the recent maximum. Cost: O(sizes log n)."""

    def __init__(self) -> None:
        super().__init__()
        self._measured: dict[tuple[ExecutorId, VariantName, int], deque[int]] = {}

    def batch_completed(self, batch: Infer, took_ns: int, now_ns: int) -> None:
        """Note what a batch of this size took."""
        key = batch.executor, batch.variant, batch.batch_size
        self._measured.setdefault(key, deque(maxlen=RECENT)).append(took_ns)

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Remove and return the earliest deadlines that make the largest full batch."""
        for variant, queue, row in queues:
            overhead_ns = self._latencies.overhead_ns(executor)
            slowed = self._latencies.slowed(executor, variant)
            for at in reversed(range(len(row.sizes))):
                takes_ns = self._estimate_ns(executor, variant, row, at, slowed)
                start = queue.first_from(now_ns + takes_ns + overhead_ns)
                if len(queue) - start >= row.sizes[at]:
                    return self._batch(variant, row, range(start, start + row.sizes[at]))
        return None

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        # Called before an executor is known to be idle, so the fastest one counts.
        estimates = [
            self._estimate_ns(executor, variant, row, 0)
            for executor in self._latencies.executors(variant)
            if (row := self._latencies.row(executor, variant, 0)) is not None
        ]
        return float(min(estimates, default=0))

    def _estimate_ns(
        self, executor: ExecutorId, variant: VariantName, row: Row, at: int, slowed: float = 1.0
    ) -> int:
        measured = self._measured.get((executor, variant, row.sizes[at]))
        return round(slowed * max(measured)) if measured else row.median_ns[at]
