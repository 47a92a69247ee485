"""What executors have in common whose batches run on another machine.

Their threads spend their time waiting for an answer. A thread that waits for one that does not come
is freed by ending the channel, so nothing of it stays behind.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.inference.executor import CLOSE_S, STOP_S, THREADS, blank_canvas, come_back
from edgebox.inference.executor_thread import BatchJob, BatchResult, ExecutorThread
from edgebox.inference.family import Family
from edgebox.inference.tensors import ModelInput

Clock = Callable[[], int]


class Channel(Protocol):
    """A way to the other machine, used by one thread at a time."""

    def shut(self) -> None:
        """End what waits for an answer, from another thread; nothing is asked any more."""

    def close(self) -> None:
        """Let go of it."""


class RemoteExecutor:
    """Runs batches elsewhere, one at a time; kinds differ in `_run`."""

    provider: str
    device: str
    note = ""
    takes_encoded: bool
    cpu_threads = 0
    thread_counts: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()
    memory_limit_bytes = 0
    shares_machine = False

    def __init__(
        self, executor_id: ExecutorId, channel: Channel, clock_ns: Clock = time.monotonic_ns
    ) -> None:
        """Hold nothing yet; `_serve` starts the thread."""
        self.id = executor_id
        self.families: tuple[FamilyName, ...] = ()
        """Names of those that it runs."""
        self.failed: Mapping[FamilyName, ModelError] = {}
        """Families that cannot run there, and why."""
        self._families: Mapping[VariantName, Family] = {}
        self._channel = channel
        self._clock_ns = clock_ns
        self._worker: ExecutorThread

    def _serve(self, held: Sequence[Family], failed: Mapping[FamilyName, ModelError]) -> None:
        """Start the thread, with the families that can run there."""
        self.failed = failed
        self.families = tuple(family.name for family in held)
        self._families = {v.name: family for family in held for v in family.variants}
        self._worker = ExecutorThread(f"{THREADS}{self.id}", self._run, on_end=self._channel.close)

    def _run(self, job: BatchJob) -> BatchResult:
        """Run a batch there, in the thread.

        Raises:
            ModelError: it failed.
        """
        raise NotImplementedError

    def submit(
        self, variant: VariantName, inputs: Sequence[ModelInput], batch_size: int, threads: int = 0
    ) -> Future[BatchResult]:
        """Run a batch; never raises, never blocks: what goes wrong is in the future."""
        return self._worker.submit(BatchJob(variant, inputs, batch_size, Future()))

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None:
        """Run every combination once. Blocks.

        Raises:
            ModelError: a combination failed.
        """
        self.warm_each([(name, size) for name in variants for size in batch_sizes])

    def warm_each(self, runs: Sequence[tuple[VariantName, int]]) -> None:
        """Run these variants and batch sizes once. Blocks.

        Raises:
            ModelError: one failed.
        """
        for name, size in runs:
            blank = [blank_canvas(self._family(name).variant(name))] * size
            come_back(self.submit(name, blank, size), self, f"a first batch of {name}")

    def load(self, path: Path, runs: Sequence[tuple[VariantName, int]] = ()) -> None:
        """Do nothing: what is in memory there is not this box's to decide."""

    def unload(self, path: Path) -> None:
        """Do nothing: what is in memory there is not this box's to decide."""

    def add_family(self, family: Family) -> None:
        """Refuse: which families run there is settled when it is opened.

        Raises:
            ModelError: always.
        """
        raise ModelError("it runs the family from the next start of this box on")

    def is_loaded(self, variant: VariantName) -> bool:
        """Return whether a batch of a variant can run."""
        return variant in self._families

    def largest_of_each_file(self, variants: Iterable[VariantName]) -> list[VariantName]:
        """Return, of these variants, the largest of each file; all where files are not known."""
        return list(variants)

    def memory_used_bytes(self) -> int | None:
        """Return None: it is not this machine's."""
        return None

    def abandon(self) -> None:
        """Take no more batches, fail those that wait, and end the channel."""
        self._worker.end()
        self._channel.shut()

    def close(self) -> None:
        """Finish the batch that runs, fail those that wait, end the thread. Idempotent."""
        self._worker.end()
        if not self._worker.ended(CLOSE_S):
            self.abandon()
            self._worker.ended(STOP_S)

    def _family(self, name: VariantName) -> Family:
        try:
            return self._families[name]
        except KeyError:
            raise ModelError(f"executor {self.id} has no variant {name!r}") from None
