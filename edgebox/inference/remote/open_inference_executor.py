"""An executor whose batches run on a server that speaks the Open Inference Protocol over HTTP.

Its thread spends its time waiting for the server. A thread that waits for one that hangs is freed
by ending the connection, so nothing of it stays behind.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from edgebox.domain.errors import InvalidInputError, ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.domain.requests import DropReason
from edgebox.inference.executor import (
    CLOSE_S,
    RUN_LIMIT_S,
    SCORE_FLOOR,
    STOP_S,
    THREADS,
    blank_canvas,
    come_back,
)
from edgebox.inference.executor_thread import BatchJob, BatchResult, ExecutorThread
from edgebox.inference.family import Family
from edgebox.inference.remote.http_connection import ServerAddress, ServerConnection
from edgebox.inference.remote.served_models import served_by
from edgebox.inference.tensors import EncodedPicture, ModelInput

PROVIDER = "OpenInference"


@dataclass(frozen=True, slots=True)
class OpenInferenceSpec:
    """One executor on a server."""

    id: ExecutorId
    """Host and port of the server, and its number there: "box:8787/0"."""
    address: ServerAddress
    model_pattern: str
    """The server's name for the model of a variant, with {family} and {variant}."""
    families: tuple[str, ...] = ()
    """Names of the families that it holds; empty: all there are."""

    @property
    def is_remote(self) -> bool:
        """It runs elsewhere."""
        return True

    def holds(self, family: str) -> bool:
        """Return whether a family is to run there."""
        return not self.families or family in self.families

    def limit_s(self, families: Sequence[Family]) -> float:
        """Return how long opening it may take, for a server that answers slowly."""
        return RUN_LIMIT_S

    def open(self, families: Sequence[Family], *, score_floor: float) -> "OpenInferenceExecutor":
        """Open it with these families.

        Raises:
            ModelError: the server cannot be reached, or none of them can run there.
        """
        return OpenInferenceExecutor(
            self.id, families, self.address, self.model_pattern, score_floor=score_floor
        )


class OpenInferenceExecutor:
    """Runs families on a server, over one connection."""

    provider = PROVIDER
    cpu_threads = 0
    thread_counts: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()
    memory_limit_bytes = 0
    shares_machine = False

    def __init__(
        self,
        executor_id: ExecutorId,
        families: Sequence[Family],
        address: ServerAddress,
        model_pattern: str,
        *,
        score_floor: float = SCORE_FLOOR,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Connect, compare the families with the server's, and start the thread. Blocks.

        Raises:
            ModelError: the server cannot be reached, or no family can run there.
        """
        self.id = executor_id
        self.note = ""
        self._clock_ns = clock_ns
        self._families: dict[VariantName, Family] = {}
        self.families: tuple[FamilyName, ...] = ()
        """Names of those that can."""
        failed: dict[FamilyName, ModelError] = {}
        try:
            self._server = ServerConnection(address)
        except InvalidInputError as error:
            raise ModelError(f"token_file: {error}") from None
        try:
            self._models = served_by(self._server, model_pattern, score_floor)
            for family in families:
                try:
                    self._hold(family)
                except ModelError as error:
                    failed[family.name] = error
            if not self.families:
                raise ModelError("; ".join(dict.fromkeys(map(str, failed.values()))))
        except BaseException:
            self._server.close()
            raise
        self.failed: Mapping[FamilyName, ModelError] = failed
        """Families that cannot run there, and why."""
        self.takes_encoded: bool = self._models.takes_encoded
        self.device = f"{address.url} ({self._models.description})"
        self._worker: ExecutorThread = ExecutorThread(
            f"{THREADS}{executor_id}", self._run, on_end=self._server.close
        )

    def _hold(self, family: Family) -> None:
        """Hold a family from now on.

        Raises:
            ModelError: it cannot run there.
        """
        if family.after is not None or family.features:
            raise ModelError("parts of a network run on this box only")
        self._models.check(family)
        self._families = {**self._families, **{v.name: family for v in family.variants}}
        self.families = (*(name for name in self.families if name != family.name), family.name)

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

        Another edgebox is warm when it is ready: there one batch shows that it answers.

        Raises:
            ModelError: one failed.
        """
        for name, size in runs[:1] if self.takes_encoded else runs:
            blank = [blank_canvas(self._family(name).variant(name))] * size
            come_back(self.submit(name, blank, size), self, f"a first batch of {name}")

    def load(self, path: Path, runs: Sequence[tuple[VariantName, int]] = ()) -> None:
        """Do nothing: what is in memory there, the server decides."""

    def unload(self, path: Path) -> None:
        """Do nothing: what is in memory there, the server decides."""

    def add_family(self, family: Family) -> None:
        """Refuse: a family is copied to the server by a person, after it came to this box.

        Raises:
            ModelError: always.
        """
        raise ModelError("it is asked for the family when it is connected again")

    def is_loaded(self, variant: VariantName) -> bool:
        """Return whether a batch of a variant can run."""
        return variant in self._families

    def largest_of_each_file(self, variants: Iterable[VariantName]) -> list[VariantName]:
        """Return all: what a server needs to warm is not known."""
        return list(variants)

    def memory_used_bytes(self) -> int | None:
        """Return None: it is not this machine's."""
        return None

    def abandon(self) -> None:
        """Take no more batches, fail those that wait, and end the connection."""
        self._worker.end()
        self._server.shut()

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

    def _run(self, job: BatchJob) -> BatchResult:
        family = self._family(job.variant)
        variant = family.variant(job.variant)
        self._models.encode(family, variant, job)
        started_ns = self._clock_ns()
        deadlines = [
            each.deadline_ns
            for each in job.inputs
            if isinstance(each, EncodedPicture) and each.deadline_ns is not None
        ]
        left_s = (max(deadlines) - started_ns) / 1e9 if deadlines else RUN_LIMIT_S
        found, refused = self._models.run(family, variant, job, left_s, RUN_LIMIT_S)
        dropped = [each.text for each in refused.values() if each.reason is not DropReason.INVALID]
        if dropped and len(refused) == len(found):
            raise ModelError(f"{job.variant}: {dropped[0]}")
        return BatchResult(found, started_ns, self._clock_ns(), refused=refused)
