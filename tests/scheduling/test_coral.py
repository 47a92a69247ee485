"""CORAL: slots by a hand-worked example, slots of any models, and the policy in its slots."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import DropReason, RequestId
from edgebox.scheduling.actions import Drop, Finish, Infer
from edgebox.scheduling.baselines.coral import IDLE_NS, SCALE_INTERVAL_NS, Coral
from edgebox.scheduling.baselines.coral_plan import (
    ModelDemand,
    Slot,
    Stream,
    batch_size,
    place,
    plan_streams,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    RequestArrived,
    RequestPrepared,
)
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler import SchedulerParameters
from tests.scheduling.scene import CPU, MS, Bench, camera, infers, name, profile, request

A, B = ExecutorId("cuda:0/0"), ExecutorId("cuda:0/1")


def demand(
    of: str, rate_hz: float, slo_ms: int, times_ms: dict[int, int], *executors: ExecutorId
) -> ModelDemand:
    """Return the demand of a model whose requests come evenly."""
    batches = tuple((size, ms * MS) for size, ms in times_ms.items())
    on = dict.fromkeys(executors or (A,), batches)
    return ModelDemand(VariantName(of), rate_hz, 0.0, slo_ms * MS, on)


def slot(of: str, start_ms: int, length_ms: int, size: int, on: ExecutorId = A) -> Slot:
    return Slot(on, VariantName(of), start_ms * MS, length_ms * MS, size)


def test_a_plan_worked_by_hand() -> None:
    # Duty cycles: detector 100 ms, plates 150 ms, colours 200 ms.
    # Detector: 80 req/s are 8 a cycle; 1: 20 ms, 4: 40 ms, 8: 70 ms -> 8 in 70 ms answers most per
    # second (114 against 100 and 50). It sets the first stream's cycle to 100 ms, of which 30 ms
    # are left. Plates: 40 req/s are 6 in 150 ms; 4 in 25 ms answer 160 per second, 8 in 45 ms only
    # 133 of the 6. 25 ms fit best in the 30 ms. There they serve 4 in 100 ms, 6 in 150 ms: enough.
    # Colours: 20 req/s are 4 in 200 ms; 4 in 10 ms do not fit in the 5 ms left, so they open the
    # second stream, with a cycle of 200 ms.
    detector = demand("detector", 80, 200, {1: 20, 4: 40, 8: 70}, A, B)
    plates = demand("plates", 40, 300, {1: 10, 4: 25, 8: 45}, A, B)
    colours = demand("colours", 20, 400, {1: 6, 4: 10}, A, B)
    assert [batch_size(each) for each in (detector, plates, colours)] == [8, 4, 4]
    streams = plan_streams([A, B], [colours, plates, detector])
    assert streams[A] == Stream(
        A, 100 * MS, [slot("detector", 0, 70, 8), slot("plates", 70, 25, 4)]
    )
    assert streams[B] == Stream(B, 200 * MS, [slot("colours", 0, 10, 4, B)])


def test_a_batch_that_fits_nowhere_becomes_smaller() -> None:
    detector = demand("detector", 100, 200, {1: 20, 8: 85})
    plates = demand("plates", 40, 300, {1: 10, 4: 25})
    streams = plan_streams([A], [detector, plates])
    assert streams[A].slots == [slot("detector", 0, 85, 8), slot("plates", 85, 10, 1)]


def test_bursts_get_room() -> None:
    even = demand("even", 40, 200, {1: 20, 4: 30, 8: 40})
    assert batch_size(even) == 4
    assert batch_size(replace(even, burstiness=2.0)) == 8, "4 a cycle, and twice the root of 4"


def test_a_model_that_is_too_slow_for_its_deadline_gets_no_slot() -> None:
    streams = plan_streams([A], [demand("slow", 10, 100, {1: 101})])
    assert streams[A].slots == []
    streams = plan_streams([A], [demand("some are in time", 10, 100, {1: 60, 2: 70})])
    assert (streams[A].duty_ns, streams[A].slots) == (
        60 * MS, [slot("some are in time", 0, 60, 1)]
    )  # fmt: skip


models = st.builds(
    lambda rate_hz, burstiness, slo_ms, base_ms, per_ms, executors: (
        rate_hz, burstiness, slo_ms * MS,
        dict.fromkeys(
            executors, tuple((n, (base_ms + per_ms * n) * MS) for n in (1, 2, 4, 8))
        ),
    ),
    st.floats(0.1, 400), st.floats(0, 4), st.integers(20, 1000), st.integers(0, 40),
    st.integers(1, 40), st.sets(st.sampled_from([A, B]), min_size=1),
)  # fmt: skip


@given(st.lists(models, max_size=6), st.lists(st.integers(0, 5), max_size=4))
def test_slots_do_not_overlap_and_hold_every_deadline(
    drawn: list[tuple[float, float, int, dict[ExecutorId, tuple[tuple[int, int], ...]]]],
    more: list[int],
) -> None:
    demands = [ModelDemand(VariantName(f"m{at}"), *of) for at, of in enumerate(drawn)]
    streams = plan_streams([A, B], demands)
    by_name = {each.variant: each for each in demands}
    for at in more:
        if demands:
            place(streams.values(), demands[at % len(demands)], 8)
    for executor, stream in streams.items():
        ends = 0
        for each in stream.slots:
            assert each.executor == executor
            assert ends <= each.start_ns < each.end_ns <= stream.duty_ns
            ends = each.end_ns
            of = by_name[each.variant]
            assert (each.batch_size, each.length_ns) in of.batches[executor]
            # A request that just missed its slot waits a cycle for the next, and rides in it.
            if each.length_ns <= of.slo_ns // 2:
                assert stream.duty_ns <= of.slo_ns // 2
                assert stream.duty_ns + each.length_ns <= of.slo_ns
            assert each.length_ns <= of.slo_ns
    for of in demands:
        slots = [s for stream in streams.values() for s in stream.slots if s.variant == of.variant]
        fits = any(ns <= of.duty_ns for times in of.batches.values() for _, ns in times)
        if len(demands) == 1 and fits:
            assert slots


@given(st.lists(models, min_size=1, max_size=5))
def test_a_slot_given_back_leaves_the_others(
    drawn: list[tuple[float, float, int, dict[ExecutorId, tuple[tuple[int, int], ...]]]],
) -> None:
    demands = [ModelDemand(VariantName(f"m{at}"), *of) for at, of in enumerate(drawn)]
    streams = plan_streams([A, B], demands)
    before = {executor: list(stream.slots) for executor, stream in streams.items()}
    added = place(streams.values(), demands[0], 8)
    if added is not None:
        streams[added.executor].remove(added)
    assert {executor: stream.slots for executor, stream in streams.items()} == before


def bench_of(*pixels: int, streams: int = 1, k: float = 0.0) -> tuple[Bench, Coral]:
    policy = Coral()
    profiles = [
        replace(profile(px, ExecutorId(f"cpu/{at}"), gain=0.9), interference=k)
        for at in range(streams)
        for px in pixels
    ]
    parameters = SchedulerParameters(sample_share=0.0, prepare_initial_ns=0)
    bench = Bench(profiles, parameters=parameters, policy=policy)
    bench(CameraConnected(camera(slo_ms=2000)), 0)
    return bench, policy


def test_a_request_waits_for_its_slot_and_is_refused_if_none_is_in_time() -> None:
    bench, policy = bench_of(416, 608)

    def come(at: int, at_ms: float, slo_ms: float, px: int) -> list[Infer]:
        wanted = replace(request(at, at_ms + slo_ms, arrival_ms=at_ms), variant=name(px))
        bench(RequestArrived(wanted), at_ms)
        return infers(bench(RequestPrepared(RequestId(at), 0), at_ms))

    (infer,) = come(1, 0, 400, 416)
    bench(BatchCompleted(CPU, infer.batch, 20 * MS), 20)
    (infer,) = come(2, 20, 800, 608) or come_later(bench)
    (stream,) = policy.streams.values()
    by_variant = {each.variant: each for each in stream.slots}
    assert set(by_variant) == {name(416), name(608)}
    began_ms = policy._epoch_ns / MS
    done_ms = began_ms + by_variant[name(608)].start_ns / MS + 40
    bench(BatchCompleted(CPU, infer.batch, 40 * MS), max(done_ms, 60))
    # The slot of 608 is over until the next cycle, 200 ms after the last began.
    now_ms = max(done_ms, 60) + 30
    next_ms = began_ms + stream.duty_ns / MS + by_variant[name(608)].start_ns / MS
    assert come(3, now_ms, 2 * stream.duty_ns / MS, 608) == []
    assert bench.scheduler.next_wakeup_ns() is not None
    # The next slot with room begins in time, but a batch takes 40 ms.
    late = replace(request(4, next_ms + 39, arrival_ms=now_ms), variant=name(608))
    drops = [each for each in bench(RequestArrived(late), now_ms) if isinstance(each, Drop)]
    assert drops == [Drop(RequestId(4), DropReason.QUEUE, Cause.EXPIRED)]
    (infer,) = infers(bench(None, next_ms))
    assert infer.requests == (RequestId(3),)


def come_later(bench: Bench) -> list[Infer]:
    """Let time pass until a batch starts."""
    for _ in range(9):
        due_ns = bench.scheduler.next_wakeup_ns()
        assert due_ns is not None
        if started := infers(bench(None, due_ns / MS)):
            return started
    raise AssertionError("nothing starts")


@pytest.mark.parametrize(("k", "used"), [(0.0, 2), (1.0, 1)])
def test_as_many_streams_as_may_run_at_once(k: float, used: int) -> None:
    bench, policy = bench_of(128, streams=2, k=k)
    bench(RequestArrived(replace(request(1, 300), variant=name(128))), 0)
    assert len(policy.streams) == used


def test_another_slot_where_the_queue_grows_and_back_when_idle() -> None:
    bench, policy = bench_of(128, 608)
    bench(RequestArrived(replace(request(0, 400), variant=name(608))), 0)
    for at in range(1, 30):
        bench(RequestArrived(replace(request(at, 400), variant=name(128))), 1)

    def slots() -> int:
        return sum(s.variant == name(128) for of in policy.streams.values() for s in of.slots)

    before = slots()
    at_ms = 1 + SCALE_INTERVAL_NS / MS
    # The plan is renewed at the same time as queues are looked at: only the latter is tested.
    policy._planned_ns = round(at_ms * MS)
    bench(RequestArrived(replace(request(40, at_ms + 400), variant=name(128))), at_ms)
    assert slots() == before + 1
    at_ms += (IDLE_NS + SCALE_INTERVAL_NS) / MS + 1
    policy._planned_ns = round(at_ms * MS)
    bench(RequestArrived(replace(request(41, at_ms + 400), variant=name(608))), at_ms)
    assert slots() == before


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.6, 1.0]), st.integers(1, 3))
def test_every_batch_starts_in_a_slot_of_its_model_and_every_request_ends_once(
    seed: int, k: float, streams: int
) -> None:
    rng = random.Random(seed)
    bench, policy = bench_of(128, 416, streams=streams, k=k)
    slowed = 1 + k * (bench.scheduler.times.latencies.batches_at_once - 1)
    ends: dict[int, int] = {}
    running: list[tuple[int, Infer]] = []
    arrivals = sorted(rng.randrange(0, 3_000) * MS for _ in range(rng.randrange(1, 200)))
    coming = [
        replace(
            request(at, ns / MS + rng.choice([60, 200, 500]), arrival_ms=ns / MS),
            variant=name(rng.choice([128, 416])),
        )
        for at, ns in enumerate(arrivals)
    ]

    def tell(event: object, now_ns: int) -> None:
        for action in bench.scheduler.handle(event, now_ns):  # type: ignore[arg-type]
            if isinstance(action, Infer):
                stream = policy.streams[action.executor]
                at_ns = (now_ns - policy._epoch_ns) % stream.duty_ns
                (slot,) = (s for s in stream.slots if s.start_ns <= at_ns < s.end_ns)
                assert slot.variant == action.variant
                assert len(action.requests) <= slot.batch_size
                took_ns = bench.scheduler.times.latencies.row(
                    action.executor, action.variant, len(policy.streams) - 1
                )
                assert took_ns is not None
                takes_ns = took_ns.median_ns[took_ns.sizes.index(action.batch_size)]
                assert at_ns + takes_ns <= slot.end_ns
                running.append((now_ns + round(takes_ns), action))
            if isinstance(action, Drop | Finish):
                ends[action.request] = ends.get(action.request, 0) + 1

    while coming or running or bench.scheduler.queue_length:
        running.sort(key=lambda each: each[0])
        due = [bench.scheduler.next_wakeup_ns()]
        due += [running[0][0]] if running else []
        due += [coming[0].arrival_ns] if coming else []
        now_ns = max(bench.scheduler._now_ns, min(at for at in due if at is not None))
        if running and running[0][0] <= now_ns:
            _, done = running.pop(0)
            took_ns = round(10 * MS * slowed)
            tell(BatchCompleted(done.executor, done.batch, took_ns), now_ns)
        elif coming and coming[0].arrival_ns <= now_ns:
            new = coming.pop(0)
            tell(RequestArrived(new), now_ns)
            tell(RequestPrepared(new.id, 0), now_ns)
        else:
            tell(None, now_ns)
    assert sorted(ends) == list(range(len(arrivals)))
    assert set(ends.values()) == {1}
