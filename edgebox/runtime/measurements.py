"""Records what executors did, for people: load, batch times and the times of applications."""

from collections.abc import Callable, Iterable

from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor_thread import BatchResult
from edgebox.runtime.app_latency import AppLatencies
from edgebox.runtime.batch_latency import BatchLatencies
from edgebox.runtime.meters import ExecutorMeter
from edgebox.runtime.timeline_recorder import Timeline
from edgebox.scheduling.events import Infer, Sample


class Measurements:
    """Execution times of batches and samples, since the box started."""

    def __init__(
        self,
        executors: Iterable[ExecutorId],
        timeline: Timeline,
        clock_ns: Callable[[], int],
    ) -> None:
        """Start with nothing measured."""
        self._clock_ns = clock_ns
        self._timeline = timeline
        self.meters = {executor: ExecutorMeter(clock_ns()) for executor in executors}
        self.batches = BatchLatencies()
        self.applications = AppLatencies()

    def add_executor(self, executor: ExecutorId) -> None:
        """Measure one more executor, or one again."""
        self.meters[executor] = ExecutorMeter(self._clock_ns())

    def add_batch(self, order: Infer, result: BatchResult, apps: Iterable[str]) -> None:
        """Record a batch; `apps` has the application of each request that has not ended."""
        self.meters[order.executor].ran(result.started_ns, result.ended_ns, len(order.requests))
        self._timeline.ran(order.executor, order.batch, result.started_ns, result.ended_ns)
        ran = order.variant, order.executor, order.batch_size, result.took_ns
        self.batches.ran(*ran)
        for app in apps:
            self.applications.ran(app, *ran)

    def add_sample(self, order: Sample, result: BatchResult, app: str) -> None:
        """Record a sample of an application."""
        self.meters[order.executor].sampled(result.started_ns, result.ended_ns)
        self._timeline.ran(order.executor, order.batch, result.started_ns, result.ended_ns)
        self.applications.ran(app, order.variant, order.executor, order.batch_size, result.took_ns)
