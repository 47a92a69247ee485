"""Policies of cores and batch sizes that are compared: what each runs, and what it holds. Pure.

`decide` is called when the executor is idle and requests wait. `held_cores` is what is allocated
while nothing runs: an executor always holds one core.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from edgebox.scheduling.cores.core_choice import Choice, Drop, Run, Upcoming, choose
from edgebox.scheduling.cores.core_latency import Floats
from edgebox.scheduling.cores.sponge import Allocation, allocate

S = 1_000_000_000


class CorePolicy(Protocol):
    """Decides cores and batch size."""

    name: str

    def arrived(self, now_ns: int, transit_ns: int) -> None:
        """Note a request."""
        ...

    def decide(self, deadlines_ns: Sequence[int], now_ns: int) -> Choice:
        """Choose for an idle executor; the deadlines rise."""
        ...

    def held_cores(self, running: int) -> int:
        """Return the cores allocated while a batch runs on so many; 0: none runs."""
        ...

    def tick(self, now_ns: int, waiting: int) -> None:
        """Adapt, once a second."""
        ...


class PerBatch:
    """Cores and batch size chosen before each batch (`core_choice`).

    Requests are captured at a known rate, and the next ones take as long on their way as the last.
    """

    name = "per-batch"

    def __init__(self, times_ns: Floats, gap_ns: float, slo_ns: int) -> None:
        """Begin.

        Args:
            times_ns: (B, C) that are seldom exceeded.
            gap_ns: between two requests.
            slo_ns: of all.
        """
        self._times_ns = times_ns
        self._gap_ns = gap_ns
        self._slo_ns = slo_ns
        self._captured_ns = self._transit_ns = 0.0

    def arrived(self, now_ns: int, transit_ns: int) -> None:
        """Note a request."""
        self._captured_ns, self._transit_ns = now_ns - transit_ns, transit_ns

    def decide(self, deadlines_ns: Sequence[int], now_ns: int) -> Choice:
        """Choose for an idle executor."""
        upcoming = []
        captured_ns = self._captured_ns
        while (captured_ns := captured_ns + self._gap_ns) < now_ns:
            arrival_ns = round(max(now_ns, captured_ns + self._transit_ns))
            upcoming.append(Upcoming(arrival_ns, round(captured_ns) + self._slo_ns))
        return choose(deadlines_ns, now_ns, self._gap_ns, self._times_ns, upcoming)

    def held_cores(self, running: int) -> int:
        """Return the cores of the batch, one without."""
        return max(1, running)

    def tick(self, now_ns: int, waiting: int) -> None:
        """Nothing is done by the clock."""


class Static:
    """Always the same cores; batches as large as the queue and the earliest deadline permit."""

    def __init__(self, times_ns: Floats, cores: int) -> None:
        """Begin with so many cores of (B, C) times."""
        self.name = f"static-{cores}"
        self._times_ns = times_ns
        self._cores = cores

    def arrived(self, now_ns: int, transit_ns: int) -> None:
        """Nothing is learned."""

    def decide(self, deadlines_ns: Sequence[int], now_ns: int) -> Choice:
        """Run what waits."""
        return run_most(deadlines_ns, now_ns, self._times_ns, self._cores, len(self._times_ns))

    def held_cores(self, running: int) -> int:
        """Return the same."""
        return self._cores

    def tick(self, now_ns: int, waiting: int) -> None:
        """Nothing changes."""


@dataclass(frozen=True, slots=True)
class _Transit:
    at_ns: int
    took_ns: int


class Sponge:
    """The paper's algorithm, corrected (`scheduling.cores.sponge`), once a second."""

    name = "sponge"

    def __init__(self, times_ns: Floats, slo_ns: int, rate_hz: float) -> None:
        """Begin with all cores.

        Args:
            times_ns: (B, C) that are seldom exceeded.
            slo_ns: of all requests.
            rate_hz: of the requests.
        """
        self._times_ns = times_ns
        self._slo_ns = slo_ns
        self._rate_hz = rate_hz
        self._recent: deque[_Transit] = deque()
        self._now = Allocation(1, times_ns.shape[1])

    def arrived(self, now_ns: int, transit_ns: int) -> None:
        """Note how long it was on its way."""
        self._recent.append(_Transit(now_ns, transit_ns))

    def decide(self, deadlines_ns: Sequence[int], now_ns: int) -> Choice:
        """Run what waits, up to the batch size in force."""
        cores, most = self._now.cores, self._now.batch_size
        return run_most(deadlines_ns, now_ns, self._times_ns, cores, most)

    def held_cores(self, running: int) -> int:
        """Return what was allocated; a batch that began with more keeps them."""
        return max(self._now.cores, running)

    def tick(self, now_ns: int, waiting: int) -> None:
        """Allocate for the requests of the last second, as if they came again."""
        while self._recent and self._recent[0].at_ns < now_ns - S:
            self._recent.popleft()
        longest_ns = max((each.took_ns for each in self._recent), default=0)
        requests = max(waiting, len(self._recent))
        self._now = allocate(requests, longest_ns, self._slo_ns, self._rate_hz, self._times_ns)


def run_most(
    deadlines_ns: Sequence[int], now_ns: int, times_ns: Floats, cores: int, most: int
) -> Choice:
    """Return the largest batch that meets the earliest deadline on so many cores."""
    left_ns = deadlines_ns[0] - now_ns
    for size in range(min(most, len(deadlines_ns)), 0, -1):
        if times_ns[size - 1, cores - 1] <= left_ns:
            return Run(size, cores)
    return Drop()
