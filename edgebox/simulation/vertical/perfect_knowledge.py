"""The fewest violations, and then core-seconds, that any policy could have with one executor. Pure.

Dynamic programming over the requests in the order of their deadlines, which is that of arrival: all
of a batch are served by the earliest deadline in it, so batches of successive requests are enough,
and to leave out the first of them is the best way to leave out one. After each request it is known
at which cost the executor can be free at which instant. Instants are rounded down to a grid, so the
result is a bound: no policy has less, as long as batches take the times that it is given.

A cost is a complex number: violations, and core-nanoseconds as the imaginary part. NumPy orders
complex numbers by the real part, and equal ones by the imaginary part.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.scheduling.cores.core_latency import Floats
from edgebox.simulation.vertical.vertical_scenario import Arrivals

GRID_NS = 1_000_000
_VIOLATION = 1 + 0j
_Costs = NDArray[np.complex128]


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
    never = np.full(bins, np.inf, np.complex128)
    costs: dict[int, _Costs] = {0: never.copy()}
    costs[0][0] = 0
    extra = 1j * (np.arange(cores_max) * times_ns)

    def reach(request: int, free_ns: Floats, cost: _Costs) -> None:
        if request not in costs:
            costs[request] = never.copy()
        at = np.maximum(0.0, free_ns - bases[request]) // GRID_NS
        np.minimum.at(costs[request], at.astype(np.int64), cost)

    for done in range(total):
        cost = costs.pop(done)
        # Who is free later must have saved something for it.
        before = np.concatenate(([np.inf], np.minimum.accumulate(cost)[:-1]))
        at = np.nonzero(cost < before)[0]
        free_ns, cost = bases[done] + at * GRID_NS, cost[at]
        reach(done + 1, free_ns, cost + _VIOLATION)
        for size in range(1, min(batch_max, total - done) + 1):
            starts_ns = np.maximum(free_ns, arrived[done + size - 1])
            ends_ns = starts_ns[:, None] + times_ns[size - 1]
            row, column = np.nonzero(ends_ns <= deadlines[done])
            if not len(row):
                break
            reach(done + size, ends_ns[row, column], cost[row] + extra[size - 1][column])
    least = complex(costs[total].min())
    return Optimum(round(least.real), least.imag)
