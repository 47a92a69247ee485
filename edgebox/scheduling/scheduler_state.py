"""What may be read of a Scheduler between its calls: `SchedulerState`, its base class. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Advice, Assignment, Group, PlanningSnapshot
from edgebox.domain.requests import CameraId, Request
from edgebox.scheduling.actions import Infer, Sample
from edgebox.scheduling.adaptation import Adaptation
from edgebox.scheduling.affinity import ExecutorAffinity
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.executors import Executors
from edgebox.scheduling.ledger import Ledger
from edgebox.scheduling.policy import BatchingPolicy
from edgebox.scheduling.residency import Memory
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.scheduling.supervised import Supervised
from edgebox.scheduling.supervision import Supervision


class SchedulerState:
    """The parts of a Scheduler, for others to read."""

    _parameters: SchedulerParameters
    _policy: BatchingPolicy
    _ledger: Ledger
    _times: ExecutionTimes
    _adaptation: Adaptation
    _affinity: ExecutorAffinity
    _executors: Executors
    _supervision: Supervision
    _stale: Counter[str]

    @property
    def parameters(self) -> SchedulerParameters:
        """The tunables."""
        return self._parameters

    @property
    def policy(self) -> BatchingPolicy:
        """The batching policy."""
        return self._policy

    @property
    def queue_length(self) -> int:
        """The number of requests in preparation or waiting for a batch."""
        return self._ledger.waiting

    @property
    def stale_events(self) -> Mapping[str, int]:
        """The number of stale events by their type: each changed nothing."""
        return self._stale

    @property
    def requests(self) -> Iterable[Request]:
        """Every request that has not ended, also frames that wait for their crops."""
        joined = [frame.request for frame in self._ledger.joins.frames.values()]
        return [*joined, *(live.request for live in self._ledger.live.values())]

    @property
    def variants_in_use(self) -> set[VariantName]:
        """The variants that requests which have not ended run on, or wait for."""
        return self._ledger.variants

    @property
    def running(self) -> dict[ExecutorId, Infer]:
        """The batch of each busy executor."""
        return {executor: batch.infer for executor, batch in self._ledger.running.items()}

    @property
    def assignments(self) -> dict[CameraId, Assignment]:
        """The assignment in force for each connected camera."""
        return self._adaptation.assignments

    def cascade_share(self, camera: CameraId) -> float:
        """Return the share of a camera's pictures that its plan lets its cascade send on."""
        return self._adaptation.cascade_share(camera)

    @property
    def tightest_slo_ns(self) -> int | None:
        """The shortest deadline of a connected camera; None: there is none."""
        return self._adaptation.tightest_slo_ns

    @property
    def advice(self) -> dict[CameraId, Advice]:
        """The last advice sent to each connected camera."""
        return self._adaptation.advice

    @property
    def slowdown(self) -> Mapping[ExecutorId, float]:
        """How much slower than its profile each executor is at present, at least 1."""
        return self._times.latencies.slowdowns

    @property
    def corrections(self) -> Mapping[ExecutorId, Mapping[VariantName, float]]:
        """The factors of profiles that have drifted; 1 if not listed."""
        return self._times.corrections.factors

    @property
    def times(self) -> ExecutionTimes:
        """All knowledge of execution times; read only."""
        return self._times

    @property
    def memories(self) -> Mapping[ExecutorId, Memory]:
        """The memory contents of executors with limited memory."""
        return self._executors.residency.memories

    @property
    def supervised(self) -> Mapping[ExecutorId, Supervised]:
        """The state of every executor, lost ones included."""
        return self._supervision.executors

    def expected_ns(self, order: Infer | Sample) -> int | None:
        """Return the median time that a running batch or sample is expected to take; None: its
        executor has no profile of the variant."""
        return self._times.expectations.usual_batch_ns(
            order.executor,
            order.variant,
            self._supervision.apps_of(order),
            order.batch_size,
            order.threads if isinstance(order, Infer) else 0,
        )

    def awaits_profiles(self, executor: ExecutorId) -> bool:
        """Return whether other profiles of an executor apply once what it runs has ended."""
        return executor in self._executors.changes

    @property
    def groups(self) -> tuple[Group, ...]:
        """The executor groups of the plan in force; empty: no groups."""
        return self._affinity.groups

    def snapshot(self, now_ns: int) -> PlanningSnapshot:
        """Return the input of planning at this instant, for other uses than plans."""
        return self._adaptation.snapshot(now_ns)
