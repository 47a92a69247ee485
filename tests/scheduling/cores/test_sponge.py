"""The baseline: the paper's algorithm with its errors mended."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.scheduling.cores.core_latency import CoreLatency
from edgebox.scheduling.cores.sponge import Allocation, allocate

MS = 1_000_000
TIMES = CoreLatency(35.8 * MS, 5.74 * MS, 1.29 * MS, 13.3 * MS).table_ns(16, 16)


def test_more_network_time_takes_more_cores() -> None:
    """Sponge, section 2.1: 100 requests a second, SLO of 1 s, and a network that slows down."""
    cores = [
        allocate(100, transit * MS, 1000 * MS, 100, TIMES).cores for transit in (0, 100, 300, 600)
    ]
    assert cores == sorted(cores)
    assert cores[0] < cores[-1]


def test_where_nothing_is_feasible_all_cores_run_the_batch_of_the_highest_throughput() -> None:
    found = allocate(10, 999 * MS, 1000 * MS, 100, TIMES)
    throughput = np.arange(1, 17) / TIMES[:, -1]
    assert found == Allocation(int(throughput.argmax()) + 1, 16)


@given(
    st.integers(0, 30),
    st.integers(0, 900),
    st.floats(1, 60),
)
def test_brute_force_finds_no_fewer_cores(requests: int, transit_ms: int, rate_hz: float) -> None:
    found = allocate(requests, transit_ms * MS, 1000 * MS, rate_hz, TIMES)

    def feasible(size: int, cores: int) -> bool:
        took = TIMES[size - 1, cores - 1]
        batches = max(1, -(-requests // size))
        return bool(transit_ms * MS + batches * took < 1000 * MS and size * 1e9 / took >= rate_hz)

    possible = [(c, b) for c in range(1, 17) for b in range(1, 17) if feasible(b, c)]
    if possible:
        assert (found.cores, found.batch_size) == min(possible)
    else:
        assert found.cores == 16
