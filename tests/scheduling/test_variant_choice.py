"""Requests run on smaller variants where they would miss, on larger ones where executors idle."""

import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.requests import DropReason, RequestId
from edgebox.scheduling.actions import Action, Drop, Prepare
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    RequestArrived,
    RequestPrepared,
    RequestSampled,
)
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import SchedulerParameters
from edgebox.scheduling.variant_choice import (
    ExecutorTimes,
    WaitingRequest,
    answered,
    choose_variants,
)
from tests.scheduling.scene import (
    ACCURACY,
    CPU,
    LARGE,
    MEDIAN_MS,
    MS,
    SPREAD,
    Bench,
    camera,
    infers,
    name,
    profile,
    request,
    row,
)

ACCURACIES = {name(px): accuracy for px, accuracy in ACCURACY.items()}


def times(*sides: int, gain: float = 0.0, sizes: int = 4) -> dict[VariantName, list[float]]:
    return {name(px): [MEDIAN_MS[px] * (1 + n * (1 - gain)) for n in range(sizes)] for px in sides}


def executor(*sides: int, free: float = 0, gain: float = 0.0, sizes: int = 4) -> ExecutorTimes:
    """Return an executor; here a unit of time is a millisecond."""
    return ExecutorTimes(free, times(*sides, gain=gain, sizes=sizes))


def waiting(due: int, *sides: int) -> WaitingRequest:
    return WaitingRequest(due, tuple(map(name, sides)))


def chosen(requests: list[WaitingRequest], *executors: ExecutorTimes) -> list[int]:
    """Return the side that each request runs on."""
    found = choose_variants(requests, executors, ACCURACIES)
    names = [of.variants[at] for of, at in zip(requests, found, strict=True)]
    return [int(each.removeprefix("street-")) for each in names]


def test_what_is_in_time_anyway_stays() -> None:
    requests = [waiting(40, 608, 416), waiting(80, 608, 416), waiting(120, 608, 416)]
    assert chosen(requests, executor(608, 416)) == [608, 608, 608]


def test_the_first_are_moved_and_no_more_than_needed() -> None:
    requests = [waiting(100, 608, 416, 128) for _ in range(3)]
    # 40 + 40 + 20: the first alone makes room for the other two.
    assert chosen(requests, executor(608, 416, 128)) == [416, 608, 608]


def test_the_cheapest_accuracy_goes_first() -> None:
    # From 608 to 416 costs .0015 for each ms, from 320 to 256 .0175.
    requests = [waiting(50, 320, 256), waiting(50, 608, 416)]
    assert chosen(requests, executor(608, 416, 320, 256)) == [320, 416]


def test_a_request_that_only_a_smaller_variant_can_answer_runs_there_alone() -> None:
    requests = [waiting(25, 608, 416, 128), waiting(65, 608, 416, 128)]
    assert chosen(requests, executor(608, 416, 128)) == [416, 608]


def test_what_nothing_can_save_changes_nothing_for_others() -> None:
    requests = [waiting(1, 608, 128), waiting(45, 608, 128)]
    assert chosen(requests, executor(608, 128)) == [128, 608]


def test_busy_executors_count_from_when_they_are_free() -> None:
    requests = [waiting(90, 608, 416), waiting(90, 608, 416)]
    assert chosen(requests, executor(608, 416)) == [608, 608]
    assert chosen(requests, executor(608, 416, free=30)) == [416, 608]
    assert chosen(requests, executor(608, 416, free=30), executor(608, 416)) == [608, 608]


def test_only_variants_that_an_executor_has_are_chosen() -> None:
    requests = [waiting(100, 608, 416, 256) for _ in range(3)]
    assert chosen(requests, executor(608, 256)) == [256, 608, 608]


SIDES = [(608, 416, 128), (416, 256), (320,), (608, 256, 128)]


def best_of_all(requests: list[WaitingRequest], executors: list[ExecutorTimes]) -> int:
    """Return how many requests the best of all choices answers."""
    every = product(*(range(len(each.variants)) for each in requests))
    return max(answered(requests, each, executors) for each in every)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 160), st.sampled_from(SIDES)), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.sampled_from([0, 10, 35]), st.sampled_from([0.0, 0.5, 0.9])),
        min_size=1,
        max_size=2,
    ),
)
def test_no_fewer_are_answered_than_without_steps_or_with_all(
    of: list[tuple[int, tuple[int, ...]]], on: list[tuple[int, float]]
) -> None:
    requests = [waiting(due, *sides) for due, sides in sorted(of)]
    executors = [executor(*MEDIAN_MS, free=free, gain=gain) for free, gain in on]
    found = choose_variants(requests, executors, ACCURACIES)
    assert all(0 <= at < len(of.variants) for at, of in zip(found, requests, strict=True))
    count = answered(requests, found, executors)
    assert count <= best_of_all(requests, executors)
    assert count >= answered(requests, [0] * len(requests), executors)
    smallest = [len(each.variants) - 1 for each in requests]
    assert count >= answered(requests, smallest, executors)


