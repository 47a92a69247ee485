"""Measures what executors do: the share of time they are busy and the batches they run."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

WINDOW_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class _Ran:
    started_ns: int
    ended_ns: int
    requests: int
    threads: int


class ExecutorMeter:
    """The last ten seconds of one executor, and its totals."""

    def __init__(self, started_ns: int) -> None:
        """Begin at an instant of the box's clock."""
        self._born_ns = started_ns
        self._ran: deque[_Ran] = deque()
        self.busy_ns = 0
        """Busy time since the box started, including samples."""
        self.core_ns = 0
        """CPU threads that batches and samples computed with, over time, since the box started."""
        self.batches: Counter[int] = Counter()
        """Batches by number of requests, since the box started."""

    def ran(self, started_ns: int, ended_ns: int, requests: int, threads: int = 0) -> None:
        """Add a completed batch; `threads` of a CPU, 0: it ran elsewhere."""
        self.batches[requests] += 1
        self._took(_Ran(started_ns, ended_ns, requests, threads))

    def _took(self, ran: _Ran) -> None:
        took_ns, ended_ns = ran.ended_ns - ran.started_ns, ran.ended_ns
        self.busy_ns += took_ns
        self.core_ns += ran.threads * took_ns
        self._ran.append(ran)
        while self._ran[0].ended_ns <= ended_ns - WINDOW_NS:
            self._ran.popleft()

    def sampled(self, started_ns: int, ended_ns: int, threads: int = 0) -> None:
        """Add a sample: it counts as busy time but not as a batch."""
        self._took(_Ran(started_ns, ended_ns, 0, threads))

    def utilisation(self, now_ns: int) -> float:
        """Return the busy share of the window, in [0, 1]."""
        since_ns = self._since_ns(now_ns)
        busy_ns = sum(ran.ended_ns - max(ran.started_ns, since_ns) for ran in self._window(now_ns))
        return min(1.0, busy_ns / max(1, now_ns - since_ns))

    def threads_mean(self, now_ns: int) -> float:
        """Return the CPU threads that computed in the window, on average over all of its time."""
        since_ns = self._since_ns(now_ns)
        core_ns = sum(
            ran.threads * (ran.ended_ns - max(ran.started_ns, since_ns))
            for ran in self._window(now_ns)
        )
        return core_ns / max(1, now_ns - since_ns)

    def batch_size_mean(self, now_ns: int) -> float | None:
        """Return the mean number of requests per batch of the window; None when none ran."""
        sizes = [ran.requests for ran in self._window(now_ns) if ran.requests]
        return sum(sizes) / len(sizes) if sizes else None

    def _since_ns(self, now_ns: int) -> int:
        return max(self._born_ns, now_ns - WINDOW_NS)

    def _window(self, now_ns: int) -> Iterator[_Ran]:
        """Yield the batches that ended within the window, the oldest first."""
        return (ran for ran in self._ran if ran.ended_ns > now_ns - WINDOW_NS)
