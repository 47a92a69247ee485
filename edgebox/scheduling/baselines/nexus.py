"""Decides the next batch as Nexus does: a planned batch size, and early drop. Pure.

Source: Shen et al., "Nexus", SOSP 2019, section 4.1: a session on a GPU of its own gets the largest
batch that fits twice into its deadline, because a request that just missed a batch waits for it and
runs in the next. Sections 4.3 and 6.3, early drop: a window of the planned batch size slides over
the queue and stops at the first request that has time for the whole window; all before it are
dropped. Execution times are averages from the profile. Left out: packing several models onto one
GPU.
"""

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling.expected_latencies import Row
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues


class Nexus(QueueingPolicy):
    """Batches of a planned size; requests without time for a whole batch are dropped early.

    The drop is decided together with the batch, so the next call of `expired` returns it. Cost:
    O(sizes + dropped) per batch.
    """

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Remove and return the window at which the early drop stops."""
        for variant, queue, row in queues:
            planned = self._planned(row, min(queue.slos))
            for start in range(len(queue)):
                count = min(planned, len(queue) - start)
                at = next(at for at, size in enumerate(row.sizes) if size >= count)
                takes_ns = row.median_ns[at] + self._latencies.overhead_ns(executor)
                if queue.deadlines[start] >= now_ns + takes_ns:
                    batch = self._batch(variant, row, range(start, start + count))
                    self._waiting.abandon(queue.requests[:start], now_ns)
                    return batch
        return None

    def _planned(self, row: Row, slo_ns: int) -> int:
        fitting = [
            size
            for size, takes_ns in zip(row.sizes, row.median_ns, strict=True)
            if 2 * takes_ns <= slo_ns
        ]
        return max(fitting, default=row.sizes[0])

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        row = self._latencies.best(variant)
        return 0.0 if row is None else float(row.median_ns[0])
