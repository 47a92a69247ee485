"""Records what executors did, for people: load, batch times and the times of applications."""

from collections.abc import Callable, Container, Iterable, Mapping

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.executor import Executor
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.sessions import CPU
from edgebox.runtime.app_latency import AppLatencies
from edgebox.runtime.batch_latency import BatchLatencies
from edgebox.runtime.decision_recorder import DecisionRecorder
from edgebox.runtime.meters import ExecutorMeter
from edgebox.scheduling.actions import Infer, Sample


class Measurements:
    """Execution times of batches and samples, since the box started."""

    def __init__(
        self,
        executors: Mapping[ExecutorId, Executor],
        decisions: DecisionRecorder,
        clock_ns: Callable[[], int],
    ) -> None:
        """Start with nothing measured."""
        self._clock_ns = clock_ns
        self._executors = executors
        self._decisions = decisions
        self.meters = {executor: ExecutorMeter(clock_ns()) for executor in executors}
        self.batches = BatchLatencies()
        self.applications = AppLatencies()

    def add_executor(self, executor: ExecutorId) -> None:
        """Measure one more executor, or one again."""
        self.meters[executor] = ExecutorMeter(self._clock_ns())

    def add_batch(
        self, order: Infer, result: BatchResult, apps: Iterable[str], *, core_factor: float = 1.0
    ) -> None:
        """Record a batch.

        Args:
            order: the batch.
            result: what came of it.
            apps: the application of each request that has not ended.
            core_factor: by which it takes longer than with all threads. Its time is shown without
                it, so that it can be compared with its profile.
        """
        self.meters[order.executor].ran(
            result.started_ns,
            result.ended_ns,
            len(order.requests),
            order.threads or self._threads(order.executor),
        )
        self._decisions.ran(order.executor, order.batch, result.started_ns, result.ended_ns)
        if not result.answered(order.requests):
            return  # it kept the executor busy, and its time is none of the variant's
        took_ns = round(result.took_ns / core_factor)
        ran = order.variant, order.executor, order.batch_size, took_ns
        self.batches.ran(*ran)
        for app in apps:
            self.applications.ran(app, *ran)

    def add_sample(self, order: Sample, result: BatchResult, app: str) -> None:
        """Record a sample of an application."""
        threads = self._threads(order.executor)
        self.meters[order.executor].sampled(result.started_ns, result.ended_ns, threads)
        self._decisions.ran(order.executor, order.batch, result.started_ns, result.ended_ns)
        self.applications.ran(app, order.variant, order.executor, order.batch_size, result.took_ns)

    def forget(self, variants: Container[VariantName], executor: ExecutorId | None = None) -> None:
        """Forget the times of some variants on one executor; None: on all."""
        self.batches.forget(variants, executor)
        self.applications.forget(variants, executor)

    def profiles_changed(
        self,
        executor: ExecutorId,
        before: Mapping[VariantName, LatencyProfile],
        now: Mapping[VariantName, LatencyProfile],
    ) -> None:
        """Forget what was measured of variants whose times on an executor are new, or are gone.

        It is compared with the profile that it was measured under.
        """
        changed = {
            variant
            for variant, of in before.items()
            if variant not in now or now[variant].quantiles_ns != of.quantiles_ns
        }
        self.forget(changed, executor)

    def _threads(self, executor: ExecutorId) -> int:
        """Return all threads that an executor computes with on a CPU; 0: it is elsewhere."""
        of = self._executors[executor]
        return of.cpu_threads if of.provider == CPU else 0
