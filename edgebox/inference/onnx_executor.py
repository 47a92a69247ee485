"""An executor that runs families with ONNX Runtime on a device of this machine.

The thread spends its time inside numpy and ONNX Runtime, which release the GIL. A thread that
hangs there cannot be ended from outside: ONNX Runtime is requested to stop, which it does
between two operators. Nothing waits for the thread, not even the end of the process.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.batch_inputs import BatchInputs
from edgebox.inference.encoded_pictures import decode_inputs
from edgebox.inference.executor import SCORE_FLOOR, THREADS, FamilyExecutor
from edgebox.inference.executor_thread import BatchJob, BatchResult, ExecutorThread, model_error
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
from edgebox.inference.sessions import CPU, Provider, default_cpu_threads, device_name


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
        self.cpu_threads = cpu_threads or len(cores) or default_cpu_threads()
        self.cores, self.memory_limit_bytes = cores, memory_limit_bytes
        self._clock_ns, self._score_floor = clock_ns, score_floor
        settings = StoreSettings(
            providers,
            self.cpu_threads,
            device_index,
            memory_limit_bytes,
            engine_folder,
            cores,
            tuple(n for n in thread_counts if n < self.cpu_threads),
            cuda_graphs and providers != "tensorrt" and not memory_limit_bytes,
        )
        self._open(families, settings)
        if cuda_graphs and memory_limit_bytes:
            self._tell("no CUDA graphs: their memory is not within the limit")
        self.id = _full_id(executor_id, self.provider, device_index)
        self._worker = ExecutorThread(f"{THREADS}{self.id}", self._run, cores, self._release)

    def _open(self, families: Sequence[Family], settings: StoreSettings) -> None:
        """Open the sessions, and take over where they run.

        Raises:
            ModelError: as `__init__` says.
        """
        if not families:
            raise ModelError("an executor needs at least one model family")
        self._store = _open_sessions(families, settings)
        self.failed = self._store.failed
        """Families that cannot run here, and why; those that are not loaded yet may follow."""
        for family in families:
            if family.name not in self.failed:
                self._hold(family)
        self._note = self._store.note
        self.provider = self._store.provider
        if settings.thread_counts and self.provider == CPU:
            self.thread_counts = (*settings.thread_counts, self.cpu_threads)
        self.device = device_name(self.provider, self.cpu_threads, settings.device_index)
        self._records = settings.records
        if self._records:
            self.device += ", CUDA graphs"  # profiles are of one or the other
        self._inputs = self._make_inputs()
        self._runs = SessionRuns(self._store, settings.device_index)

    def _make_inputs(self) -> BatchInputs:
        if self.provider != CPU and self._store.cuda is None:
            self._tell("host memory is not page-locked (no libcudart): copies are slower")
        return BatchInputs(self._store.cuda)

    def _tell(self, what: str) -> None:
        self._note = f"{self._note}; {what}" if self._note else what

    @property
    def note(self) -> str:
        """Why it runs other than it was hoped to; empty: it does not."""
        # Another thread may add to them just now.
        recordless = self._store.not_recorded.copy()
        told = (f"{path.name} runs without CUDA graphs: {why}" for path, why in recordless.items())
        return "; ".join(filter(None, (self._note, *told)))

    @note.setter
    def note(self, note: str) -> None:
        self._note = note

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

    def _close_family(self, family: Family) -> None:
        self._store.remove(family)

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
            release = threading.Thread(
                target=self._store.clear, name=f"{THREADS}release-{self.id}", daemon=True
            )
            # Where the process may have no more threads, all do so when it ends.
            with contextlib.suppress(RuntimeError):
                release.start()

    def _release(self) -> None:
        """Release what the thread used, in that thread, when no batch runs."""
        with working_on(self.provider):
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
