"""An executor whose batches run on a server that speaks the Open Inference Protocol over HTTP.

Its thread spends its time waiting for the server. A thread that waits for one that hangs is freed
by ending the connection, so nothing of it stays behind.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.domain.requests import DropReason
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor import (
    RUN_LIMIT_S,
    SCORE_FLOOR,
    ConnectionBrokenError,
    ExecutorGoneError,
)
from edgebox.inference.executor_thread import BatchJob, BatchResult
from edgebox.inference.family import Family
from edgebox.inference.remote.http_connection import (
    BrokenError,
    NotThereError,
    ServerAddress,
    ServerConnection,
)
from edgebox.inference.remote.remote_executor import Clock, RemoteExecutor
from edgebox.inference.remote.served_models import served_by
from edgebox.inference.remote.server_answers import AwayError, Found, OverloadedError, answers_read
from edgebox.vision.detections import Detections

PROVIDER = "OpenInference"
REST_S = 0.2
"""How long an executor rests at least whose server refuses a batch for too much to do."""
_REST_FACTOR = 2
"""And at least this many times as long as the last batch that was answered: so the core learns that
the server is slow, and chooses other executors."""
_REST_MAX_S = 10.0
"""But no longer than this."""


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


class OpenInferenceExecutor(RemoteExecutor):
    """Runs families on a server, over one connection."""

    provider = PROVIDER

    def __init__(
        self,
        executor_id: ExecutorId,
        families: Sequence[Family],
        address: ServerAddress,
        model_pattern: str,
        *,
        score_floor: float = SCORE_FLOOR,
        clock_ns: Clock = time.monotonic_ns,
    ) -> None:
        """Connect, compare the families with the server's, and start the thread. Blocks.

        Raises:
            ModelError: the server cannot be reached, or no family can run there.
        """
        server = ServerConnection(address)
        super().__init__(executor_id, server, clock_ns)
        self._address = address
        self._server = server
        self._took_s = 0.0
        """How long the last batch took that was answered."""
        failed: dict[FamilyName, ModelError] = {}
        try:
            with answers_read("/v2"):
                self._models = served_by(server, model_pattern, score_floor)
            for family in families:
                try:
                    self._check(family, server)
                except ModelError as error:
                    failed[family.name] = error
            if len(failed) == len(families):
                raise ModelError("; ".join(dict.fromkeys(map(str, failed.values()))))
        except BaseException:
            server.close()
            raise
        self.takes_encoded = self._models.takes_encoded
        self._compared = server.made
        """The connection over which the families were compared."""
        self.device = f"{address.url} ({self._models.description})"
        self._serve([family for family in families if family.name not in failed], failed)

    def _open_family(self, family: Family) -> None:
        server = ServerConnection(self._address)  # the other one may be running a batch
        try:
            self._check(family, server)
        finally:
            server.close()

    def _check(self, family: Family, server: ServerConnection) -> None:
        """Compare a family with the server's models.

        Raises:
            ModelError: it cannot run there.
        """
        if family.after is not None or family.features:
            raise ModelError("parts of a network run on this box only")
        with answers_read(family.name):
            self._models.check(family, server)

    def warm_each(self, runs: Sequence[tuple[VariantName, int]]) -> None:
        """Run these variants and batch sizes once. Blocks.

        Another edgebox is warm when it is ready: there one batch shows that it answers.

        Raises:
            ModelError: one failed.
        """
        super().warm_each(runs[:1] if self.takes_encoded else runs)

    def _run(self, job: BatchJob) -> BatchResult:
        family = self._family(job.variant)
        variant = family.variant(job.variant)
        self._models.encode(family, variant, job)
        started_ns = self._clock_ns()
        left_s = RUN_LIMIT_S if job.deadline_ns is None else (job.deadline_ns - started_ns) / 1e9
        try:
            found, refused = self._models.run(family, variant, job, left_s)
            self._compare_again()
        except (NotThereError, AwayError) as error:
            raise ExecutorGoneError(str(error)) from error
        except BrokenError as error:
            raise ConnectionBrokenError(str(error)) from error
        except OverloadedError as error:
            found, refused = error.found or _all_refused(job, error)
        ended_ns = self._clock_ns()
        if len(refused) == len(found):
            if all(of.reason is not DropReason.OVERLOAD for of in refused.values()):
                return BatchResult(found, started_ns, ended_ns, refused=refused)
            rest_s = max(REST_S, min(_REST_FACTOR * self._took_s, _REST_MAX_S))
            return BatchResult(found, started_ns, ended_ns, refused=refused, rest_s=rest_s)
        self._took_s = (ended_ns - started_ns) / 1e9
        return BatchResult(found, started_ns, ended_ns, refused=refused)

    def _compare_again(self) -> None:
        """Compare the families once more if the last batch took a new connection.

        The server may have been replaced, or started again with other files.

        Raises:
            ModelError: a family cannot run there any more.
        """
        if self._compared == self._server.made:
            return
        for family in {each.name: each for each in self._families.values()}.values():
            self._check(family, self._server)
        self._compared = self._server.made


def _all_refused(job: BatchJob, error: OverloadedError) -> Found:
    refused = Refused(DropReason.OVERLOAD, str(error))
    found = [Detections.empty() for _ in job.inputs]
    return found, dict.fromkeys(range(len(found)), refused)
