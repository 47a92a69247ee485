"""How many threads a batch gets: from deadlines, load, what waits and comes, and other batches."""

from dataclasses import replace
from statistics import mean

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, LatencyProfile
from edgebox.domain.requests import RequestId
from edgebox.scheduling.actions import Action, Infer
from edgebox.scheduling.cores.core_choice import Awaited, WaitingWork, choose_cores
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    RequestArrived,
    RequestPrepared,
)
from edgebox.scheduling.scheduler import SchedulerParameters
from tests.scheduling.scene import CPU, LARGE, MS, Bench, camera, infers, profile, request

OTHER = ExecutorId("cpu/1")
FACTORS = {1: 3.0, 2: 1.6, 4: 1.0}
"""On four threads a batch of one 416 takes 20 ms (30 ms seldom), on one 60 ms (90 ms)."""


def with_choice(executor: ExecutorId = CPU, sizes: tuple[int, ...] = (1, 2, 4)) -> LatencyProfile:
    factors = {threads: dict.fromkeys(sizes, factor) for threads, factor in FACTORS.items()}
    return replace(profile(416, executor, sizes=sizes), core_factors=factors)


def bench(*profiles: LatencyProfile) -> Bench:
    return Bench(profiles, SchedulerParameters(first_pixels_max=LARGE, cores=4))


def run_one(box: Bench, at: int, at_ms: float, left_ms: float, of: str = "gate-1") -> Infer:
    """Let a request come that has so much time left, and be prepared; return its batch."""
    box(RequestArrived(request(at, at_ms + left_ms, of=of, arrival_ms=at_ms)), at_ms)
    (infer,) = infers(box(RequestPrepared(RequestId(at), 0), at_ms))
    return infer


def completed(box: Bench, infer: Infer, at_ms: float, full_ms: float) -> list[Infer]:
    """End a batch that takes `full_ms` with all threads."""
    took_ms = full_ms * FACTORS[infer.threads]
    return infers(
        box(BatchCompleted(infer.executor, infer.batch, round(took_ms * MS)), at_ms + took_ms)
    )


def test_a_batch_gets_the_fewest_threads_with_which_it_is_in_time() -> None:
    for left_ms, threads in ((400, 1), (70, 2), (40, 4)):
        box = bench(with_choice())
        box(CameraConnected(camera(slo_ms=400)), 0)
        assert run_one(box, 1, 0, left_ms).threads == threads


def test_an_executor_is_free_when_a_batch_on_few_threads_has_ended() -> None:
    for left_ms, factor in ((400, 3.0), (70, 1.6), (40, 1.0)):
        box = bench(with_choice())
        box(CameraConnected(camera(slo_ms=400)), 0)
        run_one(box, 1, 0, left_ms)
        choice = box.scheduler._dispatch._variants
        assert choice._times_of(CPU, (), {}, 0).free_ns == round(20 * factor * MS)


def test_a_request_that_waits_hurries_the_batch_before_it() -> None:
    box = bench(with_choice())
    for of in ("gate-1", "gate-2", "gate-3"):
        box(CameraConnected(camera(of, slo_ms=2000)), 0)
    first = run_one(box, 1, 0, 1500)
    assert first.threads == 1
    # While it runs, two more come. The first of them may take its time, but for the second.
    for at, left_ms in ((2, 140), (3, 145)):
        box(RequestArrived(request(at, left_ms, of=f"gate-{at}", arrival_ms=1)), 1)
        box(RequestPrepared(RequestId(at), 0), 1)
    (second,) = completed(box, first, 0, 20)
    assert second.requests == (RequestId(2), RequestId(3)) or second.threads > 1


def test_one_profile_without_a_choice_has_none() -> None:
    box = bench(profile(416))
    box(CameraConnected(camera(slo_ms=400)), 0)
    assert run_one(box, 1, 0, 400).threads == 0


