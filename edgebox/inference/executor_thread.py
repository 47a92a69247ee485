"""The thread of an executor: runs its batches in order and outlives every one that fails."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import RequestId
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.features import Features
from edgebox.inference.machine import pin
from edgebox.inference.sessions import brief
from edgebox.inference.tensors import ModelInput
from edgebox.vision.detections import Detections


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one batch. Instants are on the executor's clock."""

    detections: list[Detections]
    """One per picture that was submitted, in input px of the variant, or if it was submitted
    encoded in its own px; padding is left out."""
    started_ns: int
    ended_ns: int
    features: Features = ()
    """Output of a first part for its second: tensors (batch, channels, rows, columns)."""
    refused: Mapping[int, Refused] = field(default_factory=dict)
    """Pictures that were not answered, by row; `overload`: others may run them."""
    rest_s: float = 0.0
    """For how long the executor should rest, where none was answered, and some for `overload`."""

    def answered(self, requests: Sequence[RequestId]) -> list[RequestId]:
        """Return those of the requests of the rows that were answered."""
        return [request for row, request in enumerate(requests) if row not in self.refused]

    def features_of(self, row: int) -> Features:
        """Return the features of one picture, as views; empty: the model gives none."""
        return tuple(of_all[row] for of_all in self.features)

    @property
    def took_ns(self) -> int:
        """Time for which the batch occupied the executor: filling the input, running, decoding."""
        return self.ended_ns - self.started_ns


@dataclass(slots=True)
class BatchJob:
    """A batch to run, and where its result goes."""

    variant: VariantName
    inputs: Sequence[ModelInput]
    """May be made when they are read, in the executor's thread, before the batch is timed."""
    batch_size: int
    future: Future[BatchResult]
    threads: int = 0
    """Threads that it computes with on a CPU; 0: all of the executor's."""
    deadline_ns: int | None = None
    """The last instant at which the answer to any of its requests is worth something; None: any."""


class ExecutorThread:
    """A thread that runs jobs in order and outlives every one that fails."""

    def __init__(
        self,
        name: str,
        run: Callable[[BatchJob], BatchResult],
        cores: Collection[int] = (),
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the thread; `on_end` is called in it at its end, when its resources are unused."""
        self._run = run
        self._cores = cores
        self._on_end = on_end
        self._jobs: SimpleQueue[BatchJob | None] = SimpleQueue()
        self._closing = False
        # Between the check of `_closing` and the put, an end must not slip in: a job behind
        # the end mark would never be answered.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: BatchJob) -> Future[BatchResult]:
        """Put a job behind those that wait; after the end its future fails."""
        with self._lock:
            if self._closing:
                job.future.set_exception(_closed())
            else:
                self._jobs.put(job)
        return job.future

    def end(self) -> None:
        """Start no more batches and fail those that wait; a running batch may finish."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            waiting = _taken_from(self._jobs)
            self._jobs.put(None)
        for job in waiting:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(_closed())

    def ended(self, patience_s: float) -> bool:
        """Wait a while for the thread to end; return whether it has."""
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _work(self) -> None:
        pin(self._cores)
        while (job := self._jobs.get()) is not None:
            if job.future.set_running_or_notify_cancel():
                try:
                    job.inputs = list(job.inputs)  # some are made only now
                    result = self._run(job)
                except BaseException as error:  # however a batch fails, the thread goes on
                    job.future.set_exception(model_error(job.variant, error))
                else:
                    job.future.set_result(result)
            # Frees the pictures now, not when the next batch comes.
            del job
        self._on_end()


def _taken_from(jobs: "SimpleQueue[BatchJob | None]") -> list[BatchJob]:
    taken: list[BatchJob] = []
    while True:
        try:
            job = jobs.get_nowait()
        except Empty:
            return taken
        if job is not None:
            taken.append(job)


def _closed() -> ModelError:
    return ModelError("the executor is closed")


def model_error(variant: VariantName, error: BaseException) -> ModelError:
    """Return an error of a batch as a `ModelError` that names the variant."""
    if isinstance(error, ModelError):
        return error
    wrapped = ModelError(f"{variant}: the batch failed: {brief(error)}")
    wrapped.__cause__ = error
    return wrapped
