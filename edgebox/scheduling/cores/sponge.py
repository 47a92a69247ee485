"""Sponge's choice of cores and batch size, once an adaptation period. A baseline. Pure.

Source: Sponge (Razavi et al., EuroMLSys '24), Algorithm 1, with its printed errors mended: line 8
must refuse a batch that takes as long as the SLO or longer (printed: shorter); line 15 must return
only if no batch of the queue missed; the constraint of Eq. 3 that the throughput is no less than
the arrival rate is never tested. Where nothing is feasible, all cores and the batch size of the
highest throughput are taken: the paper names none.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Allocation:
    """What holds until the next decision."""

    batch_size: int
    cores: int


def allocate(
    requests: int,
    transit_max_ns: float,
    slo_ns: float,
    rate_hz: float,
    times_ns: NDArray[np.float64],
) -> Allocation:
    """Return the fewest cores, then the smallest batch, without a violation.

    Args:
        requests: that are to be served.
        transit_max_ns: the longest time that one of them spent on its way.
        slo_ns: of all.
        rate_hz: of the arrivals.
        times_ns: (B, C) time of a batch of b requests on c cores in row b - 1, column c - 1.
    """
    batch_max, cores_max = times_ns.shape
    for at in range(cores_max):
        for size in range(1, batch_max + 1):
            took_ns = float(times_ns[size - 1, at])
            if took_ns >= slo_ns:
                break
            if size * 1e9 / took_ns < rate_hz:
                continue
            batches = -(-requests // size)
            if transit_max_ns + took_ns * max(1, batches) < slo_ns:
                return Allocation(size, at + 1)
    sizes = np.arange(1, batch_max + 1)
    best = int(np.argmax(sizes / times_ns[:, -1]))
    return Allocation(best + 1, cores_max)
