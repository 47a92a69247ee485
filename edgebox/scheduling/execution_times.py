"""Owns all that is known of execution times, and tells its parts what happened, in order.

Pure. `Latencies` holds the profiles as corrected, `Learning` what applications' requests take,
`Expectations` answers from both, `Calibration` follows slowdown and fixed costs, `Corrections`
finds drift. A batch is held against what was known before it, then learned from.
"""

from collections.abc import Iterable, Sequence

from edgebox.domain.learned import Learned
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling.calibration import Calibration
from edgebox.scheduling.corrections import Corrections
from edgebox.scheduling.events import ReportDrift
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.remembered import restore
from edgebox.scheduling.sampling import RunningSample
from edgebox.scheduling.scheduler_parameters import SchedulerParameters


class ExecutionTimes:
    """What is known of execution times; the parts are public to be read."""

    def __init__(self, parameters: SchedulerParameters) -> None:
        self.latencies = Latencies(parameters)
        self.learning = Learning(self.latencies)
        self.expectations = Expectations(self.latencies, self.learning)
        self.calibration = Calibration(parameters)
        self.corrections = Corrections(parameters, self.latencies, self.learning, self.calibration)

    def executor_started(
        self, executor: ExecutorId, profiles: Sequence[LatencyProfile], now_ns: int
    ) -> None:
        """Take in an executor."""
        self.latencies.executor_started(executor, profiles)
        self.corrections.executor_started(executor, profiles)
        self.calibration.executor_started(executor, now_ns)

    def executor_stopped(self, executor: ExecutorId, now_ns: int) -> None:
        """Forget an executor, and what it ran."""
        self.latencies.busy.ended(executor, now_ns)
        self.latencies.executor_stopped(executor)
        self.corrections.executor_stopped(executor)
        self.calibration.executor_stopped(executor)

    def restore(self, learned: Learned, now_ns: int) -> None:
        """Take in what was learned before a restart."""
        restore(learned, self.learning, self.corrections, now_ns)

    def started(self, executor: ExecutorId, now_ns: int) -> None:
        """Note that an executor runs a batch or a sample, which slows the others."""
        self.latencies.busy.started(executor, now_ns)

    def batch_completed(
        self, batch: RunningBatch, apps: Sequence[str], took_ns: int, now_ns: int
    ) -> tuple[int, list[ReportDrift]]:
        """Learn from a batch.

        Args:
            batch: what ran.
            apps: the application of each member.
            took_ns: its execution.
            now_ns: when it had ended.

        Returns:
            What it would have taken if the other executors had rested, in ns, and which profiles
            were corrected because of it.
        """
        executor, variant = batch.infer.executor, batch.infer.variant
        self.calibration.handed_over(executor, now_ns - batch.started_ns - took_ns)
        others = self.latencies.busy.ended(executor, now_ns)
        alone_ns = round(took_ns / self.latencies.slowed(executor, variant, others))
        drifts = self.corrections.batch_completed(batch, apps, alone_ns, now_ns)
        self.learning.completed(batch.infer, apps, alone_ns, now_ns)
        return alone_ns, drifts

    def batch_failed(self, executor: ExecutorId, now_ns: int) -> None:
        """Note that an executor is idle again; nothing is learned."""
        self.calibration.batch_failed(executor, now_ns)
        self.latencies.busy.ended(executor, now_ns)

    def calibrate(self, executor: ExecutorId) -> bool:
        """Expect of an executor what its last batches showed; say whether it has become slower."""
        slowdown = self.calibration.slowdown(executor)
        slower = slowdown > self.latencies.slowdown(executor)
        self.latencies.set_slowdown(executor, slowdown)
        self.latencies.set_overhead(executor, self.calibration.overhead_ns(executor))
        spell = self.calibration.spell_over(executor)
        if spell is not None:
            self.corrections.spell_over(executor, spell)
        return slower

    def relax(self, idle: Iterable[ExecutorId], now_ns: int) -> None:
        """Let the slowdown of idle executors fade."""
        for executor in idle:
            if self.calibration.relax(executor, now_ns):
                self.calibrate(executor)

    def relax_at_ns(self, idle: Iterable[ExecutorId]) -> int | None:
        """Return when `relax` next changes something if these stay idle; None: never."""
        slow = (executor for executor in idle if self.latencies.slowdown(executor) > 1)
        return min(map(self.calibration.relax_at_ns, slow), default=None)

    def sampled(
        self, executor: ExecutorId, variant: VariantName, app: str, took_ns: int, now_ns: int
    ) -> None:
        """Learn from a request that ran alone; one of an executor that is gone tells nothing."""
        if executor in self.latencies.slowdowns:
            self.learning.sampled(executor, variant, app, took_ns, now_ns)

    def sample_ended(self, ran: RunningSample, took_ns: int | None, now_ns: int) -> None:
        """Learn from a sample: from what it would have taken if the other executors had rested.

        One that failed (None) teaches nothing.
        """
        executor, variant = ran.sample.executor, ran.sample.variant
        others = self.latencies.busy.ended(executor, now_ns)
        if took_ns is not None:
            alone_ns = round(took_ns / self.latencies.slowed(executor, variant, others))
            self.sampled(executor, variant, ran.app, alone_ns, now_ns)
