"""Which idle executor gets the next batch: the fastest, as it is now."""

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import RequestId
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    ExecutorStarted,
    ExecutorStopped,
    RequestArrived,
    RequestPrepared,
)
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.scheduler import SchedulerParameters
from tests.scheduling.scene import CPU, MS, Bench, camera, infers, profile, request

GPU, OLD = ExecutorId("cuda:0/0"), ExecutorId("cpu/1")


def run_one(bench: Bench, at: int, at_ms: float) -> ExecutorId:
    """Let a request come and be decoded; return where it runs."""
    bench(RequestArrived(request(at, at_ms + 900, arrival_ms=at_ms)), at_ms)
    (infer,) = infers(bench(RequestPrepared(RequestId(at), MS), at_ms))
    return infer.executor


def test_idle_executors_are_asked_fastest_first() -> None:
    bench = Bench([profile(128), profile(128, GPU, gain=0.9), profile(128, OLD, gain=-0.5)])
    bench(CameraConnected(camera()), 0)
    bench(ExecutorStopped(GPU), 0)
    bench(ExecutorStarted(GPU, (profile(128, GPU, gain=0.9),)), 0)
    order = [run_one(bench, at, 10) for at in range(3)]
    assert order == [GPU, CPU, OLD]


def test_a_slowed_executor_loses_its_place() -> None:
    bench = Bench([profile(128), profile(128, GPU, gain=0.5)])
    bench(CameraConnected(camera(slo_ms=2000)), 0)
    at_ms = 10.0
    executors = []
    for at in range(64):
        executor = run_one(bench, at, at_ms)
        executors.append(executor)
        running = bench.scheduler.running[executor]
        took_ms = 40 if executor == GPU else 2
        at_ms += took_ms
        bench(BatchCompleted(executor, running.batch, took_ms * MS), at_ms)
    assert executors[0] == GPU
    assert executors[-1] == CPU


def test_equal_ones_keep_their_order_and_variants_weigh_the_same() -> None:
    latencies = Latencies(SchedulerParameters())
    assert latencies.fastest_first() == ()
    for executor in (CPU, GPU, OLD):
        latencies.executor_started(executor, [profile(128, executor), profile(608, executor)])
    assert latencies.fastest_first() == (CPU, GPU, OLD)
    # Twice as fast with a small variant, a little slower with a large one that takes longer.
    latencies.executor_started(OLD, [profile(128, OLD, gain=0.7), profile(608, OLD, gain=-0.1)])
    assert latencies.fastest_first() == (OLD, CPU, GPU)
    latencies.set_slowdown(OLD, 3.0)
    assert latencies.fastest_first() == (CPU, GPU, OLD)
    latencies.executor_stopped(CPU)
    assert latencies.fastest_first() == (GPU, OLD)
