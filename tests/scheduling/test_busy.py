"""What executors cost each other: counted exactly, expected, and never taken for slowness."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, LatencyProfile
from edgebox.domain.requests import RequestId
from edgebox.scheduling.busy import BusyExecutors
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraConnected,
    RequestArrived,
    RequestPrepared,
)
from tests.scheduling.scene import CPU, MS, Bench, camera, infers, name, profile, request

OTHER, THIRD = ExecutorId("cpu/1"), ExecutorId("cpu/2")
EXECUTORS = (CPU, OTHER, THIRD)


@given(st.lists(st.tuples(st.sampled_from(EXECUTORS), st.integers(0, 30)), max_size=30))
def test_the_average_is_that_of_every_nanosecond(steps: list[tuple[ExecutorId, int]]) -> None:
    busy, now_ns = BusyExecutors(), 0
    running: dict[ExecutorId, int] = {}
    seen: dict[ExecutorId, list[int]] = {}
    for executor, wait_ns in steps:
        for _ in range(wait_ns):  # brute force: look at every nanosecond
            for each in running:
                seen[each].append(len(running) - 1)
        now_ns += wait_ns
        if executor in running:
            del running[executor]
            others = busy.ended(executor, now_ns)
            if seen[executor]:
                assert others == pytest.approx(sum(seen[executor]) / len(seen[executor]))
        else:
            busy.started(executor, now_ns)
            running[executor], seen[executor] = now_ns, []
        for each in EXECUTORS:
            assert busy.others(each) == len(running) - (each in running)


def beside(interference: float) -> list[LatencyProfile]:
    return [replace(profile(128, e), interference=interference) for e in (CPU, OTHER)]


def served_together(bench: Bench, *, slower: float) -> None:
    """Let both executors run all the time, each batch so many times as long as profiled."""
    bench(CameraConnected(camera(slo_ms=2000)), 0)
    took_ms = 2 * slower
    for at in range(0, 200, 2):
        at_ms = at * 10.0
        for one in (at, at + 1):
            bench(RequestArrived(request(one, at_ms + 900, arrival_ms=at_ms)), at_ms)
            assert infers(bench(RequestPrepared(RequestId(one), 0), at_ms))
        for executor, running in bench.scheduler.running.items():
            done = BatchCompleted(executor, running.batch, round(took_ms * MS))
            bench(done, at_ms + took_ms)


@pytest.mark.parametrize(("interference", "slowdown"), [(0.0, 1.6), (0.6, 1.0)])
def test_known_interference_is_not_taken_for_slowness(interference: float, slowdown: float) -> None:
    bench = Bench(beside(interference))
    served_together(bench, slower=1.6)
    assert max(bench.scheduler.slowdown.values()) == pytest.approx(slowdown, abs=0.15)
    # What is left beyond it still is.
    bench = Bench(beside(interference))
    served_together(bench, slower=3.2)
    assert min(bench.scheduler.slowdown.values()) >= 1.8 * slowdown


def test_a_batch_beside_others_must_still_be_in_time() -> None:
    bench = Bench(beside(1.0))
    latencies = bench.scheduler._times.latencies
    bench(CameraConnected(camera(slo_ms=2000)), 0)
    alone = latencies.row(OTHER, name(128))
    assert alone is not None
    bench(RequestArrived(request(1, 900)), 0)
    (infer,) = infers(bench(RequestPrepared(RequestId(1), 0), 0))
    beside_one = latencies.row(OTHER, name(128))
    assert beside_one is not None
    assert beside_one.median_ns == tuple(2 * each for each in alone.median_ns)
    # The one that runs has nobody beside it, and what may be in time is not given up.
    assert latencies.row(infer.executor, name(128)) == latencies.row(OTHER, name(128), 0) == alone
    assert latencies.best(name(128)) == alone
    bench(BatchFailed(infer.executor, infer.batch), 5)
    assert latencies.row(OTHER, name(128)) == alone


def test_planning_reckons_with_all_of_them() -> None:
    snapshot = Bench(beside(0.5)).scheduler.snapshot(0)
    assert snapshot.others == 0.9, "as much as is planned"
    assert Bench([profile(128)]).scheduler.snapshot(0).others == 0
