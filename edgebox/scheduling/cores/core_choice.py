"""Decides before each batch how many requests it has and how many CPU cores it runs on. Pure.

Requests wait in the order of their deadlines, for one executor that runs one batch at a time on any
number of cores. The choice is the cheapest in core-seconds per request with which the batch meets
its earliest deadline, all that waits behind it meets its own, and the executor keeps up with the
arrivals. It may be cheaper to wait for more requests; then the choice says until when.

Source: Sponge (Razavi et al., EuroMLSys '24) decides cores and batch size once a second, for the
worst request of that second, and so pays for the worst all the time. Ours decides for each batch,
from the deadlines of the requests that are there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Run:
    """Run the first requests now."""

    batch_size: int
    cores: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Decide again at this instant, or when a request comes."""

    until_ns: int


@dataclass(frozen=True, slots=True)
class Drop:
    """The first request cannot be answered in time, whatever the cores."""


Choice = Run | Wait | Drop


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A request that is on its way already, as far as it can be foreseen."""

    arrival_ns: int
    deadline_ns: int


def choose(
    deadlines_ns: Sequence[int],
    now_ns: int,
    gap_ns: float,
    times_ns: Floats,
    upcoming: Sequence[Upcoming] = (),
) -> Choice:
    """Choose for an idle executor.

    Args:
        deadlines_ns: of the requests that wait, rising; at least one.
        now_ns: when.
        gap_ns: the usual time between two arrivals.
        times_ns: (B, C) time of a batch of b requests on c cores in row b - 1, column c - 1. Rows
            rise, columns fall. Times that are seldom exceeded, not usual ones.
        upcoming: requests that come soon, in the order of their deadlines. A batch cannot be
            stopped once it runs: so it must end in time for them too.
    """
    left_ns = np.asarray(deadlines_ns, np.float64) - now_ns
    sizes = np.arange(1, len(times_ns) + 1, dtype=np.float64)
    waits_ns = np.maximum(0.0, sizes - len(left_ns)) * gap_ns
    in_time = waits_ns[:, None] + times_ns <= left_ns[0]
    keeps_up = times_ns <= (sizes * gap_ns)[:, None]
    at_once = (sizes <= len(left_ns))[:, None]
    costs = np.arange(times_ns.shape[1]) * times_ns / sizes[:, None]
    rest = _Rest(
        left_ns, [(u.arrival_ns - now_ns, u.deadline_ns - now_ns) for u in upcoming], times_ns
    )
    for row, column in _by_cost(in_time & keeps_up, costs, times_ns, waits_ns):
        took_ns = float(times_ns[row, column])
        heads_ns = left_ns[:: row + 1]
        ends_ns = waits_ns[row] + took_ns * np.arange(1, len(heads_ns) + 1)
        if (ends_ns <= heads_ns).all() and rest.clears(row + 1, float(ends_ns[0])):
            if waits_ns[row] > 0:
                return Wait(now_ns + max(1, round(gap_ns)))
            return Run(row + 1, column + 1)
    # More than can be worked off at leisure.
    for row, column in _by_cost(in_time & at_once, costs, times_ns, waits_ns):
        if rest.clears(row + 1, float(times_ns[row, column])):
            return Run(row + 1, column + 1)
    # More than can be worked off: the most at once, on all cores.
    fitting = np.nonzero(in_time[: len(left_ns), -1])[0]
    return Run(int(fitting[-1]) + 1, times_ns.shape[1]) if len(fitting) else Drop()


def _by_cost(
    allowed: NDArray[np.bool_], costs: Floats, times_ns: Floats, waits_ns: Floats
) -> Iterator[tuple[int, int]]:
    """Yield the allowed (row, column), the cheapest first.

    Of equally cheap ones, those without a wait come first, and then the quickest.
    """
    rows, columns = np.nonzero(allowed)
    quickness = times_ns[rows, columns] / (rows + 1)
    for at in np.lexsort((quickness, waits_ns[rows], costs[rows, columns])):
        yield int(rows[at]), int(columns[at])


class _Rest:
    """What follows a batch, and whether all cores can answer it in time.

    Instants are in ns from now on.
    """

    def __init__(
        self, left_ns: Floats, upcoming: Sequence[tuple[int, int]], times_ns: Floats
    ) -> None:
        self._fastest_ns = [float(each) for each in times_ns[:, -1]]
        self._here = [(0.0, float(each)) for each in left_ns]
        coming = ((max(0.0, arrival), float(deadline)) for arrival, deadline in upcoming)
        # What comes too late whatever is done is no reason to hurry.
        self._coming = [each for each in coming if each[0] + self._fastest_ns[0] <= each[1]]
        self._known: dict[int, tuple[float, float]] = {}
        """By number of requests in the first batch: the latest end that is known to be early
        enough, and the earliest that is known to be too late."""

    def clears(self, first: int, end_ns: float) -> bool:
        """Return whether all is in time if a batch of the first requests ends then."""
        early, late = self._known.get(first, (-1.0, float("inf")))
        if early < end_ns < late:
            if self._walk(first, end_ns):
                early = end_ns
            else:
                late = end_ns
            self._known[first] = early, late
        return end_ns <= early

    def _walk(self, first: int, now_ns: float) -> bool:
        """Serve all in the order of deadlines, each batch as large as its first one permits."""
        joining = max(0, first - len(self._here))
        if any(deadline_ns < now_ns for _, deadline_ns in self._coming[:joining]):
            return False
        requests = sorted((*self._here[first:], *self._coming[joining:]), key=itemgetter(1))
        fastest, at = self._fastest_ns, 0
        while at < len(requests):
            arrival_ns, deadline_ns = requests[at]
            now_ns = max(now_ns, arrival_ns)
            size = 0
            while (
                at + size < len(requests)
                and size < len(fastest)
                and requests[at + size][0] <= now_ns
                and now_ns + fastest[size] <= deadline_ns
            ):
                size += 1
            if not size:
                return False
            now_ns += fastest[size - 1]
            at += size
        return True
