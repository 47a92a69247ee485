"""Executors of a running box as measurements use them: beside cameras, or until a camera comes."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from edgebox.domain.job_errors import CamerasConnectedError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.executor import Executor
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.tensors import ModelInput
from edgebox.runtime.driver import Driver
from edgebox.scheduling.events import ExecutorLent

_SHARE_BESIDE_CAMERAS = 0.2
"""Share of an executor's time that measuring takes while cameras are connected."""


LentReport = Callable[[bool], None]
"""Tells the core, from any thread, that work begins on an executor, or has ended (False)."""


def lent_report(driver: Driver, executor: ExecutorId) -> LentReport:
    """Return what tells the core of a measurement's work."""
    return lambda lent: driver.from_thread(lambda: driver.feed(ExecutorLent(executor, lent)))


@contextmanager
def lent(report: LentReport) -> Iterator[None]:
    """Use an executor for work that the core does not order."""
    report(True)
    try:
        yield
    finally:
        report(False)


class _BorrowedExecutor:
    """An executor that stays open whatever becomes of the measurement."""

    def __init__(self, executor: Executor, report: LentReport) -> None:
        self._executor = executor
        self._report = report
        self.id = executor.id
        self.provider = executor.provider
        self.device = executor.device
        self.note = executor.note
        self.cpu_threads = executor.cpu_threads
        self.takes_encoded = executor.takes_encoded
        self.thread_counts = executor.thread_counts
        self.cores = executor.cores
        self.families = executor.families

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None:
        """Run every combination once."""
        with lent(self._report):
            self._executor.warm(variants, batch_sizes)

    def _run(
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int,
        deadline_ns: int | None,
    ) -> Future[BatchResult]:
        self._report(True)
        future = self._executor.submit(
            variant, inputs, batch_size, threads, deadline_ns=deadline_ns
        )
        future.add_done_callback(lambda _: self._report(False))
        return future

    def abandon(self) -> None:
        """Leave the executor as it is."""

    def close(self) -> None:
        """Do what `abandon` does: the executor stays open."""
        self.abandon()


class PacedExecutor(_BorrowedExecutor):
    """An executor that a measurement uses in between the batches of cameras."""

    def __init__(self, executor: Executor, report: LentReport, shares: Callable[[], bool]) -> None:
        """Share an executor for as long as `shares` says so; asked in any thread."""
        super().__init__(executor, report)
        self._shares = shares
        self._took_s = 0.0
        self.shared = False
        """Whether a camera was there at any batch."""

    def submit(
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        """Run a batch; beside cameras it waits first, so that they have most of the time."""
        if self._shares():
            self.shared = True
            time.sleep(self._took_s * (1 / _SHARE_BESIDE_CAMERAS - 1))
        future = self._run(variant, inputs, batch_size, threads, deadline_ns)
        future.add_done_callback(self._ran)
        return future

    def _ran(self, future: Future[BatchResult]) -> None:
        if future.exception() is None:
            self._took_s = future.result().took_ns / 1e9


class LentExecutor(_BorrowedExecutor):
    """An executor that can be taken back: then every batch fails, including the running one."""

    def __init__(self, executor: Executor, report: LentReport) -> None:
        """Lend an executor until it is taken back."""
        super().__init__(executor, report)
        # Callbacks of a finished batch are called at once, in this thread.
        self._lock = threading.RLock()
        self._taken_back = False
        self._running: Future[BatchResult] | None = None

    def submit(
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        """Run a batch, unless the executor was taken back."""
        lent: Future[BatchResult] = Future()
        with self._lock:
            self._running = lent
            if not self._taken_back:
                real = self._run(variant, inputs, batch_size, threads, deadline_ns)
                real.add_done_callback(lambda done: self._done(done, lent))
                return lent
        lent.set_exception(taken())
        return lent

    def _done(self, real: Future[BatchResult], lent: Future[BatchResult]) -> None:
        error = real.exception()
        with self._lock:
            if lent.done():
                return
            if error is not None:
                lent.set_exception(error)
            else:
                lent.set_result(real.result())

    def take_back(self) -> None:
        """End the measurement at once, even if its batch hangs."""
        with self._lock:
            self._taken_back = True
            running = self._running
            if running is not None and not running.done():
                running.set_exception(taken())

    def abandon(self) -> None:
        """Take the executor back; it stays open."""
        self.take_back()


def taken() -> CamerasConnectedError:
    """Return the error of a measurement that a camera ends."""
    return CamerasConnectedError("a camera connected and uses the executor")
