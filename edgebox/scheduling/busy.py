"""Owns which executors are busy, and how many others were busy while each one ran its batch.

Pure. Executors of one machine share cores, caches and memory, so a batch takes longer while others
run. How much longer is measured with its profile (`LatencyProfile.slowed`).
"""

from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId


@dataclass(slots=True)
class _Running:
    started_ns: int
    area_ns: int
    """The integral of the number of running executors when this one started."""


class BusyExecutors:
    """Counter of running executors over time; all calls are O(1)."""

    def __init__(self) -> None:
        self._running: dict[ExecutorId, _Running] = {}
        self._area_ns = 0
        """The integral of the number of running executors over time."""
        self._seen_ns = 0
        self._last_started_ns: dict[ExecutorId, int] = {}

    def started(self, executor: ExecutorId, now_ns: int) -> None:
        """Note that an executor has started a batch or a sample."""
        self._advance(now_ns)
        self._running[executor] = _Running(now_ns, self._area_ns)
        self._last_started_ns[executor] = now_ns

    def ended(self, executor: ExecutorId, now_ns: int) -> float:
        """Note that an executor has ended; return the mean number of others that ran meanwhile."""
        self._advance(now_ns)
        was = self._running.pop(executor, None)
        if was is None or now_ns <= was.started_ns:
            return float(len(self._running))
        return (self._area_ns - was.area_ns) / (now_ns - was.started_ns) - 1

    @property
    def executors(self) -> frozenset[ExecutorId]:
        """The executors that run a batch or a sample now."""
        return frozenset(self._running)

    def started_ns(self, executor: ExecutorId) -> int:
        """Return when an executor last started a batch or a sample; -1: never."""
        return self._last_started_ns.get(executor, -1)

    def others(self, executor: ExecutorId) -> int:
        """Return how many other executors are running now."""
        return len(self._running) - (executor in self._running)

    def _advance(self, now_ns: int) -> None:
        self._area_ns += len(self._running) * max(0, now_ns - self._seen_ns)
        self._seen_ns = max(self._seen_ns, now_ns)