def test_a_busy_executor_keeps_up_with_more_threads() -> None:
    """Each frame alone has time for one thread, which takes 60 ms: too long for one each 45 ms."""
    box = bench(with_choice(sizes=(1,)))
    box(CameraConnected(camera(slo_ms=900, rate_hz=22)), 0)
    running: tuple[float, Infer] | None = None
    took_ms: list[float] = []

    def ordered(actions: list[Action], at_ms: float) -> None:
        nonlocal running
        for infer in infers(actions):
            took_ms.append(20 * FACTORS[infer.threads])
            running = at_ms + took_ms[-1], infer

    for at in range(200):
        at_ms = 45.0 * at
        while running is not None and running[0] <= at_ms:
            (ended_ms, infer), running = running, None
            took_ns = round(took_ms[-1] * MS)
            ordered(box(BatchCompleted(CPU, infer.batch, took_ns), ended_ms), ended_ms)
        box(RequestArrived(request(at, at_ms + 850, arrival_ms=at_ms)), at_ms)
        ordered(box(RequestPrepared(RequestId(at), 0), at_ms), at_ms)
    assert took_ms[0] == 60, "nothing is known of the load yet"
    assert len(took_ms) >= 198, "all but the last are answered"
    assert mean(took_ms[-100:]) <= 45


def test_cores_that_another_executors_batch_computes_on_are_not_taken() -> None:
    box = bench(with_choice(), with_choice(OTHER))
    for of in ("gate-1", "gate-2"):
        box(CameraConnected(camera(of, slo_ms=400)), 0)
    first = run_one(box, 1, 0, 70)
    second = run_one(box, 2, 1, 40, "gate-2")
    assert first.executor != second.executor
    assert (first.threads, second.threads) == (2, 2), "two of four are free, all would be needed"


def test_an_executor_with_fixed_threads_takes_its_cores_too() -> None:
    box = bench(with_choice(), replace(profile(416, OTHER, gain=0.9), core_factors={3: {}}))
    for of in ("gate-1", "gate-2"):
        box(CameraConnected(camera(of, slo_ms=400)), 0)
    executors = [run_one(box, at, at, 42, f"gate-{at}") for at in (1, 2)]
    by = {infer.executor: infer.threads for infer in executors}
    assert by == {OTHER: 0, CPU: 1}, "one core is left, and one is always had"


def test_what_fewer_threads_took_teaches_no_slowdown() -> None:
    box = bench(with_choice(sizes=(1,)))
    box(CameraConnected(camera(slo_ms=900)), 0)
    for at in range(200):
        at_ms = at * 100.0
        completed(box, run_one(box, at, at_ms, 850), at_ms, 20)
    slowdown = box.scheduler.times.latencies.slowdown(CPU)
    assert 0.95 <= slowdown <= 1.05, "60 ms on one thread are as expected"


times = st.lists(st.floats(1e6, 1e8), min_size=1, max_size=5).map(
    lambda each: sorted(each, reverse=True)
)
awaited = st.builds(Awaited, st.floats(0, 1e8), st.floats(0, 4e8), st.sampled_from((0, 1)))
FASTEST = ([8e6, 12e6], [20e6])


@given(
    times,
    st.floats(0, 2e8),
    st.floats(0, 1),
    st.lists(awaited, max_size=4),
    st.lists(awaited, max_size=3),
)
def test_the_choice_is_the_cheapest_that_does_no_harm(
    times_ns: list[float], left_ns: float, load: float, here: list[Awaited], coming: list[Awaited]
) -> None:
    here = sorted((replace(each, arrival_ns=0.0) for each in here), key=lambda e: e.deadline_ns)
    coming = sorted(coming, key=lambda each: each.deadline_ns)
    counts = [1 << at for at in range(len(times_ns))]

    def harmless(at: int) -> bool:
        # A fresh one each time: nothing is remembered from another end.
        rest = WaitingWork(here, coming, FASTEST)
        return (
            times_ns[at] <= left_ns
            and load * times_ns[at] <= times_ns[-1]
            and rest.clears(0, times_ns[at])
        )

    chosen = choose_cores(left_ns, times_ns, counts, load, WaitingWork(here, coming, FASTEST))
    allowed = [at for at in range(len(counts)) if harmless(at)]
    if not allowed:
        assert chosen == len(counts) - 1
    else:
        assert chosen in allowed
        assert counts[chosen] * times_ns[chosen] == min(counts[at] * times_ns[at] for at in allowed)
