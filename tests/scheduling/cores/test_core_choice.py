"""The choice of batch size and cores before each batch; brute force is the judge."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.scheduling.cores.core_choice import Choice, Drop, Run, Upcoming, Wait, choose
from edgebox.scheduling.cores.core_latency import CoreLatency, Floats

MS = 1_000_000
TIMES = CoreLatency(40 * MS, 4 * MS, 2 * MS, 10 * MS).table_ns(4, 4)
"""One picture: 56 ms on one core, 23 ms on four. Four: 182 ms and 59 ms."""

queues = st.lists(st.integers(-20, 400), min_size=1, max_size=5).map(
    lambda each: sorted(ms * MS for ms in each)
)
gaps = st.integers(5, 300).map(lambda ms: ms * MS)


def serve(deadlines: list[int], gap_ns: float, times: Floats) -> tuple[int, float]:
    """Serve a queue that nothing is added to; return the misses and the core time."""
    now, misses, used = 0, 0, 0.0
    while deadlines:
        choice = choose(deadlines, now, gap_ns, times)
        if isinstance(choice, Wait):
            assert choice.until_ns > now
            now = choice.until_ns
            continue
        if isinstance(choice, Drop):
            deadlines, misses = deadlines[1:], misses + 1
            continue
        took = times[choice.batch_size - 1, choice.cores - 1]
        now += round(took)
        assert now <= deadlines[0] + 1
        used += choice.cores * took
        deadlines = deadlines[choice.batch_size :]
    return misses, used


def fewest_misses(deadlines: list[int], now: float, fastest: Floats) -> int:
    """Try all ways to serve a queue on all cores in the order of deadlines."""
    if not deadlines:
        return 0
    least = 1 + fewest_misses(deadlines[1:], now, fastest)
    for size in range(1, min(len(fastest), len(deadlines)) + 1):
        if (ends := now + fastest[size - 1]) <= deadlines[0]:
            least = min(least, fewest_misses(deadlines[size:], ends, fastest))
    return least


@settings(deadline=None)
@given(queues, gaps)
def test_what_all_cores_could_answer_in_time_is_answered_in_time(
    deadlines: list[int], gap_ns: int
) -> None:
    misses, _ = serve(list(deadlines), gap_ns, TIMES)
    if fewest_misses(deadlines, 0.0, TIMES[:, -1]) == 0:
        assert misses == 0


@given(queues, gaps)
def test_a_request_is_dropped_only_if_all_cores_could_not_answer_it(
    deadlines: list[int], gap_ns: int
) -> None:
    choice = choose(deadlines, 0, gap_ns, TIMES)
    assert isinstance(choice, Drop) == (deadlines[0] < TIMES[0, -1])


@given(queues, gaps)
def test_a_batch_meets_its_earliest_deadline(deadlines: list[int], gap_ns: int) -> None:
    choice = choose(deadlines, 0, gap_ns, TIMES)
    if isinstance(choice, Run):
        assert choice.batch_size <= len(deadlines)
        assert TIMES[choice.batch_size - 1, choice.cores - 1] <= deadlines[0]


@given(st.integers(60, 2000), st.integers(60, 500))
def test_one_request_with_time_is_served_at_the_least_cost(left_ms: int, gap_ms: int) -> None:
    """Without others to wait for, brute force over the cores finds what is cheapest."""
    choice = choose([left_ms * MS], 0, gap_ms * MS, TIMES[:1])
    allowed = [
        (cores - 1) * float(TIMES[0, cores - 1])
        for cores in range(1, 5)
        if TIMES[0, cores - 1] <= min(left_ms, gap_ms) * MS
    ]
    assert isinstance(choice, Run)
    assert (choice.cores - 1) * TIMES[0, choice.cores - 1] == min(allowed)


def test_it_waits_for_more_if_that_is_cheaper_and_runs_once_they_are_there() -> None:
    # Requests come so fast that one core cannot keep up with single ones.
    first = choose([400 * MS], 0, 50 * MS, TIMES)
    assert isinstance(first, Wait)
    assert first.until_ns == 50 * MS
    choice: Choice = choose([400 * MS + 50 * at * MS for at in range(4)], 150 * MS, 50 * MS, TIMES)
    assert choice == Run(4, 1)


def test_a_batch_ends_in_time_for_a_request_that_comes_late() -> None:
    calm = choose([300 * MS], 0, 200 * MS, TIMES)
    assert calm == Run(1, 1)
    # Another one comes in 30 ms and must be answered by 70 ms: 23 ms on all cores.
    hurried = choose([300 * MS], 0, 200 * MS, TIMES, [Upcoming(30 * MS, 70 * MS)])
    assert isinstance(hurried, Run)
    assert hurried.cores > 1
    assert TIMES[0, hurried.cores - 1] + TIMES[0, -1] <= 70 * MS


def test_what_comes_too_late_whatever_is_done_is_no_reason_to_hurry() -> None:
    hopeless = [Upcoming(60 * MS, 70 * MS)]
    assert choose([300 * MS], 0, 200 * MS, TIMES, hopeless) == Run(1, 1)


def test_under_overload_all_cores_run_the_most() -> None:
    deadlines = [65 * MS] * 12
    assert choose(deadlines, 0, 5 * MS, TIMES) == Run(4, 4)


@settings(deadline=None, max_examples=50)
@given(queues, gaps, st.integers(1, 4), st.integers(1, 4))
def test_any_shape_of_times_is_taken(
    deadlines: list[int], gap_ns: int, sizes: int, cores: int
) -> None:
    times = np.ascontiguousarray(TIMES[:sizes, :cores])
    choice = choose(deadlines, 0, gap_ns, times)
    if isinstance(choice, Run):
        assert (choice.batch_size, choice.cores) in set(
            product(range(1, sizes + 1), range(1, cores + 1))
        )
