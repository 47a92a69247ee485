"""Executors: each runs one batch at a time on one device, on a thread of its own.

The thread spends its time inside numpy and ONNX Runtime, which release the GIL. A thread that
hangs there cannot be ended from outside: ONNX Runtime is requested to stop, which it does
between two operators. Nothing waits for the thread, not even the end of the process. Limits: the
scheduler decides what to run, and in which order.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

import numpy as np

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, Variant, VariantName
from edgebox.inference.batch_inputs import BatchInputs
from edgebox.inference.cuda_libraries import cuda_runtime
from edgebox.inference.encoded_pictures import decode_inputs
from edgebox.inference.executor_thread import (
    BatchJob,
    BatchResult,
    ExecutorThread,
    model_error,
)
from edgebox.inference.family import Family
from edgebox.inference.machine import pinned
from edgebox.inference.output_reading import read_outputs
from edgebox.inference.session_runs import SessionRuns
from edgebox.inference.session_store import (
    SessionStore,
    StoreSettings,
    blank_tensors,
    working_on,
)
from edgebox.inference.sessions import (
    CPU,
    TENSORRT,
    Provider,
    default_cpu_threads,
    device_name,
)
from edgebox.inference.tensors import Canvas, ModelInput

SCORE_FLOOR = 0.05
"""Detections below it never leave the executor; callers set their own, higher bar."""

THREADS = "edgebox-"
"""Begins the names of all threads that edgebox starts and that may hang in a library."""

RUN_LIMIT_S = 60.0
BUILD_LIMIT_S = 3600.0

CLOSE_S = 1.0
"""How long a batch may still run when its executor is closed: a box has waited for it before."""
STOP_S = 0.5
"""How long ONNX Runtime may take to stop it, between two operators."""


def run_limit_s(*, builds: bool) -> float:
    """Return how long one batch, or opening one file, may take before anything is known of it.

    Args:
        builds: TensorRT builds models there when they first run: minutes on a small device.
    """
    return BUILD_LIMIT_S if builds else RUN_LIMIT_S


class HungError(ModelError):
    """Something that was run outside the scheduler's supervision does not come back."""

    exit_code = 75


class ExecutorGoneError(ModelError):
    """What runs an executor's batches has ended: it runs nothing before it is opened again."""


def come_back(
    future: "Future[BatchResult]", executor: "Executor", what: str, limit_s: float | None = None
) -> BatchResult:
    """Wait for a batch that is measured or that warms a model.

    Raises:
        ModelError: it failed, or not all of it was answered.
        HungError: it takes longer than its limit; by default, than any batch may that something
            with a deadline waits for.
    """
    limit_s = limit_s or run_limit_s(builds=executor.provider == TENSORRT)
    try:
        result = future.result(limit_s)
    except TimeoutError:
        raise HungError(
            f"{what} on {executor.id} did not come back within {limit_s:.0f} s: the device, "
            "its driver or its server hangs, or this model does not end"
        ) from None
    for refused in result.refused.values():
        raise ModelError(f"{what}: {refused.text}")
    return result


class Executor(Protocol):
    """Runs one batch at a time: `OnnxExecutor` with a model, `NullExecutor` without one."""

    id: ExecutorId
    provider: str
    """The provider that runs the model, by ONNX Runtime's name."""
    device: str
    """The device, in a person's words."""
    note: str
    """Why it is not on the wanted device; empty: it is."""
    cpu_threads: int
    """Most threads it computes with on a CPU."""
    takes_encoded: bool
    """Whether it is best given pictures as they arrived: then this box decodes none for it. Every
    executor takes them."""

    @property
    def thread_counts(self) -> tuple[int, ...]:
        """Thread counts that a batch may have, rising to `cpu_threads`; empty: only that one."""
        ...

    @property
    def cores(self) -> tuple[int, ...]:
        """Cores that its threads are pinned to; empty: any core."""
        ...

    @property
    def families(self) -> tuple[FamilyName, ...]:
        """Families it holds; empty: any."""
        ...

    def submit(
        self, variant: VariantName, inputs: Sequence[ModelInput], batch_size: int, threads: int = 0
    ) -> Future[BatchResult]:
        """Run a batch; never raises, never blocks: what goes wrong is in the future.

        Args:
            variant: what to run.
            inputs: a picture of each request. A second part is given features; a picture in their
                place is one of a measurement, and stands for features of any.
            batch_size: as many as there are inputs, or more: then it is padded.
            threads: one of `thread_counts`; 0: all.
        """
        ...

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None:
        """Run every combination once, so that none is slow when it matters. Blocks."""
        ...

    def abandon(self) -> None:
        """Take no more batches, fail those that wait, and do not wait for the one that runs.

        The running batch is requested to stop. If it returns, its future has the outcome, and
        the thread ends.
        """
        ...

    def close(self) -> None:
        """Finish the batch that runs, fail those that wait, end the thread. Idempotent.

        A batch that does not end is abandoned after `CLOSE_S`.
        """
        ...


