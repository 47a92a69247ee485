"""Decides the next batch as BentoML's dispatcher does: wait while waiting is cheap. Pure.

Source: BentoML's public documentation of adaptive batching and the rule of its open-source
dispatcher (CorkDispatcher). The time of a batch is regressed as a * n + b. With n requests waiting,
the newest for w, dispatching is delayed while n * (w + tick + a) is at most 0.95 times the usual
wait. The oldest request is dropped when its wait plus a * n + b exceeds the latency limit. Here the
limit is each request's own deadline, and the rule is evaluated when it next changes.
"""

from collections import deque

import numpy as np

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import RequestId
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.deadline_queue import ReadyQueue
from edgebox.scheduling.expected_latencies import Row
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues, oldest

DECAY = 0.95
TICK_NS = 1_000_000
KEPT = 50
REFRESH = 5
INITIAL_WAIT_NS = 10_000_000.0


class _Regression:
    """The dispatcher's optimizer: batch times as a linear function of their size, and the usual
    wait."""

    def __init__(self, row: Row) -> None:
        self.per_request_ns, self.fixed_ns = _line(row.sizes, row.median_ns)
        self.wait_ns = INITIAL_WAIT_NS
        self._seen: deque[tuple[int, int, float]] = deque(maxlen=KEPT)
        self._since = 0

    def add(self, size: int, took_ns: int, waited_ns: float) -> None:
        """Add a batch; the regression is repeated every `REFRESH` batches."""
        self._seen.append((size, took_ns, waited_ns))
        self._since += 1
        if self._since >= REFRESH:
            self._since = 0
            sizes, times, waits = zip(*self._seen, strict=True)
            self.per_request_ns, self.fixed_ns = _line(sizes, times)
            self.wait_ns = float(np.mean(waits))


def _line(sizes: tuple[int, ...], times_ns: tuple[int, ...]) -> tuple[float, float]:
    at = np.stack([np.array(sizes, dtype=np.float64), np.ones(len(sizes))], axis=1)
    slope, offset = np.linalg.lstsq(at, np.array(times_ns, dtype=np.float64), rcond=None)[0]
    return max(0.0, float(slope)), max(0.0, float(offset))


class BentoMl(QueueingPolicy):
    """Order of arrival; a batch is delayed while the sum of the waits stays below the usual."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[VariantName, _Regression] = {}
        self._newest_ns: dict[VariantName, int] = {}
        self._started: dict[ExecutorId, float] = {}
        self._put_off_ns: int | None = None

    def prepared(self, request: RequestId, now_ns: int) -> None:
        """Queue a request and note that it is the newest."""
        super().prepared(request, now_ns)
        self._newest_ns[self._waiting.variant(request)] = now_ns

    def expired(self, now_ns: int) -> list[RequestId]:
        """Remove and return the requests that waited too long; reset a delay that is due.

        One that is not due yet stays: a wake-up that comes early must change nothing, and whether
        an executor is asked next depends on what it waits for.
        """
        if self._put_off_ns is not None and self._put_off_ns <= now_ns:
            self._put_off_ns = None
        return super().expired(now_ns)

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Remove and return the oldest requests, unless it is better to wait for more."""
        for variant, queue, row in queues:
            line = self._line(variant, row)
            until_ns = self._wait_until_ns(variant, queue, row, line)
            if until_ns > now_ns:
                at_ns = self._put_off_ns
                self._put_off_ns = until_ns if at_ns is None else min(at_ns, until_ns)
                continue
            indices = oldest(queue, row.sizes[-1])
            first = self._waiting.request(queue.requests[indices[0]])
            self._started[executor] = float(now_ns - first.arrival_ns)
            return self._batch(variant, row, indices)
        return None

    def batch_completed(self, batch: Infer, took_ns: int, now_ns: int) -> None:
        """Learn what a batch took and how long its oldest had waited."""
        line = self._lines.get(batch.variant)
        waited_ns = self._started.pop(batch.executor, None)
        if line is not None and waited_ns is not None:
            line.add(len(batch.requests), took_ns, waited_ns)

    def next_wakeup_ns(self) -> int | None:
        """Return when a request expires or a delayed batch is due."""
        delayed = any(map(len, self._waiting.queues.values()))
        due = (super().next_wakeup_ns(), self._put_off_ns if delayed else None)
        return min((at for at in due if at is not None), default=None)

    def _wait_until_ns(
        self, variant: VariantName, queue: ReadyQueue, row: Row, line: _Regression
    ) -> int:
        """Return the instant until which the rule waits for more requests."""
        waiting = len(queue)
        if waiting >= row.sizes[-1]:
            return 0
        most_ns = DECAY * line.wait_ns / waiting - TICK_NS - line.per_request_ns
        return self._newest_ns[variant] + int(most_ns) if most_ns > 0 else 0

    def _line(self, variant: VariantName, row: Row) -> _Regression:
        line = self._lines.get(variant)
        if line is None:
            line = self._lines[variant] = _Regression(row)
        return line

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        line = self._lines.get(variant)
        return 0.0 if line is None else line.fixed_ns + line.per_request_ns
