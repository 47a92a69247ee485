"""Executors: each runs one batch at a time, on a thread of its own.

What they are to their users, and what those have in common that run families. Limits: the scheduler
decides what to run, and in which order.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

import numpy as np

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, Variant, VariantName
from edgebox.inference.executor_thread import BatchJob, BatchResult, ExecutorThread
from edgebox.inference.family import Family
from edgebox.inference.sessions import TENSORRT
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

_HOLDING = threading.Lock()
"""Held while it is changed, in any thread, which families an executor holds."""


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


class ConnectionBrokenError(ModelError):
    """The connection to what runs an executor's batches broke, whatever the batch was."""


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
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        """Run a batch; never raises, never blocks: what goes wrong is in the future.

        Args:
            variant: what to run.
            inputs: a picture of each request. A second part is given features; a picture in their
                place is one of a measurement, and stands for features of any.
            batch_size: as many as there are inputs, or more: then it is padded.
            threads: one of `thread_counts`; 0: all.
            deadline_ns: the last instant at which the answer to any of the requests is worth
                something, on the box's clock: what runs elsewhere is told the time left. None: no
                request has a deadline.
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
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        """Run a batch; never raises, never blocks: what goes wrong is in the future."""
        job = BatchJob(variant, inputs, batch_size, Future(), threads, deadline_ns)
        return self._worker.submit(job)

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

    def drop_family(self, family: Family) -> None:
        """Hold a family no more, and free what it takes; what runs on it is finished. Blocks.

        Another family that has come under its name meanwhile stays.
        """
        with _HOLDING:
            held = {name: of for name, of in self._families.items() if of is not family}
            self._families = held
            if all(of.name != family.name for of in held.values()):
                self.families = tuple(name for name in self.families if name != family.name)
        self._close_family(family)

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
        with _HOLDING:
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

    def _close_family(self, family: Family) -> None:
        """Free what a family takes that is not held any more, in any thread."""

    def _run(self, job: BatchJob) -> BatchResult:
        """Run a batch, in the thread.

        Raises:
            ModelError: it failed.
        """
        raise NotImplementedError


def blank_canvas(variant: Variant) -> Canvas:
    """Return a canvas of a variant's size with nothing on it."""
    return np.full((variant.height_px, variant.width_px, 3), 114, np.uint8)
