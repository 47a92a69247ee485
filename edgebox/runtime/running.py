"""Owns which executor runs which batch, and its results from when it comes back to its end."""

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import RequestId
from edgebox.inference.executor import BatchResult
from edgebox.scheduling.events import Infer


class RunningBatches:
    """One batch at most of each executor that is not lost."""

    def __init__(self) -> None:
        self._by_executor: dict[ExecutorId, tuple[Infer, BatchResult | None]] = {}

    def begin(self, order: Infer) -> None:
        """Take in that an executor has been given a batch."""
        self._by_executor[order.executor] = order, None

    def is_running(self, order: Infer) -> bool:
        """Say whether its executor still has this batch, and was not lost meanwhile."""
        return self._by_executor.get(order.executor, (None, None))[0] is order

    def came_back(self, order: Infer, result: BatchResult) -> None:
        """Keep what a batch found until its frames have ended."""
        self._by_executor[order.executor] = order, result

    def end(self, executor: ExecutorId) -> None:
        """Forget what an executor runs, if anything."""
        self._by_executor.pop(executor, None)

    def result_of(self, request: RequestId) -> tuple[Infer, BatchResult]:
        """Return the batch in which a request came back.

        Raises:
            KeyError: it is in none.
        """
        for order, result in self._by_executor.values():
            if result is not None and request in order.requests:
                return order, result
        raise KeyError(f"request {request} finished without a batch")

    def executor_of(self, request: RequestId) -> ExecutorId | None:
        """Return the executor whose thread may still read a request's canvas."""
        for executor, (order, result) in self._by_executor.items():
            if result is None and request in order.requests:
                return executor
        return None