def _open_sessions(families: Sequence[Family], settings: StoreSettings) -> SessionStore:
    try:
        return SessionStore(families, settings)
    except OSError as error:
        cores = list(settings.cores)
        raise ModelError(f"cores {cores} cannot be used: {error.strerror}") from error


def _full_id(executor_id: ExecutorId | int, provider: str, device_index: int) -> ExecutorId:
    """Return the executor's name; a number is put behind its device's name."""
    if not isinstance(executor_id, int):
        return executor_id
    kind = "cpu" if provider == CPU else f"cuda:{device_index}"
    return ExecutorId(f"{kind}/{executor_id}")


class FamilyExecutor:
    """An executor that holds families, and runs their batches in a thread of its own.

    Kinds differ in `_run`, in `_open_family` and in how they are abandoned.
    """

    id: ExecutorId
    provider: str
    device: str
    note: str
    takes_encoded: bool
    cpu_threads: int
    thread_counts: tuple[int, ...] = ()
    """Thread counts that a batch may have; empty: only `cpu_threads`."""
    cores: tuple[int, ...] = ()
    """Cores that its threads are pinned to; empty: any core."""
    memory_limit_bytes = 0
    """Above 0, nothing is in memory but what `load` brings there."""
    shares_machine: bool
    families: tuple[FamilyName, ...] = ()
    """Names of those that it holds."""
    _families: Mapping[VariantName, Family] = {}
    _worker: ExecutorThread

    def submit(
        self, variant: VariantName, inputs: Sequence[ModelInput], batch_size: int, threads: int = 0
    ) -> Future[BatchResult]:
        """Run a batch; never raises, never blocks: what goes wrong is in the future."""
        return self._worker.submit(BatchJob(variant, inputs, batch_size, Future(), threads))

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
            blank = [blank_canvas(self._family(name).variant(name))] * size
            for threads in self.thread_counts or (0,):
                first = self.submit(name, blank, size, threads)
                come_back(first, self, f"a first batch of {name}")

    def add_family(self, family: Family) -> None:
        """Hold one more family, while others run. Blocks.

        Raises:
            ModelError: it cannot run there.
        """
        self._open_family(family)
        self._hold(family)

    def largest_of_each_file(self, variants: Iterable[VariantName]) -> list[VariantName]:
        """Return, of these variants, the largest of each file."""
        largest: dict[Path, Variant] = {}
        for name in variants:
            family = self._family(name)
            path, variant = family.files[name].path, family.variant(name)
            if path not in largest or variant.pixels > largest[path].pixels:
                largest[path] = variant
        return [variant.name for variant in largest.values()]

    def abandon(self) -> None:
        """Take no more batches, fail those that wait, and do not wait for the one that runs."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish the batch that runs, fail those that wait, end the thread. Idempotent.

        A batch that does not end is abandoned after `CLOSE_S`.
        """
        self._worker.end()
        if not self._worker.ended(CLOSE_S):
            self.abandon()
            self._worker.ended(STOP_S)

    def _hold(self, family: Family) -> None:
        self._families = {**self._families, **{v.name: family for v in family.variants}}
        self.families = (*(name for name in self.families if name != family.name), family.name)

    def _family(self, name: VariantName) -> Family:
        try:
            return self._families[name]
        except KeyError:
            raise ModelError(f"executor {self.id} has no variant {name!r}") from None

    def _open_family(self, family: Family) -> None:
        """Open one more family, in any thread.

        Raises:
            ModelError: it cannot run there.
        """
        raise NotImplementedError

    def _run(self, job: BatchJob) -> BatchResult:
        """Run a batch, in the thread.

        Raises:
            ModelError: it failed.
        """
        raise NotImplementedError