def test_nearly_always_as_many_are_answered_as_by_the_best_of_all_choices() -> None:
    rng, found = random.Random(1), Counter[int]()
    for _ in range(1500):
        drawn = sorted((rng.randint(1, 160), rng.choice(SIDES)) for _ in range(rng.randint(1, 5)))
        requests = [waiting(due, *sides) for due, sides in drawn]
        executors = [
            executor(*MEDIAN_MS, free=rng.choice((0, 10, 35)), gain=rng.choice((0.0, 0.5, 0.9)))
            for _ in range(rng.randint(1, 2))
        ]
        count = answered(requests, choose_variants(requests, executors, ACCURACIES), executors)
        found[best_of_all(requests, executors) - count] += 1
    assert found[0] >= 0.995 * found.total(), found


class Burst:
    """Eight frames that come together, 20 ms each on the variant that admission chooses."""

    def __init__(self, *, per_batch: bool, min_accuracy: float = 0.0) -> None:
        parameters = SchedulerParameters(
            first_pixels_max=LARGE, variant_per_batch=per_batch, prepare_initial_ns=0
        )
        self.bench = Bench(parameters=parameters, policy=make_policy("adaptive"))
        self.bench(CameraConnected(camera(slo_ms=150, min_accuracy=min_accuracy)), 0)
        self.ran: list[VariantName] = []
        self.dropped: list[DropReason] = []

    def play(self, count: int = 8, size: tuple[int, int] = (608, 342)) -> None:
        now_ms = 0.0
        frames = [request(at, 110, size=size) for at in range(count)]
        for frame in frames:
            self._note(self.bench(RequestArrived(frame), now_ms))
        for frame in frames:
            self._note(self.bench(RequestPrepared(frame.id, 0), now_ms))
        while (running := self.bench.scheduler.running.get(CPU)) is not None:
            sides = int(running.variant.removeprefix("street-"))
            took_ms = MEDIAN_MS[sides] * len(running.requests)
            now_ms += took_ms
            self._note(self.bench(BatchCompleted(CPU, running.batch, took_ms * MS), now_ms))

    def _note(self, actions: list[Action]) -> None:
        self.ran += [infer.variant for infer in infers(actions) for _ in infer.requests]
        self.dropped += [action.reason for action in actions if isinstance(action, Drop)]


def test_a_burst_is_answered_on_smaller_variants_instead_of_being_dropped() -> None:
    plain, chosen_per_batch = Burst(per_batch=False), Burst(per_batch=True)
    plain.play()
    chosen_per_batch.play()
    assert len(plain.dropped) >= 2
    assert set(plain.ran) == {name(416)}
    assert chosen_per_batch.dropped == []
    assert chosen_per_batch.ran.count(name(416)) >= 2, "no more are moved than needed"


def test_a_bad_minute_of_one_size_is_none_of_the_sizes_below() -> None:
    burst = Burst(per_batch=True)
    for px, took_ms in ((416, 20), (320, 12), (128, 2)):
        for at in range(100):
            late = 20 if px == 416 and at % 20 == 0 else 1
            burst.bench(RequestSampled(CPU, name(px), "default", late * took_ms * MS), 0)
    burst.play(1, (416, 234))
    assert burst.ran == [name(320)], "416 px takes too long in one of twenty cases"


def test_no_burst_lowers_the_least_accuracy_of_a_camera() -> None:
    burst = Burst(per_batch=True, min_accuracy=0.55)
    burst.play()
    assert burst.ran
    assert min(ACCURACIES[each] for each in burst.ran) >= 0.55
    assert burst.dropped


class Idle:
    """Cameras whose first variant is 320 px, less accurate than one asks; an idle executor."""

    def __init__(self, *, tightest_ms: int = 150, per_batch: bool = True) -> None:
        parameters = SchedulerParameters(
            first_pixels_max=320 * 320, variant_per_batch=per_batch, prepare_initial_ns=0
        )
        self.bench = Bench(parameters=parameters, policy=make_policy("adaptive"))
        gate = camera("gate", slo_ms=150, min_accuracy=0.55, size=(1280, 1280))
        self.bench(CameraConnected(gate), 0)
        self.bench(CameraConnected(camera("yard", slo_ms=tightest_ms)), 0)

    def arrives(self, at: int, size: tuple[int, int], *, by_ms: float = 140) -> VariantName:
        """Return the variant that a frame is prepared for."""
        frame = request(at, by_ms, of="gate", size=size)
        (prepare,) = (
            action for action in self.bench(RequestArrived(frame), 0) if isinstance(action, Prepare)
        )
        return prepare.variant


