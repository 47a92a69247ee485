"""Carries out loads and unloads of weights: one thread beside the executors', in order.

The loop never waits for it, nor does an executor. What a load takes is measured here.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.models import ExecutorId, WeightsId
from edgebox.runtime.histogram import Histogram
from edgebox.scheduling.events import Load, LoadFailed, Unload, WeightsLoaded

_log = logging.getLogger(__name__)


class Loader(Protocol):
    """Brings weights into one executor's memory and takes them out. Both calls block."""

    def load(self, weights: WeightsId) -> None:
        """Bring weights in and warm them; raises a ModelError where that fails."""

    def unload(self, weights: WeightsId) -> None:
        """Take weights out."""


class Loads:
    """The thread that loads, and how long that took."""

    def __init__(
        self,
        loaders: Mapping[ExecutorId, Loader],
        from_thread: Callable[[Callable[[], None]], None],
        on_end: Callable[[WeightsLoaded | LoadFailed], None],
        clock_ns: Callable[[], int],
    ) -> None:
        """Start without anything to load.

        Args:
            loaders: of the executors whose memory is limited.
            from_thread: has something called on the loop; may be used in any thread.
            on_end: called on the loop when a load has ended.
            clock_ns: the box's clock.
        """
        self._loaders = loaders
        self._from_thread = from_thread
        self._on_end = on_end
        self._clock_ns = clock_ns
        self._thread = ThreadPoolExecutor(1, "edgebox-load")
        self.took = Histogram()
        """Of the loads that ended well."""

    def carry_out(self, order: Load | Unload) -> None:
        """Load or unload, behind what was ordered before."""
        if isinstance(order, Load):
            self._thread.submit(self._load, order)
        else:
            self._thread.submit(self._loaders[order.executor].unload, order.weights)

    def stop(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _load(self, order: Load) -> None:
        started_ns = self._clock_ns()
        ended: WeightsLoaded | LoadFailed = WeightsLoaded(order.executor, order.weights)
        try:
            self._loaders[order.executor].load(order.weights)
        except Exception as error:  # the thread must go on, and the core must be told
            level = logging.ERROR if isinstance(error, EdgeboxError) else logging.CRITICAL
            _log.log(level, "loading %s on %s failed: %s", order.weights, order.executor, error)
            ended = LoadFailed(order.executor, order.weights)
        took_ns = self._clock_ns() - started_ns
        self._from_thread(lambda: self._ended(ended, took_ns))

    def _ended(self, ended: WeightsLoaded | LoadFailed, took_ns: int) -> None:
        if isinstance(ended, WeightsLoaded):
            self.took.add(took_ns)
        self._on_end(ended)
