"""An executor whose batches run in a worker of a Ray cluster.

Its thread spends its time waiting for the worker. A thread that waits for one that hangs is freed
by ending the channel, which ends the worker as well, so nothing of it stays behind.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from edgebox import __version__
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.inference.executor import SCORE_FLOOR
from edgebox.inference.executor_thread import BatchJob, BatchResult
from edgebox.inference.family import Family
from edgebox.inference.remote.ray_connection import CONNECT_S, open_channel
from edgebox.inference.remote.ray_messages import Message, decode_result, encode_inputs
from edgebox.inference.remote.ray_worker import order_of
from edgebox.inference.remote.remote_executor import Clock, RemoteExecutor

OPEN_S = 35.0
"""Time limit for a worker to be placed and to open its models. Together with `CONNECT_S` it is
below the limit for opening a lost executor again: what is reached there counts as a hang."""


@dataclass(frozen=True, slots=True)
class RayNeeds:
    """The resources of one worker, in Ray's terms."""

    num_cpus: float = 1.0
    num_gpus: float = 0.0
    resources: tuple[tuple[str, float], ...] = ()
    """Custom resources by name."""

    @property
    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "num_cpus": self.num_cpus,
            "num_gpus": self.num_gpus,
            "resources": dict(self.resources),
        }

    def __str__(self) -> str:
        """Return it as it is written in the configuration."""
        wanted = {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus, **dict(self.resources)}
        return ", ".join(f"{name} = {amount:g}" for name, amount in wanted.items() if amount)


@dataclass(frozen=True, slots=True)
class RaySpec:
    """One executor in a worker of a Ray cluster."""

    id: ExecutorId
    """Number of the worker, and a zero: "ray:2/0"."""
    address: str
    """Of the cluster, as `ray.init` takes it."""
    needs: RayNeeds = RayNeeds()
    threads: int = 0
    """CPU threads of the worker; 0: as many as `needs.num_cpus`, at least one."""
    families: tuple[str, ...] = ()
    """Names of the families that it holds; empty: all there are."""
    wait_ns: int | None = None
    """The worker runs no models, but waits for so long for each batch: for measuring everything
    else. None: it runs models."""

    @property
    def is_remote(self) -> bool:
        """It runs elsewhere."""
        return True

    def holds(self, family: str) -> bool:
        """Return whether a family is to run there."""
        return not self.families or family in self.families

    def limit_s(self, families: Sequence[Family]) -> float:
        """Return how long opening it may take."""
        return CONNECT_S + OPEN_S

    def open(self, families: Sequence[Family], *, score_floor: float) -> "RayExecutor":
        """Open it with these families.

        Raises:
            ModelError: the cluster cannot be used, has no room, or none of them can run there.
        """
        return RayExecutor(self, families, score_floor=score_floor)

    def order(self, families: Sequence[Family], score_floor: float) -> dict[str, Any]:
        """Return what the worker is told."""
        told: dict[str, Any] = {
            "do": "open",
            "version": __version__,
            "id": self.id,
            "needs": self.needs.document,
            "provider": "cuda" if self.needs.num_gpus else "cpu",
            "threads": self.threads or max(1, int(self.needs.num_cpus)),
            "score_floor": score_floor,
            "families": [order_of(family) for family in families],
        }
        return told if self.wait_ns is None else {**told, "wait_ns": self.wait_ns}


class RayExecutor(RemoteExecutor):
    """Runs families in one worker of a cluster."""

    takes_encoded = True

    def __init__(
        self,
        spec: RaySpec,
        families: Sequence[Family],
        *,
        score_floor: float = SCORE_FLOOR,
        clock_ns: Clock = time.monotonic_ns,
    ) -> None:
        """Have a worker placed and its models opened, and start the thread. Blocks.

        Raises:
            ModelError: the cluster cannot be used, has no room, or no family can run there.
        """
        self._ray = open_channel(spec.address)
        super().__init__(spec.id, self._ray, clock_ns)
        self._spec = spec
        self._name = uuid4().hex
        try:
            order = {**spec.order(families, score_floor), "worker": self._name}
            answer = self._exchange(Message(order), spec)
        except BaseException:
            self._ray.close()
            raise
        worker = answer.header
        self.note = str(worker["note"])
        self.provider = f"Ray, {worker['provider']}"
        self.device = str(worker["device"])
        failed = {FamilyName(name): ModelError(why) for name, why in worker["failed"].items()}
        self._serve([family for family in families if family.name not in failed], failed)

    def _open_family(self, family: Family) -> None:
        ray = open_channel(self._spec.address)  # the other one may be running a batch
        try:
            ray.exchange(
                Message({"do": "add", "worker": self._name, "families": [order_of(family)]}), OPEN_S
            )
        except TimeoutError:
            raise ModelError(f"its worker did not open it within {OPEN_S:.0f} s") from None
        finally:
            ray.close()

    def _close_family(self, family: Family) -> None:
        if family.name in self.families:
            return  # another one has come under its name
        with contextlib.suppress(ModelError, TimeoutError):  # a worker that has ended holds nothing
            ray = open_channel(self._spec.address)
            try:
                ray.exchange(
                    Message({"do": "drop", "worker": self._name, "families": [order_of(family)]}),
                    OPEN_S,
                )
            finally:
                ray.close()

    def _exchange(self, message: Message, spec: RaySpec) -> Message:
        try:
            return self._ray.exchange(message, OPEN_S)
        except TimeoutError:
            raise ModelError(
                f"no worker of the Ray cluster at {spec.address} was ready within {OPEN_S:.0f} s; "
                f"are its resources in use by others ({spec.needs})?"
            ) from None
        except ModelError as error:
            raise ModelError(f"Ray cluster at {spec.address}, {spec.needs}: {error}") from None

    def _run(self, job: BatchJob) -> BatchResult:
        started_ns = self._clock_ns()
        entries, buffers = encode_inputs(job.inputs)
        order = {
            "do": "run",
            "variant": job.variant,
            "batch_size": job.batch_size,
            "inputs": entries,
        }
        answer = self._ray.exchange(Message(order, buffers))
        try:
            labels = len(self._family(job.variant).labels)
            result = decode_result(answer, labels, started_ns, self._clock_ns())
            if len(result.detections) != len(job.inputs):
                raise ValueError(
                    f"it is of {len(result.detections)} pictures, not {len(job.inputs)}"
                )
        except (ValueError, KeyError, TypeError) as error:
            text = f"{self.id}, {job.variant}: the answer is not a result: {error}"
            raise ModelError(text) from None
        return result
