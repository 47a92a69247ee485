"""Runs batches on executors and keeps their results until their frames have ended."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import BatchId, DropReason, Request, RequestId
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor import ConnectionBrokenError, Executor, ExecutorGoneError
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.tensors import ModelInput
from edgebox.runtime.repeat_limiter import FailedBatches
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.events import BatchCompleted, BatchFailed, ExecutorGone, RequestsUnanswered

_log = logging.getLogger(__name__)


class BatchRunner:
    """The batches on the way. An executor that is not lost runs one at most."""

    def __init__(
        self,
        executors: Mapping[ExecutorId, Executor],
        from_thread: Callable[[Callable[[], None]], None],
        *,
        later: Callable[[float, Callable[[], None]], None],
        feed: Callable[[RequestsUnanswered | BatchCompleted | BatchFailed | ExecutorGone], None],
        on_unanswered: Callable[[RequestId, Refused], None],
        on_result: Callable[[Infer, BatchResult], tuple[Request, ...]],
        on_error: Callable[[ExecutorId, str], None],
    ) -> None:
        """Start without batches.

        Args:
            executors: where batches run.
            from_thread: calls a function on the loop; may be used in any thread.
            later: calls a function on the loop after so many seconds.
            feed: informs the core of each batch that came back.
            on_unanswered: called with each member that a batch has no answer to, before the core is
                informed. Neither this nor `on_result` is called for executors that were lost
                meanwhile.
            on_result: called with each result, before the core is informed of it; returns the crops
                that later stages take.
            on_error: called with each batch that failed on an executor that was not lost.
        """
        self._executors = executors
        self._from_thread = from_thread
        self._later = later
        self._feed = feed
        self._on_unanswered = on_unanswered
        self._on_result = on_result
        self._on_error = on_error
        self._failed = FailedBatches(_log)
        self._unanswered = FailedBatches(_log, logging.WARNING, "not answered in full")
        self._running: dict[ExecutorId, Infer] = {}
        self._results: dict[BatchId, tuple[Infer, BatchResult]] = {}

    def run(
        self, order: Infer, inputs: Sequence[ModelInput], deadline_ns: int | None = None
    ) -> None:
        """Begin a batch; its answer is worth nothing after `deadline_ns` (None: it always is)."""
        self._running[order.executor] = order
        executor = self._executors[order.executor]
        future = executor.submit(
            order.variant, inputs, order.batch_size, order.threads, deadline_ns=deadline_ns
        )
        future.add_done_callback(lambda done: self._from_thread(lambda: self._done(order, done)))

    def abandon(self, executor: ExecutorId) -> None:
        """Forget the batch of an executor that was lost."""
        self._running.pop(executor, None)

    def result_of(self, batch: BatchId) -> tuple[Infer, BatchResult]:
        """Return a batch that has come back and whose frames are ending.

        Raises:
            KeyError: there is no such batch.
        """
        return self._results[batch]

    def executor_of(self, request: RequestId) -> ExecutorId | None:
        """Return the executor whose thread may still read a request's canvas."""
        for executor, order in self._running.items():
            if request in order.requests:
                return executor
        return None

    def end_minute(self) -> None:
        """Log how many such batches of the minute that ends were not logged."""
        self._failed.end_minute()
        self._unanswered.end_minute()

    def _done(self, order: Infer, done: "Future[BatchResult]") -> None:
        # A batch of an executor that was lost comes too late: the core only notes that it came.
        late = self._running.get(order.executor) is not order
        if not late:
            del self._running[order.executor]
        error = done.exception()
        if error is not None:
            self._log_failure(order, error, late=late)
            if isinstance(error, ExecutorGoneError) and not late:
                # First, or the core would give it another batch.
                self._feed(ExecutorGone(order.executor))
            disconnected = isinstance(error, ConnectionBrokenError)
            self._feed(BatchFailed(order.executor, order.batch, disconnected))
            return
        result = done.result()
        spawned: tuple[Request, ...] = ()
        if not late:
            self._results[order.batch] = order, result
            try:
                spawned = self._on_result(order, result)
            except Exception:  # a defect: the core must learn that the executor is free
                _log.exception("the result of a batch of %s cannot be used", order.variant)
                del self._results[order.batch]
                self._feed(BatchFailed(order.executor, order.batch))
                return
            if result.rest_s > 0 and not result.answered(order.requests):
                del self._results[order.batch]
                self._rest(order, result)
                return
            self._tell_unanswered(order, result)
        self._feed(BatchCompleted(order.executor, order.batch, result.took_ns, spawned))
        self._results.pop(order.batch, None)

    def _tell_unanswered(self, order: Infer, result: BatchResult, rests_ns: int = 0) -> None:
        """Inform the core of the members that a batch has no answer to, and log why."""
        by_reason: dict[DropReason, list[RequestId]] = {}
        for row, refused in sorted(result.refused.items()):
            self._on_unanswered(order.requests[row], refused)
            by_reason.setdefault(refused.reason, []).append(order.requests[row])
        failed = [of for of in result.refused.values() if of.reason is not DropReason.INVALID]
        if failed:
            self._unanswered.tell(f"{order.variant} on {order.executor}", failed[0].text)
            self._on_error(order.executor, failed[0].text)
        for reason, requests in by_reason.items():
            for_ns = rests_ns if reason is DropReason.OVERLOAD else 0
            self._feed(
                RequestsUnanswered(order.executor, order.batch, tuple(requests), reason, for_ns)
            )

    def _rest(self, order: Infer, result: BatchResult) -> None:
        """End a batch that its server had too much to do for once its executor has rested.

        It would look like the fastest of all.
        """
        resting = replace(order, requests=())  # its thread reads no inputs any more
        self._running[order.executor] = resting
        rests_ns = round(result.rest_s * 1e9)
        self._tell_unanswered(order, result, rests_ns)

        def rested() -> None:
            if self._running.get(order.executor) is resting:
                del self._running[order.executor]
            took_ns = result.took_ns + rests_ns
            self._feed(BatchCompleted(order.executor, order.batch, took_ns))

        self._later(result.rest_s, rested)

    def _log_failure(self, order: Infer, error: BaseException, *, late: bool) -> None:
        if late:
            _log.info("what hung on %s has ended: %s", order.executor, error)
        else:
            self._failed.tell(f"{order.variant} on {order.executor}", error)
            self._on_error(order.executor, str(error))
