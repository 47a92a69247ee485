"""Loads and unloads weights in order, in one extra thread per executor.

Neither the event loop nor an executor waits for loads, nor does the end of the process. Load times
are measured here.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.latency_histogram import METRIC_BUCKETS, Histogram
from edgebox.domain.model_family import ExecutorId, WeightsId
from edgebox.runtime.threads import DaemonPool, InOrder
from edgebox.scheduling.actions import Load, Unload
from edgebox.scheduling.events import LoadFailed, LoadReturned, WeightsLoaded

_log = logging.getLogger(__name__)


class Loader(Protocol):
    """Loads weights into one executor's memory and unloads them. Both calls block."""

    def load(self, weights: WeightsId) -> None:
        """Load and warm weights; raises a ModelError on failure."""

    def unload(self, weights: WeightsId) -> None:
        """Unload weights."""


class Loads:
    """The threads that load, and their load times."""

    def __init__(
        self,
        loaders: Mapping[ExecutorId, Loader],
        from_thread: Callable[[Callable[[], None]], None],
        on_end: Callable[[WeightsLoaded | LoadFailed | LoadReturned], None],
        clock_ns: Callable[[], int],
    ) -> None:
        """Start the threads.

        Args:
            loaders: the loader of each executor with limited memory.
            from_thread: calls a function on the loop; may be used in any thread.
            on_end: called on the loop when a load has ended.
            clock_ns: the box's clock.
        """
        self._loaders: dict[ExecutorId, tuple[Loader, DaemonPool]] = {}
        self._from_thread = from_thread
        self._on_end = on_end
        self._clock_ns = clock_ns
        self.took = Histogram(METRIC_BUCKETS)
        """Durations of the loads that succeeded."""
        for executor, loader in loaders.items():
            self.use(executor, loader)

    def use(self, executor: ExecutorId, loader: Loader) -> None:
        """Use this loader for an executor from now on, without waiting for the previous one.

        What waits for that does nothing when its turn comes, and loads are reported as returned.
        """
        before = self._loaders.get(executor)
        self._loaders[executor] = loader, DaemonPool(1, f"load-{executor}", InOrder())
        if before is not None:
            before[1].submit(before[1].stop)

    def carry_out(self, order: Load | Unload) -> None:
        """Load or unload after earlier orders."""
        loader, thread = self._loaders[order.executor]
        if isinstance(order, Load):
            thread.submit(lambda: self._load(loader, order))
        else:
            thread.submit(lambda: self._unload(loader, order))

    def stop(self) -> None:
        """Begin nothing more."""
        for _, thread in self._loaders.values():
            thread.stop()

    def _in_use(self, loader: Loader, executor: ExecutorId) -> bool:
        return self._loaders[executor][0] is loader

    def _unload(self, loader: Loader, order: Unload) -> None:
        if self._in_use(loader, order.executor):
            loader.unload(order.weights)

    def _load(self, loader: Loader, order: Load) -> None:
        if not self._in_use(loader, order.executor):
            self._from_thread(lambda: self._on_end(LoadReturned(order.executor)))
            return
        started_ns = self._clock_ns()
        ended: WeightsLoaded | LoadFailed = WeightsLoaded(order.executor, order.weights)
        try:
            loader.load(order.weights)
        except Exception as error:  # the thread must go on, and the core must learn of it
            level = logging.ERROR if isinstance(error, EdgeboxError) else logging.CRITICAL
            _log.log(level, "loading %s on %s failed: %s", order.weights, order.executor, error)
            ended = LoadFailed(order.executor, order.weights)
        took_ns = self._clock_ns() - started_ns
        self._from_thread(lambda: self._ended(loader, ended, took_ns))

    def _ended(self, loader: Loader, ended: WeightsLoaded | LoadFailed, took_ns: int) -> None:
        if not self._in_use(loader, ended.executor):
            self._on_end(LoadReturned(ended.executor))
            return
        if isinstance(ended, WeightsLoaded):
            self.took.add(took_ns)
        self._on_end(ended)
