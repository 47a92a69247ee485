"""Owns executors: each runs one batch at a time on one device, on a thread of its own.

The thread spends its time inside numpy and ONNX Runtime, which release the GIL. Limits: it
decides nothing; what to run, and in which order, is the scheduler's.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from edgebox.domain.errors import ModelError
from edgebox.domain.models import ExecutorId, Variant, VariantName
from edgebox.inference.cuda_libraries import cuda_runtime
from edgebox.inference.family import Family
from edgebox.inference.session_store import SessionStore, StoreSettings, run_bound
from edgebox.inference.sessions import (
    CPU,
    ProviderChoice,
    brief,
    default_cpu_threads,
    device_name,
)
from edgebox.inference.tensors import Canvas, InputTensors
from edgebox.vision.decoding import DECODERS
from edgebox.vision.detections import Detections

SCORE_FLOOR = 0.05
"""Detections below it never leave the executor; callers set their own, higher bar."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of one batch. Instants are on the executor's clock."""

    detections: list[Detections]
    """One per picture that was submitted, in input px of the variant; padding is left out."""
    started_ns: int
    ended_ns: int

    @property
    def took_ns(self) -> int:
        """How long the batch kept the executor: filling the input, running, decoding."""
        return self.ended_ns - self.started_ns


class Executor(Protocol):
    """Runs one batch at a time; `OnnxExecutor` on a model, `NullExecutor` on nothing."""

    id: ExecutorId
    provider: str
    """Where the model really runs, in ONNX Runtime's words."""
    device: str
    """The device, in a person's words."""
    note: str
    """Why not on the device hoped for; empty when there is nothing to say."""

    def submit(
        self, variant: VariantName, canvases: Sequence[Canvas], batch_size: int
    ) -> Future[BatchResult]:
        """Run a batch; never raises, never blocks: what goes wrong is in the future."""
        ...

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None:
        """Run every combination once, so that none is slow when it matters. Blocks."""
        ...

    def close(self) -> None:
        """Finish the batch that runs, fail those that wait, end the thread. Idempotent."""
        ...


@dataclass(slots=True)
class _Job:
    variant: VariantName
    canvases: Sequence[Canvas]
    batch_size: int
    future: Future[BatchResult]


class _Worker:
    """A thread that runs jobs in order and outlives every one that fails."""

    def __init__(self, name: str, run: Callable[[_Job], BatchResult]) -> None:
        self._run = run
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._closing = False
        # Between the check of `_closing` and the put, close() must not slip in: a job behind
        # the end mark would never be answered.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: _Job) -> Future[BatchResult]:
        with self._lock:
            if self._closing:
                job.future.set_exception(ModelError("the executor is closed"))
            else:
                self._jobs.put(job)
        return job.future

    def close(self) -> None:
        with self._lock:
            if not self._closing:
                self._closing = True
                self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not job.future.set_running_or_notify_cancel():
                continue
            if self._closing:
                job.future.set_exception(ModelError("the executor is closed"))
                continue
            try:
                result = self._run(job)
            except Exception as error:  # a batch may fail in any way; the thread must go on
                job.future.set_exception(_model_error(job.variant, error))
            else:
                job.future.set_result(result)
            # Frees the pictures now, not when the next batch comes.
            del job


def _model_error(variant: VariantName, error: Exception) -> ModelError:
    if isinstance(error, ModelError):
        return error
    wrapped = ModelError(f"{variant}: the batch failed: {brief(error)}")
    wrapped.__cause__ = error
    return wrapped


