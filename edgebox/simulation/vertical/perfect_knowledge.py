"""The fewest violations, and then core-seconds, that any policy could have with one executor. Pure.

Dynamic programming over the requests in the order of their deadlines, which is that of arrival: all
of a batch are served by the earliest deadline in it, so batches of successive requests are enough,
and to leave out the first of them is the best way to leave out one. After each request it is known
at which cost the executor can be free at which instant. Instants are rounded down to a grid, so the
result is a bound: no policy has less, as long as batches take the times that it is given.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.scheduling.cores.core_latency import Floats
from edgebox.simulation.vertical.vertical_scenario import Arrivals

GRID_NS = 1_000_000
_NEVER = np.iinfo(np.int64).max // 2
"""So many violations are at an instant at which the executor is never free."""
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Optimum:
    """What perfect knowledge of all arrivals allows."""

    violations: int
    extra_core_ns: float
    """Core time beyond the one core that is always held."""


def optimum(arrivals: Arrivals, times_ns: Floats) -> Optimum:
    """Find the bound. O(n B C T), T the instants of the grid within the SLO.

    Args:
        arrivals: all requests, in the order of arrival and of deadlines.
        times_ns: (B, C) time of a batch of b requests on c cores in row b - 1, column c - 1.
    """
    arrived = np.asarray(arrivals.arrivals_ns, np.float64)
    deadlines = np.asarray(arrivals.deadlines_ns, np.float64)
    total, (batch_max, cores_max) = len(arrived), times_ns.shape
    if not total:
        return Optimum(0, 0.0)
    # Nothing starts before the next request is there: until then all instants are as good.
    bases = np.append(arrived, max(arrived[-1], deadlines[-1]))
    bins = 2 + max(0, int((deadlines - arrived).max() // GRID_NS))
    reached: dict[int, _Costs] = {0: _Costs(bins)}
    reached[0].take(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1))
    extra = np.arange(cores_max) * times_ns

    def reach(request: int, free_ns: Floats, violations: Ints, cost: Floats) -> None:
        if request not in reached:
            reached[request] = _Costs(bins)
        at = np.maximum(0.0, free_ns - bases[request]) // GRID_NS
        reached[request].take(at.astype(np.int64), violations, cost)

    for done in range(total):
        at, violations, cost = reached.pop(done).worth_it()
        free_ns = bases[done] + at * GRID_NS
        reach(done + 1, free_ns, violations + 1, cost)
        for size in range(1, min(batch_max, total - done) + 1):
            starts_ns = np.maximum(free_ns, arrived[done + size - 1])
            ends_ns = starts_ns[:, None] + times_ns[size - 1]
            row, column = np.nonzero(ends_ns <= deadlines[done])
            if not len(row):
                break
            spent = cost[row] + extra[size - 1][column]
            reach(done + size, ends_ns[row, column], violations[row], spent)
    _, violations, cost = reached[total].worth_it()
    return Optimum(int(violations[-1]), float(cost[-1]))


class _Costs:
    """The least that it costs to be free at each instant: violations, and then core time."""

    def __init__(self, instants: int) -> None:
        self._violations: Ints = np.full(instants, _NEVER)
        self._core_ns: Floats = np.full(instants, np.inf)

    def take(self, at: Ints, violations: Ints, core_ns: Floats) -> None:
        """Take in ways to be free at some instants, by their numbers; (n,) each."""
        before = self._violations.copy()
        np.minimum.at(self._violations, at, violations)
        self._core_ns[self._violations < before] = np.inf
        least = violations == self._violations[at]
        np.minimum.at(self._core_ns, at[least], core_ns[least])

    def worth_it(self) -> tuple[Ints, Ints, Floats]:
        """Return the instants, violations and core times without those that bring nothing.

        Who is free later must have saved something for it, so the last is the least of all.
        """
        fewest = np.minimum.accumulate(self._violations)
        kept = np.zeros(len(fewest), np.bool_)
        for number in np.unique(fewest[fewest < _NEVER]).tolist():
            core_ns = np.where(self._violations == number, self._core_ns, np.inf)
            core_ns[fewest < number] = np.inf
            before = np.concatenate(([np.inf], np.minimum.accumulate(core_ns)[:-1]))
            kept |= core_ns < before
        at = np.flatnonzero(kept)
        return at, self._violations[at], self._core_ns[at]