@pytest.mark.parametrize(
    ("size", "px"), [((320, 180), 320), ((400, 225), 416), ((416, 234), 416), ((1280, 720), 608)]
)
def test_an_idle_executor_runs_the_largest_variant_that_the_picture_has_the_pixels_for(
    size: tuple[int, int], px: int
) -> None:
    assert Idle().arrives(1, size) == name(px)
    assert Idle(per_batch=False).arrives(1, size) == name(320)


def test_a_larger_variant_leaves_half_of_the_shortest_deadline_to_others() -> None:
    # P99: 608 px take 60 ms, 416 px take 30 ms, 320 px 18 ms.
    assert Idle(tightest_ms=121).arrives(1, (1280, 720)) == name(608)
    assert Idle(tightest_ms=119).arrives(1, (1280, 720)) == name(416)
    assert Idle(tightest_ms=59).arrives(1, (1280, 720)) == name(320)


def test_a_larger_variant_answers_in_time() -> None:
    assert Idle().arrives(1, (1280, 720), by_ms=61) == name(608)
    assert Idle().arrives(1, (1280, 720), by_ms=59) == name(416)


def test_only_a_frame_that_finds_an_executor_idle_runs_on_a_larger_variant() -> None:
    box = Idle()
    assert box.arrives(1, (1280, 720)) == name(608)
    actions = box.bench(RequestPrepared(RequestId(1), 0), 0)
    assert [infer.variant for infer in infers(actions)] == [name(608)]
    assert box.arrives(2, (1280, 720)) == name(320), "the executor is busy"


def test_a_frame_that_was_to_run_larger_runs_on_its_own_variant_if_others_wait() -> None:
    box = Idle()
    assert box.arrives(1, (1280, 720)) == name(608)
    box.arrives(2, (320, 180))
    actions = box.bench(RequestPrepared(RequestId(1), 0), 0)
    assert [infer.variant for infer in infers(actions)] == [name(320)]


@pytest.mark.parametrize(
    ("by_ms", "prepared", "ran_on"), [(140, 608, 608), (70, 608, 416), (45, 416, 320)]
)
def test_a_frame_that_was_to_run_larger_runs_on_what_is_still_in_time(
    by_ms: float, prepared: int, ran_on: int
) -> None:
    box = Idle()
    assert box.arrives(1, (1280, 720), by_ms=by_ms) == name(prepared)
    for at in (2, 3):
        box.arrives(at, (320, 180), by_ms=40)
        box.bench(RequestPrepared(RequestId(at), 0), 0)
    assert box.bench(RequestPrepared(RequestId(1), 0), 0) == []
    ran: list[VariantName] = []
    for at_ms in (12, 24):  # each of the others takes as long as expected
        (running,) = box.bench.scheduler.running.values()
        assert running.variant == name(320)
        ended = box.bench(BatchCompleted(CPU, running.batch, 12 * MS), at_ms)
        ran += [infer.variant for infer in infers(ended) if RequestId(1) in infer.requests]
    assert ran == [name(ran_on)]


def test_a_frame_that_is_tried_though_it_expired_is_never_moved() -> None:
    """No policy has it any more. A smaller variant could still answer it once its executor is free.

    The frame waits for 416 px on one executor while the device is busy with the other, which alone
    has 128 px and ends 90 ms before it is expected to.
    """
    first, second = ExecutorId("cuda:0/0"), ExecutorId("cuda:0/1")
    long = LatencyProfile(name(608), first, {1: row(100)})
    parameters = SchedulerParameters(
        first_pixels_max=LARGE, prepare_initial_ns=0, concurrent_batches=1
    )
    box = Bench([long, profile(128, first), profile(416, second)], parameters)
    box(CameraConnected(camera("gate")), 0)
    box(RequestArrived(request(1, 500, of="http", variant=name(608))), 0)
    (running,) = infers(box(RequestPrepared(RequestId(1), 0), 0))
    assert running.executor == first
    (prepare,) = box(RequestArrived(request(2, 25, of="gate")), 0)
    assert prepare == Prepare(RequestId(2), name(416))
    assert box(RequestPrepared(RequestId(2), 0), 0) == []
    expired_ms = 25 - 20 * SPREAD[0] + 1
    trials = box.scheduler._trials
    assert trials.request is None
    assert box(None, expired_ms) == []
    assert trials.request is not None and trials.request.id == RequestId(2)
    ended = box(BatchCompleted(first, running.batch, 10 * MS), expired_ms + 1)
    (tried,) = infers(ended)
    assert (tried.executor, tried.variant, tried.requests) == (second, name(416), (RequestId(2),))