class OnnxExecutor(FamilyExecutor):
    """Runs families with ONNX Runtime; one session per file serves all its variants."""

    takes_encoded = False
    shares_machine = True

    def __init__(
        self,
        executor_id: ExecutorId | int,
        families: Sequence[Family],
        *,
        providers: Provider = "cpu",
        device_index: int = 0,
        cpu_threads: int = 0,
        thread_counts: tuple[int, ...] = (),
        cores: tuple[int, ...] = (),
        memory_limit_bytes: int = 0,
        engine_folder: Path | None = None,
        cuda_graphs: bool = False,
        score_floor: float = SCORE_FLOOR,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Open the sessions (blocks for 0.1 s on a CPU, seconds on a GPU) and start the thread.

        Args:
            executor_id: a name, or the number among the executors of one device: then it is
                named after the device it really got, "cpu/0" or "cuda:0/1".
            families: at least one, from the zoo.
            providers: what runs models; "tensorrt" falls back to CUDA and says so in `note`.
            device_index: which GPU.
            cpu_threads: threads a CPU session computes with; 0: one for each of `cores`, else all
                cores but one.
            thread_counts: threads that a batch may have, rising to `cpu_threads`, with sessions of
                their own; empty: only `cpu_threads`.
            cores: cores that its threads are pinned to; empty: any core.
            memory_limit_bytes: above 0, nothing is in memory but what `load` brings there.
            engine_folder: folder for TensorRT's engines; None: they are not stored.
            cuda_graphs: record runs and replay them where that changes no answer; what is not
                recorded is in `note`. Without effect with a memory limit or TensorRT.
            score_floor: detections below it are not reported.
            clock_ns: the clock of results' instants.

        Raises:
            ModelError: no family can be opened, its provider is not usable here, or the cores
                are not this process's.
        """
        if not families:
            raise ModelError("an executor needs at least one model family")
        self.cpu_threads = cpu_threads or len(cores) or default_cpu_threads()
        self.cores = cores
        self.memory_limit_bytes = memory_limit_bytes
        self._clock_ns = clock_ns
        self._score_floor = score_floor
        fewer = tuple(n for n in thread_counts if n < self.cpu_threads)
        settings = StoreSettings(
            providers,
            self.cpu_threads,
            device_index,
            memory_limit_bytes,
            engine_folder,
            cores,
            fewer,
            cuda_graphs and providers != "tensorrt" and not memory_limit_bytes,
        )
        self._records = settings.records
        self._store = _open_sessions(families, settings)
        self.failed = self._store.failed
        """Families that cannot run here, and why; those that are not loaded yet may follow."""
        for family in families:
            if family.name not in self.failed:
                self._hold(family)
        self.note = self._store.note
        self.provider = self._store.provider
        self.thread_counts = (*fewer, self.cpu_threads) if fewer and self.provider == CPU else ()
        self.device = device_name(self.provider, self.cpu_threads, device_index)
        if self._records:
            self.device += ", CUDA graphs"  # profiles are of one or the other
        self.id = _full_id(executor_id, self.provider, device_index)
        self._inputs = self._make_inputs()
        self._tell_not_recorded()
        if cuda_graphs and memory_limit_bytes:
            self._tell("no CUDA graphs: their memory is not within the limit")
        self._runs = SessionRuns(self._store, device_index)
        self._worker = ExecutorThread(f"{THREADS}{self.id}", self._run, cores, self._release)

    def _make_inputs(self) -> BatchInputs:
        cuda = cuda_runtime() if self.provider != CPU else None
        if self.provider != CPU and cuda is None:
            self._tell("host memory is not page-locked (no libcudart): copies are slower")
        return BatchInputs(cuda)

    def _tell(self, what: str) -> None:
        """Add to the note what is not there yet."""
        if what not in self.note:
            self.note = f"{self.note}; {what}" if self.note else what

    def _tell_not_recorded(self) -> None:
        for path, why in self._store.not_recorded.items():
            self._tell(f"{path.name} runs without CUDA graphs: {why}")

    def warm_each(self, runs: Sequence[tuple[VariantName, int]]) -> None:
        """Run these once, and where runs are recorded twice: see `edgebox.inference.fixed_runs`."""
        for _ in range(2 if self._records else 1):
            super().warm_each(runs)

    def load(self, path: Path, runs: Sequence[tuple[VariantName, int]] = ()) -> None:
        """Load a file while others run, and run it once in each of these batch sizes.

        Blocks. It neither waits for the executor's thread nor delays it, except by the cores that
        it uses.

        Raises:
            ModelError: it cannot be opened, or a batch failed.
        """
        with pinned(self.cores):
            self._load(path, runs)

    def _load(self, path: Path, runs: Sequence[tuple[VariantName, int]]) -> None:
        self._store.load(path)
        for name, size in runs:
            family = self._family(name)
            variant = family.variant(name)
            tensors = blank_tensors(family, variant, size)
            try:
                for threads in self.thread_counts or (0,):
                    self._runs.once(family.files[name], tensors, threads)
            except Exception as error:  # ONNX Runtime's exception classes share no base
                self._store.drop(path)
                raise model_error(name, error) from error

    def unload(self, path: Path) -> None:
        """Take a file out of memory; what runs on it at the moment is finished."""
        self._store.drop(path)

    def _open_family(self, family: Family) -> None:
        with pinned(self.cores):
            self._store.add(family)
        self._tell_not_recorded()

    def is_loaded(self, variant: VariantName) -> bool:
        """Return whether a variant is in memory, so that a batch of it can run."""
        family = self._families.get(variant)
        return family is not None and self._store.has(family.files[variant].path)

    def memory_used_bytes(self) -> int | None:
        """Return what is in use of the memory that sessions take, by anybody; None: not known."""
        return self._store.used_bytes()

    def abandon(self) -> None:
        """Take no more batches, fail those that wait, and do not wait for the one that runs.

        Sessions that do not run give their memory back at once, the one that does when it ends. On
        a GPU all do so when it ends: freeing waits for all that the device does, and a thread that
        destroys a session may hold Python's lock meanwhile.
        """
        self._worker.end()
        self._runs.stop()
        if self.provider == CPU:
            threading.Thread(
                target=self._store.clear, name=f"{THREADS}release-{self.id}", daemon=True
            ).start()

    def _release(self) -> None:
        """Release what the thread used, in that thread, when no batch runs."""
        self._runs.release()
        self._inputs.release()
        self._store.clear()

    def _run(self, job: BatchJob) -> BatchResult:
        family = self._family(job.variant)
        variant = family.variant(job.variant)
        decoded = decode_inputs(job.inputs, family.input, variant)
        job.inputs = decoded.inputs
        started_ns = self._clock_ns()
        if family.batch_size_fixed not in (None, job.batch_size):
            raise ModelError(
                f"{job.variant} only takes batches of {family.batch_size_fixed}, "
                f"not {job.batch_size}"
            )
        with working_on(self.provider):
            tensors = self._inputs.of(family, variant, job)
        outputs = self._runs.run(family.files[variant.name], tensors, job.threads)
        self._tell_not_recorded()
        for output in outputs:
            # A graph whose batch axis was only relaxed on paper merges pictures silently.
            if output.ndim == 0 or output.shape[0] != job.batch_size:
                raise ModelError(
                    f"{job.variant}: a batch of {job.batch_size} came back as {output.shape}; "
                    "the model does not keep pictures of a batch apart"
                )
        said = len(outputs) - family.features_given
        wanted = [output[: len(job.inputs)] for output in outputs[:said]]
        found, refused = read_outputs(family, variant, wanted, self._score_floor)
        return BatchResult(
            decoded.in_pictures(found),
            started_ns,
            self._clock_ns(),
            tuple(outputs[said:]),
            {**refused, **decoded.refused},
        )


def blank_canvas(variant: Variant) -> Canvas:
    """Return a canvas of a variant's size with nothing on it."""
    return np.full((variant.height_px, variant.width_px, 3), 114, np.uint8)
