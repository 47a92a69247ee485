"""An executor without a model."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.inference.executor import CLOSE_S, THREADS
from edgebox.inference.executor_thread import BatchJob, BatchResult, ExecutorThread
from edgebox.inference.tensors import ModelInput
from edgebox.vision.detections import Detections


class NullExecutor:
    """Finds nothing, after a given time. It serves to measure everything except inference."""

    provider = "NullExecutor"
    note = "finds nothing: for measuring everything but inference"
    cpu_threads = 1
    takes_encoded = False
    thread_counts: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()
    families: tuple[FamilyName, ...] = ()

    def __init__(
        self,
        executor_id: ExecutorId,
        *,
        batch_ns: int = 0,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Start the thread; each batch keeps it for `batch_ns`."""
        self.id = executor_id
        self.device = "none"
        self._batch_ns = batch_ns
        self._clock_ns = clock_ns
        self._worker = ExecutorThread(f"{THREADS}{executor_id}", self._run)

    def submit(
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        """Answer a batch with nothing found."""
        return self._worker.submit(BatchJob(variant, inputs, batch_size, Future()))

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None:
        """Do nothing: there is nothing to warm."""

    def abandon(self) -> None:
        """Take no more batches, fail those that wait."""
        self._worker.end()

    def close(self) -> None:
        """Finish the batch that runs, fail those that wait, end the thread. Idempotent."""
        self._worker.end()
        self._worker.ended(CLOSE_S)

    def _run(self, job: BatchJob) -> BatchResult:
        started_ns = self._clock_ns()
        if self._batch_ns:
            time.sleep(self._batch_ns / 1e9)
        # Where nothing is decoded there are no canvases, yet each place in the batch is answered.
        found = [Detections.empty() for _ in range(job.batch_size)]
        return BatchResult(found, started_ns, self._clock_ns())
