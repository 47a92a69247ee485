"""Owns all that is known of execution times, and passes every event to its parts in order.

Pure. `Latencies` holds the corrected profiles, `Learning` the execution times by application,
`Expectations` answers from both, `Calibration` follows slowdown and fixed costs, `Corrections`
detects drift. A batch is compared with what was known before it, then learned from.
"""

from collections.abc import Collection, Iterable, Sequence

from edgebox.domain.learned import Learned
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling.actions import ReportDrift
from edgebox.scheduling.calibration import Calibration
from edgebox.scheduling.corrections import Corrections
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.remembered import restore
from edgebox.scheduling.sampling import RunningSample
from edgebox.scheduling.scheduler_parameters import SchedulerParameters


class ExecutionTimes:
    """All knowledge of execution times; the parts are public for reading."""

    def __init__(self, parameters: SchedulerParameters) -> None:
        self.latencies = Latencies(parameters)
        self.learning = Learning(self.latencies)
        self.expectations = Expectations(self.latencies, self.learning)
        self.calibration = Calibration(parameters)
        self.corrections = Corrections(parameters, self.latencies, self.learning, self.calibration)

    def executor_started(
        self, executor: ExecutorId, profiles: Sequence[LatencyProfile], now_ns: int
    ) -> None:
        """Add an executor."""
        self.latencies.executor_started(executor, profiles)
        self.corrections.executor_started(executor, profiles)
        self.calibration.executor_started(executor, now_ns)

    def profiles_changed(self, executor: ExecutorId, profiles: Sequence[LatencyProfile]) -> None:
        """Replace the profiles of an executor; what was learned with those that stay, stays."""
        self.corrections.profiles_changed(executor, profiles)

    def executor_stopped(self, executor: ExecutorId, now_ns: int) -> None:
        """Remove an executor and what it ran."""
        self.latencies.busy.ended(executor, now_ns)
        self.latencies.executor_stopped(executor)
        self.corrections.executor_stopped(executor)
        self.calibration.executor_stopped(executor)

    def forget(self, variants: Collection[VariantName]) -> None:
        """Forget what was learned of some variants."""
        self.learning.forget(variants)
        self.corrections.forget(variants)

    def restore(self, learned: Learned, now_ns: int) -> None:
        """Restore what was learned before a restart."""
        restore(learned, self.learning, self.corrections, now_ns)

    def started(self, executor: ExecutorId, now_ns: int) -> None:
        """Note that an executor runs a batch or a sample, which slows the others."""
        self.latencies.busy.started(executor, now_ns)

    def batch_completed(
        self,
        batch: RunningBatch,
        apps: Sequence[str],
        took_ns: int,
        now_ns: int,
    ) -> tuple[int, list[ReportDrift]]:
        """Learn from a batch.

        The time of one that had no answer to some members says nothing of applications. Where its
        server had too much to do, its executor is as slow as if they had taken as long as the rest.
        Of one without any answer nothing is learned, unless its executor has rested for it.

        Args:
            batch: the batch.
            apps: the application of each member.
            took_ns: its execution time.
            now_ns: when it ended.

        Returns:
            Its execution time with all threads and the interference of other executors removed, in
            ns, and the profiles that were corrected because of it.
        """
        executor, variant = batch.infer.executor, batch.infer.variant
        self.calibration.handed_over(executor, now_ns - batch.started_ns - took_ns)
        others = self.latencies.busy.ended(executor, now_ns)
        slower = self.latencies.slowed(executor, variant, others)
        isolated_ns = round(took_ns / (slower * self.latencies.core_factor(batch.infer)))
        if batch.unanswered:
            slow_ns = isolated_ns
            if apps and batch.rests_until_ns is not None:
                slow_ns = isolated_ns * (len(apps) + batch.unanswered) // len(apps)
            if apps or batch.rests_until_ns is not None:
                self.corrections.learn_speed(batch, slow_ns, now_ns)
            return isolated_ns, []
        drifts = self.corrections.batch_completed(batch, apps, isolated_ns, now_ns)
        self.learning.completed(batch.infer, apps, isolated_ns, now_ns, batch.started_ns)
        return isolated_ns, drifts

    def batch_failed(self, executor: ExecutorId, now_ns: int) -> None:
        """Note that an executor is idle again; nothing is learned."""
        self.calibration.batch_failed(executor, now_ns)
        self.latencies.busy.ended(executor, now_ns)

    def calibrate(self, executor: ExecutorId) -> bool:
        """Apply an executor's last measured slowdown; say whether it has become slower."""
        slowdown = self.calibration.slowdown(executor)
        slower = slowdown > self.latencies.slowdown(executor)
        self.latencies.set_slowdown(executor, slowdown)
        self.latencies.set_overhead(executor, self.calibration.overhead_ns(executor))
        slow_period = self.calibration.slow_period_ended(executor)
        if slow_period is not None:
            self.corrections.slow_period_ended(executor, slow_period)
        return slower

    def relax(self, idle: Iterable[ExecutorId], now_ns: int) -> None:
        """Let the slowdown of idle executors fade."""
        for executor in idle:
            if self.calibration.relax(executor, now_ns):
                self.calibrate(executor)

    def relax_at_ns(self, idle: Iterable[ExecutorId]) -> int | None:
        """Return when `relax` next has an effect if these executors stay idle; None: never."""
        slow = [executor for executor in idle if self.latencies.slowdown(executor) > 1]
        return min(map(self.calibration.relax_at_ns, slow)) if slow else None

    def sampled(
        self, executor: ExecutorId, variant: VariantName, app: str, took_ns: int, now_ns: int
    ) -> None:
        """Learn from a request that ran in a batch of its own; ignore executors that are gone."""
        if executor in self.latencies.slowdowns:
            self.learning.sampled(executor, variant, app, took_ns, now_ns)

    def sample_ended(self, ran: RunningSample, took_ns: int | None, now_ns: int) -> None:
        """Learn from a sample, with the interference of other executors removed.

        A sample that failed (None) is ignored.
        """
        executor, variant = ran.sample.executor, ran.sample.variant
        others = self.latencies.busy.ended(executor, now_ns)
        if took_ns is not None:
            isolated_ns = round(took_ns / self.latencies.slowed(executor, variant, others))
            self.sampled(executor, variant, ran.app, isolated_ns, now_ns)
