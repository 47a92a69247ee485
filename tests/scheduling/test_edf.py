"""Earliest deadline first, judged by brute force."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import Outcome, RequestId
from edgebox.scheduling.actions import Finish
from edgebox.scheduling.edf import GROWTH_MIN, EarliestDeadlineFirst, fill
from edgebox.scheduling.events import BatchCompleted, RequestArrived, RequestPrepared
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies, Row
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from tests.scheduling.scene import CPU, LARGE, MS, Bench, infers, name, profile, request

GPU = ExecutorId("cuda:0/0")


def queues() -> tuple[EarliestDeadlineFirst, Latencies]:
    latencies, policy = Latencies(SchedulerParameters()), EarliestDeadlineFirst()
    learning = Learning(latencies)
    policy.attach(latencies, learning, Expectations(latencies, learning))
    latencies.executor_started(CPU, [profile(px) for px in (128, 256, 416)])
    latencies.executor_started(GPU, [profile(256, GPU, gain=0.9)])
    return policy, latencies


@pytest.mark.parametrize(
    ("gain", "waiting", "left_ms", "expected"),
    [
        (0.0, 4, 1000, (1, 1)),  # a CPU gains nothing from batches
        (1.0, 4, 1000, (4, 4)),
        (1.0, 9, 1000, (4, 4)),
        (1.0, 3, 1000, (3, 4)),  # padding that costs nothing
        (0.8, 3, 1000, (3, 4)),
        (0.3, 3, 1000, (2, 2)),  # padding that costs more than it brings
        (1.0, 4, 11, (1, 1)),  # not even one by P99 (12 ms): tried all the same
        (0.5, 4, 20, (2, 2)),  # four would take 30 ms by P99, two take 18
    ],
)
def test_fill_examples(gain: float, waiting: int, left_ms: int, expected: tuple[int, int]) -> None:
    latencies = Latencies(SchedulerParameters())
    latencies.executor_started(CPU, [profile(256, gain=gain)])
    row = latencies.row(CPU, name(256))
    assert row is not None
    assert fill(row, waiting, left_ms * MS) == expected


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=5),
    st.sets(st.integers(1, 16), min_size=5, max_size=5),
    st.integers(1, 20),
    st.integers(0, 700),
)
def test_fill_takes_what_answers_most_and_fits(
    steps: list[int], sizes: set[int], waiting: int, left_ns: int
) -> None:
    ordered = tuple(sorted(sizes))[: len(steps)]
    median = tuple(sum(steps[: at + 1]) for at in range(len(steps)))
    high = tuple(round(1.5 * each) for each in median)
    row = Row(ordered, median, median, high)
    count, size = fill(row, waiting, left_ns)
    assert 1 <= count <= min(waiting, size)
    chosen = ordered.index(size)
    fitting = [at for at in range(len(ordered)) if high[at] <= left_ns]
    if not fitting:
        assert (count, size) == (1, ordered[0])
        return
    assert chosen in fitting
    assert count == min(waiting, size)
    rates = [min(waiting, ordered[at]) / median[at] for at in fitting]
    assert max(rates) <= rates[chosen] * GROWTH_MIN
    assert all(rates[chosen] > rate for rate in rates[:chosen])


entries = st.lists(
    st.tuples(st.sampled_from([128, 256, 416]), st.integers(0, 60), st.booleans()),
    max_size=8,
)


@given(entries, st.sampled_from([CPU, GPU]), st.integers(0, 40))
def test_the_batch_starts_with_the_earliest_deadline_that_can_be_met_here(
    waiting: list[tuple[int, int, bool]], executor: ExecutorId, now_ms: int
) -> None:
    policy, latencies = queues()
    ready = []
    for at, (px, deadline_ms, prepared) in enumerate(waiting):
        policy.admitted(request(at, deadline_ms), name(px), 0)
        if prepared:
            policy.prepared(RequestId(at), 0)
            ready.append((deadline_ms * MS, at, name(px)))
    now_ns = now_ms * MS
    possible, likely = [], []
    for deadline_ns, at, variant in sorted(ready):
        row = latencies.row(executor, variant)
        if row is not None and now_ns + row.low_ns[0] <= deadline_ns:
            possible.append((deadline_ns, at, variant))
            if now_ns + row.median_ns[0] <= deadline_ns:
                likely.append((deadline_ns, at, variant))
    batch = policy.next_batch(executor, now_ns)
    if not possible:
        assert batch is None
        return
    assert batch is not None
    assert sorted(policy.pending()) == sorted(set(range(len(waiting))) - set(batch.requests))
    _, head, variant = (likely or possible)[0]
    assert batch.variant == variant
    same = [(deadline_ns, at) for deadline_ns, at, v in sorted(ready) if v == variant]
    row = latencies.row(executor, variant)
    assert row is not None
    start = [at for _, at in same].index(batch.requests[0])
    assert [at for _, at in same[start:]][: len(batch.requests)] == list(batch.requests)
    took_ns = row.high_ns[row.sizes.index(batch.batch_size)]
    if batch.requests[0] == head:
        assert len(batch.requests) == 1 or now_ns + took_ns <= same[start][0]
        return
    # Heads were given up for a batch of more, which is safe but could not have waited for one.
    assert len(batch.requests) > 1
    assert now_ns + took_ns <= same[start][0] < now_ns + took_ns + row.high_ns[0]


@given(entries, st.integers(0, 60), st.sets(st.integers(0, 7)))
def test_what_expires_is_what_no_executor_can_make(
    waiting: list[tuple[int, int, bool]], now_ms: int, removed: set[int]
) -> None:
    policy, latencies = queues()
    left = {}
    for at, (px, deadline_ms, prepared) in enumerate(waiting):
        policy.admitted(request(at, deadline_ms), name(px), 0)
        if prepared:
            policy.prepared(RequestId(at), 0)
        if at in removed:
            policy.removed(RequestId(at))
        else:
            best = latencies.best(name(px))
            assert best is not None
            left[at] = deadline_ms * MS - best.low_ns[0]
    wakeup_ns = policy.next_wakeup_ns()
    assert wakeup_ns == (min(left.values()) + 1 if left else None)
    gone = policy.expired(now_ms * MS)
    assert sorted(gone) == [at for at, last_ns in left.items() if last_ns < now_ms * MS]
    assert sorted(policy.pending()) == sorted(set(left) - set(gone))


def test_a_head_that_is_lost_here_does_not_block_the_rest() -> None:
    policy, _ = queues()
    # 256 px takes at least 7.2 ms on both; both queues' heads differ in what they need.
    policy.admitted(request(1, 17), name(416), 0)
    policy.admitted(request(2, 90), name(416), 0)
    policy.admitted(request(3, 40), name(256), 0)
    for at in (1, 2, 3):
        policy.prepared(RequestId(at), 0)
    batch = policy.next_batch(CPU, 0)
    assert batch is not None
    assert batch.requests == (3,)
    batch = policy.next_batch(CPU, 0)
    assert batch is not None
    assert batch.requests == (2,)
    assert policy.next_batch(CPU, 0) is None
    assert policy.expired(0) == [1]


def test_what_will_probably_miss_runs_only_when_nothing_else_waits() -> None:
    policy, _ = queues()
    # 416 px takes 18 ms at its quickest, 20 usually.
    for at, deadline_ms in [(1, 19), (2, 300)]:
        policy.admitted(request(at, deadline_ms), name(416), 0)
        policy.prepared(RequestId(at), 0)
    batches = [policy.next_batch(CPU, 0), policy.next_batch(CPU, 0)]
    assert [b.requests for b in batches if b is not None] == [(2,), (1,)]


@pytest.mark.parametrize(
    ("deadlines_ms", "first"),
    [
        # On the GPU 256 px takes 12 ms by P99 alone, 13.2 as two, 15.6 as four.
        ([12, 16, 16, 16, 16], (1, 2, 3, 4)),  # the four could not wait for the head
        ([12, 40, 40, 40, 40], (0,)),  # they can
        ([12, 16], (0,)),  # one for one is no gain
    ],
)
def test_in_an_overload_the_head_is_given_up_for_a_larger_batch(
    deadlines_ms: list[int], first: tuple[int, ...]
) -> None:
    policy, _ = queues()
    for at, deadline_ms in enumerate(deadlines_ms):
        policy.admitted(request(at, deadline_ms), name(256), 0)
        policy.prepared(RequestId(at), 0)
    batch = policy.next_batch(GPU, 0)
    assert batch is not None
    assert batch.requests == first


def test_an_executor_without_the_variant_gets_nothing() -> None:
    policy, _ = queues()
    policy.admitted(request(1, 100), name(416), 0)
    policy.prepared(RequestId(1), 0)
    assert policy.next_batch(GPU, 0) is None
    assert policy.next_batch(CPU, 0) is not None


@given(st.lists(st.tuples(st.sampled_from([2, 8]), st.integers(10, 60)), min_size=1, max_size=5))
def test_if_any_order_is_on_time_so_is_this_one(jobs: list[tuple[int, int]]) -> None:
    # Jackson's rule, for jobs that are all there at once and take exactly what the profile says.
    exact = {128: 2, 256: 8}
    px_of = {ms: px for px, ms in exact.items()}

    def on_time(order: tuple[tuple[int, int], ...]) -> bool:
        done = 0
        for took, deadline in order:
            done += took
            if done > deadline:
                return False
        return True

    feasible = any(on_time(order) for order in permutations(jobs))
    bench = Bench(
        profiles=[profile(px, sizes=(1,)) for px in exact],
        parameters=SchedulerParameters(prepare_initial_ns=0, first_pixels_max=LARGE),
    )
    orders = []
    for at, (took, deadline) in enumerate(jobs):
        bench(RequestArrived(request(at, deadline, variant=name(px_of[took]))), 0)
    # A busy executor would start before all are there: prepare the earliest first, then the rest.
    by_deadline = sorted(range(len(jobs)), key=lambda at: (jobs[at][1], at))
    for at in by_deadline:
        orders += infers(bench(RequestPrepared(RequestId(at), 0), 0))
    outcomes, now_ms = [], 0
    while orders:
        infer = orders.pop()
        took = exact[int(infer.variant.removeprefix("street-"))]
        now_ms += took
        actions = bench(BatchCompleted(CPU, infer.batch, took * MS), now_ms)
        outcomes += [a.outcome for a in actions if isinstance(a, Finish)]
        orders += infers(actions)
    if feasible:
        assert outcomes == [Outcome.ON_TIME] * len(jobs)
