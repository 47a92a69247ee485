"""The bound that no policy can be below; brute force is the judge on small inputs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.scheduling.cores.core_latency import CoreLatency, Floats
from edgebox.simulation.vertical.perfect_knowledge import GRID_NS, optimum
from edgebox.simulation.vertical.vertical_scenario import Arrivals

MS = 1_000_000
TIMES = CoreLatency(40 * MS, 4 * MS, 2 * MS, 10 * MS).table_ns(2, 3)
SLO_NS = 200 * MS


def brute_force(arrivals: Arrivals, times: Floats) -> tuple[int, float]:
    """Try every division into batches, every core count and everything that may be left out."""

    def best(at: int, free: float) -> tuple[int, float]:
        if at == len(arrivals.arrivals_ns):
            return 0, 0.0
        missed, cost = best(at + 1, free)
        found = [(missed + 1, cost)]
        for size, cores in product(range(1, 3), range(1, 4)):
            if at + size > len(arrivals.arrivals_ns):
                continue
            took = float(times[size - 1, cores - 1])
            ends = max(free, arrivals.arrivals_ns[at + size - 1]) + took
            if ends <= arrivals.deadlines_ns[at]:
                missed, cost = best(at + size, ends)
                found.append((missed, cost + (cores - 1) * took))
        return min(found)

    return best(0, 0.0)


@st.composite
def requests(draw: st.DrawFn) -> Arrivals:
    captures, arrivals, now, arrived = [], [], 0, 0
    for _ in range(draw(st.integers(1, 5))):
        now += draw(st.integers(0, 120)) * MS
        arrived = max(arrived, now + draw(st.integers(0, 190)) * MS)
        captures.append(now)
        arrivals.append(min(arrived, now + 199 * MS))
    arrivals = [max(arrivals[: at + 1]) for at in range(len(arrivals))]
    deadlines = tuple(each + SLO_NS for each in captures)
    return Arrivals(tuple(arrivals), deadlines, tuple(captures))


@settings(deadline=None)
@given(requests())
def test_it_is_what_brute_force_finds_but_for_the_grid(arrivals: Arrivals) -> None:
    missed, cost = brute_force(arrivals, TIMES)
    found = optimum(arrivals, TIMES)
    # Instants are rounded down: never more than brute force, and little less.
    assert found.violations <= missed
    if found.violations == missed:
        assert found.extra_core_ns <= cost + 1
    if missed - found.violations:
        later = Arrivals(
            arrivals.arrivals_ns,
            tuple(each + 10 * GRID_NS for each in arrivals.deadlines_ns),
            arrivals.captures_ns,
        )
        assert brute_force(later, TIMES)[0] <= found.violations


def test_one_request_with_time_needs_one_core() -> None:
    found = optimum(Arrivals((10 * MS,), (SLO_NS,), (0,)), TIMES)
    assert (found.violations, found.extra_core_ns) == (0, 0.0)


def test_what_comes_too_late_is_a_violation_and_costs_nothing() -> None:
    found = optimum(Arrivals((199 * MS,), (SLO_NS,), (0,)), TIMES)
    assert (found.violations, found.extra_core_ns) == (1, 0.0)


@pytest.mark.parametrize("late", [0, 3])
def test_core_time_is_never_taken_for_violations(late: int) -> None:
    """However much it is: each request needs all of 16 cores for 50 s."""
    minute_ns, took_ns, count = 60_000 * MS, 50_000 * MS, 70
    times = np.full((1, 16), 1e14)  # never in time
    times[0, 15] = took_ns
    arrivals = tuple(at * minute_ns for at in range(count))
    deadlines = tuple(each + (1 if at < late else minute_ns) for at, each in enumerate(arrivals))
    found = optimum(Arrivals(arrivals, deadlines, arrivals), times)
    assert found.violations == late
    assert found.extra_core_ns == (count - late) * 15 * took_ns


def test_a_batch_is_worth_waiting_for() -> None:
    arrivals = Arrivals((0, 40 * MS), (SLO_NS, SLO_NS + 40 * MS), (0, 40 * MS))
    found = optimum(arrivals, TIMES)
    assert found.violations == 0
    assert found.extra_core_ns == pytest.approx(0.0)


def test_no_request_needs_nothing() -> None:
    found = optimum(Arrivals((), (), ()), TIMES)
    assert (found.violations, found.extra_core_ns) == (0, 0.0)
