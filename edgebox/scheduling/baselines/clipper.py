"""Decides the next batch as Clipper does: the batch size adapts to the latency objective. Pure.

Source: Crankshaw et al., "Clipper", NSDI 2017, section 4.3: requests run in order of arrival. The
largest batch grows by a constant while batches stay within the latency objective, and shrinks by a
tenth when one exceeds it. Clipper drops nothing: its front end replaces late answers, but the model
still computes them. Left out: model selection, caching, and delayed batching, which is off by
default.
"""

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import RequestId
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues, oldest

STEP = 1.0
BACKOFF = 0.9


class Clipper(QueueingPolicy):
    """Order of arrival, batch size by additive increase and multiplicative decrease."""

    def __init__(self) -> None:
        super().__init__()
        self._largest: dict[tuple[ExecutorId, VariantName], float] = {}
        self._objective_ns: dict[ExecutorId, int] = {}

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Remove and return the oldest requests, as many as the present batch size allows."""
        for variant, queue, row in queues:
            largest = int(self._largest.get((executor, variant), 1.0))
            indices = oldest(queue, min(largest, row.sizes[-1]))
            self._objective_ns[executor] = min(queue.slos[at] for at in indices)
            return self._batch(variant, row, indices)
        return None

    def batch_completed(self, batch: Infer, took_ns: int, now_ns: int) -> None:
        """Grow or shrink the batch size."""
        key = batch.executor, batch.variant
        largest = self._largest.get(key, 1.0)
        if took_ns > self._objective_ns.pop(batch.executor, took_ns):
            self._largest[key] = max(1.0, largest * BACKOFF)
        elif len(batch.requests) >= int(largest):
            sizes = self._latencies.profiles(batch.executor)[batch.variant].batch_sizes
            self._largest[key] = min(largest + STEP, float(sizes[-1]))

    def expired(self, now_ns: int) -> list[RequestId]:
        """Drop nothing."""
        return []

    def next_wakeup_ns(self) -> int | None:
        """Wait for nothing."""
        return None