class OnnxExecutor:
    """Runs families with ONNX Runtime; one session per file serves all its variants."""

    def __init__(
        self,
        executor_id: ExecutorId | int,
        families: Sequence[Family],
        *,
        providers: ProviderChoice = "auto",
        device_index: int = 0,
        cpu_threads: int = 0,
        memory_limit_bytes: int = 0,
        engine_folder: Path | None = None,
        score_floor: float = SCORE_FLOOR,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Open the sessions (blocks for 0.1 s on a CPU, seconds on a GPU) and start the thread.

        Args:
            executor_id: a name, or the number among the executors of one device: then it is
                named after the device it really got, "cpu/0" or "cuda:0/1".
            families: at least one, from the zoo.
            providers: "cuda" insists; "auto" and "tensorrt" fall back and say so in `note`.
            device_index: which GPU.
            cpu_threads: threads a CPU session computes with; 0: all cores but one.
            memory_limit_bytes: above 0, nothing is in memory but what `load` brings there.
            engine_folder: where TensorRT keeps what it built; None: nowhere.
            score_floor: detections below it are not reported.
            clock_ns: the clock of results' instants.

        Raises:
            ModelError: a model cannot be opened, or CUDA was insisted on and is not usable.
        """
        if not families:
            raise ModelError("an executor needs at least one model family")
        self.cpu_threads = cpu_threads or default_cpu_threads()
        self._clock_ns = clock_ns
        self._score_floor = score_floor
        self._families = {v.name: family for family in families for v in family.variants}
        self._store = SessionStore(
            families,
            StoreSettings(
                providers, self.cpu_threads, device_index, memory_limit_bytes, engine_folder
            ),
        )
        self.note = self._store.note
        self.provider = self._store.provider
        self.device = device_name(self.provider, self.cpu_threads, device_index)
        if isinstance(executor_id, int):
            kind = "cpu" if self.provider == CPU else f"cuda:{device_index}"
            executor_id = ExecutorId(f"{kind}/{executor_id}")
        self.id = executor_id
        cuda = cuda_runtime() if self.provider != CPU else None
        if self.provider != CPU and cuda is None:
            self.note = "host memory is not page-locked (no libcudart): copies are slower"
        self._tensors = InputTensors(cuda)
        self._worker = _Worker(f"edgebox-{executor_id}", self._run)

    def submit(
        self, variant: VariantName, canvases: Sequence[Canvas], batch_size: int
    ) -> Future[BatchResult]:
        """Run a batch; never raises, never blocks: what goes wrong is in the future."""
        return self._worker.submit(_Job(variant, canvases, batch_size, Future()))

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None:
        """Run every combination once, so that none is slow when it matters. Blocks.

        Raises:
            ModelError: a combination failed.
        """
        self.warm_each([(name, size) for name in variants for size in batch_sizes])

    def warm_each(self, runs: Sequence[tuple[VariantName, int]]) -> None:
        """Run these variants and batch sizes once, in the executor's thread. Blocks.

        Raises:
            ModelError: one failed.
        """
        for name, size in runs:
            blank = blank_canvas(self._family(name).variant(name))
            self.submit(name, [blank] * size, size).result()

    def load(self, path: Path, runs: Sequence[tuple[VariantName, int]] = ()) -> None:
        """Bring a file into memory beside what runs, and run it in these batches. Blocks.

        Never waits for the executor's own thread, nor holds it up but for the cores it uses.

        Raises:
            ModelError: it cannot be opened, or a batch failed.
        """
        self._store.load(path)
        for name, size in runs:
            family = self._family(name)
            variant = family.variant(name)
            shape = family.input.shape(size, variant.width_px, variant.height_px)
            try:
                session = self._store.session(family.files[name])
                run_bound(session, np.zeros(shape, family.input.dtype))
            except Exception as error:  # ONNX Runtime's exception classes share no base
                self._store.drop(path)
                raise _model_error(name, error) from error

    def unload(self, path: Path) -> None:
        """Take a file out of memory; what runs on it at the moment is finished."""
        self._store.drop(path)

    def memory_used_bytes(self) -> int | None:
        """Return what is in use of the memory that sessions take, by anybody; None: not known."""
        return self._store.used_bytes()

    def close(self) -> None:
        """Finish the batch that runs, fail those that wait, end the thread. Idempotent."""
        self._worker.close()
        self._tensors.release()
        self._store.clear()

    def _family(self, name: VariantName) -> Family:
        try:
            return self._families[name]
        except KeyError:
            raise ModelError(f"executor {self.id} has no variant {name!r}") from None

    def _run(self, job: _Job) -> BatchResult:
        started_ns = self._clock_ns()
        family = self._family(job.variant)
        variant = family.variant(job.variant)
        if family.batch_size_fixed not in (None, job.batch_size):
            raise ModelError(
                f"{job.variant} only takes batches of {family.batch_size_fixed}, "
                f"not {job.batch_size}"
            )
        tensor = self._tensors.fill(family.input, variant, job.canvases, job.batch_size)
        outputs = run_bound(self._store.session(family.files[variant.name]), tensor)
        for output in outputs:
            # A graph whose batch axis was only relaxed on paper merges pictures silently.
            if output.ndim == 0 or output.shape[0] != job.batch_size:
                raise ModelError(
                    f"{job.variant}: a batch of {job.batch_size} came back as {output.shape}; "
                    "the model does not keep pictures of a batch apart"
                )
        wanted = [output[: len(job.canvases)] for output in outputs]
        decode = DECODERS[family.decoder]
        found = decode(wanted, variant.width_px, variant.height_px, self._score_floor)
        return BatchResult(found, started_ns, self._clock_ns())


def blank_canvas(variant: Variant) -> Canvas:
    """Return a canvas of a variant's size with nothing on it."""
    return np.full((variant.height_px, variant.width_px, 3), 114, np.uint8)


class NullExecutor:
    """Finds nothing, after a given time: measures all that is not inference."""

    provider = "NullExecutor"
    note = "finds nothing: for measuring everything but inference"

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
        self._worker = _Worker(f"edgebox-{executor_id}", self._run)

    def submit(
        self, variant: VariantName, canvases: Sequence[Canvas], batch_size: int
    ) -> Future[BatchResult]:
        """Answer a batch with nothing found."""
        return self._worker.submit(_Job(variant, canvases, batch_size, Future()))

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None:
        """Do nothing: there is nothing to warm."""

    def close(self) -> None:
        """Finish the batch that runs, fail those that wait, end the thread. Idempotent."""
        self._worker.close()

    def _run(self, job: _Job) -> BatchResult:
        started_ns = self._clock_ns()
        if self._batch_ns:
            time.sleep(self._batch_ns / 1e9)
        # Where nothing is decoded there are no canvases, yet each place in the batch is answered.
        found = [Detections.empty() for _ in range(job.batch_size)]
        return BatchResult(found, started_ns, self._clock_ns())
