"""The Scheduler by example: who is admitted, on what, what runs, how it ends."""

import pytest

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Assignment, Plan
from edgebox.domain.requests import BatchId, CameraId, DropReason, Outcome, RequestId
from edgebox.scheduling.actions import Action, Drop, Finish, Infer, Prepare
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraConnected,
    CameraDisconnected,
    ExecutorStarted,
    ExecutorStopped,
    PlanComputed,
    RequestArrived,
    RequestPrepared,
    RequestRejected,
    ShutdownRequested,
    VariantsAvailable,
)
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler import SchedulerParameters
from tests.scheduling.scene import (
    CPU,
    FAMILY,
    LARGE,
    MS,
    Bench,
    camera,
    infers,
    name,
    profile,
    request,
)

ONE, TWO, THREE = RequestId(1), RequestId(2), RequestId(3)


def opened(parameters: SchedulerParameters | None = None, **what: object) -> Bench:
    bench = Bench(parameters=parameters)
    bench(CameraConnected(camera(**what)), 0)  # type: ignore[arg-type]
    return bench


def decisions(actions: list[Action]) -> list[Action]:
    return [a for a in actions if isinstance(a, (Prepare, Infer, Finish, Drop))]


def test_the_life_of_a_request() -> None:
    bench = opened()
    assert bench(RequestArrived(request(1, 250, size=(608, 342))), 10) == [Prepare(ONE, name(608))]
    assert bench.scheduler.queue_length == 1
    infer = Infer(CPU, BatchId(1), name(608), (ONE,), 1)
    assert decisions(bench(RequestPrepared(ONE, 3 * MS), 13)) == [infer]
    assert bench.scheduler.running == {CPU: infer}
    assert bench.scheduler.queue_length == 0
    done = bench(BatchCompleted(CPU, BatchId(1), 40 * MS), 54)
    assert decisions(done) == [Finish(ONE, BatchId(1), Outcome.ON_TIME)]
    assert bench.scheduler.running == {}


def test_an_answer_at_the_deadline_is_on_time_and_after_it_is_late() -> None:
    for late_ns, outcome in [(0, Outcome.ON_TIME), (1, Outcome.LATE)]:
        bench = opened()
        bench(RequestArrived(request(1, 250)), 10)
        bench(RequestPrepared(ONE, 3 * MS), 13)
        done = bench.scheduler.handle(BatchCompleted(CPU, BatchId(1), 200 * MS), 250 * MS + late_ns)
        assert decisions(done) == [Finish(ONE, BatchId(1), outcome)]


@pytest.mark.parametrize(
    ("sent", "runs_on"),
    [((608, 342), 608), ((1280, 720), 608), ((416, 234), 416), ((300, 200), 320), ((9, 9), 128)],
)
def test_a_picture_runs_on_what_covers_it_at_most(sent: tuple[int, int], runs_on: int) -> None:
    bench = opened()
    assert bench(RequestArrived(request(1, 250, size=sent)), 0) == [Prepare(ONE, name(runs_on))]


@pytest.mark.parametrize(
    ("deadline_ms", "runs_on"),
    # Decoding is taken to cost 4 ms, a batch its median: 2, 8, 12, 20, 40 ms. Of the smallest, with
    # nothing smaller to run instead, its low quantile: 1.8 ms.
    [(44, 608), (43.9, 416), (24, 416), (23, 320), (12, 256), (11, 128), (5.8, 128), (5.7, None)],
)
def test_with_little_time_left_a_smaller_variant_is_tried(
    deadline_ms: float, runs_on: int | None
) -> None:
    bench = opened(SchedulerParameters(first_pixels_max=LARGE, sample_share=0))
    actions = bench(RequestArrived(request(1, deadline_ms, size=(608, 342))), 0)
    if runs_on is None:
        assert actions == [Drop(ONE, DropReason.INFEASIBLE, Cause.REFUSED)]
    else:
        assert actions == [Prepare(ONE, name(runs_on))]


def test_no_smaller_variant_than_the_asked_accuracy_allows() -> None:
    bench = opened(min_accuracy=0.5)
    assert bench(RequestArrived(request(1, 23, size=(608, 342))), 0) == [Prepare(ONE, name(320))]
    actions = bench(RequestArrived(request(2, 14.7, size=(608, 342))), 0)
    assert actions == [Drop(TWO, DropReason.INFEASIBLE, Cause.REFUSED)]
    small = bench(RequestArrived(request(3, 250, size=(100, 100))), 0)
    assert small == [Prepare(THREE, name(320))]


@pytest.mark.parametrize(
    ("advised", "plan", "size", "deadline_ms", "runs_on"),
    [
        (608, 256, (608, 342), 250, 608),  # lowered: what was on its way still gets all it is for
        (256, 608, (256, 144), 250, 256),  # raised: the picture has no more to show
        (608, 256, (608, 342), 30, 416),  # unless there is no time for it
        (608, 256, (256, 144), 250, 256),  # or it was sent smaller
        (999, 256, (608, 342), 250, 256),  # or the variant is gone
        (None, 256, (608, 342), 250, 256),  # nothing is known of what it was made for
    ],
)
def test_frames_in_flight_finish_on_the_variant_they_were_made_for(
    advised: int | None, plan: int, size: tuple[int, int], deadline_ms: int, runs_on: int
) -> None:
    bench = opened(SchedulerParameters(first_pixels_max=LARGE, variant_per_batch=False))
    assignment = Assignment(CameraId("gate-1"), name(plan), 10, 85, True, "because")
    bench(PlanComputed(Plan(0, {assignment.camera: assignment})), 0)
    variant = None if advised is None else name(advised)
    frame = request(1, deadline_ms, size=size, advised=variant)
    assert decisions(bench(RequestArrived(frame), 0)) == [Prepare(ONE, name(runs_on))]


def test_a_plan_changes_nothing_for_frames_that_are_at_the_box() -> None:
    bench = opened()
    bench(RequestArrived(request(1, 250, size=(608, 342))), 0)
    assignment = Assignment(CameraId("gate-1"), name(128), 10, 85, True, "because")
    bench(PlanComputed(Plan(0, {assignment.camera: assignment})), 1)
    assert infers(bench(RequestPrepared(ONE, MS), 2)) == [
        Infer(CPU, BatchId(1), name(608), (ONE,), 1)
    ]


def test_one_shot_requests_need_no_camera_and_run_on_exactly_their_variant() -> None:
    bench = Bench()
    sent = request(1, 250, of="http", size=(9, 9), variant=name(416))
    assert bench(RequestArrived(sent), 0) == [Prepare(ONE, name(416))]
    late = request(2, 10, of="http", variant=name(416))
    assert bench(RequestArrived(late), 0) == [Drop(TWO, DropReason.INFEASIBLE, Cause.REFUSED)]
    unknown = request(3, 250, of="http", variant=VariantName("nothing"))
    assert bench(RequestArrived(unknown), 0) == [Drop(THREE, DropReason.INFEASIBLE, Cause.REFUSED)]
    assert bench(RequestPrepared(ONE, MS), 1) == [Infer(CPU, BatchId(1), name(416), (ONE,), 1)]


def test_a_camera_that_never_said_hello_is_not_served() -> None:
    assert Bench()(RequestArrived(request(1, 250)), 0) == [
        Drop(ONE, DropReason.DEPARTED, Cause.REFUSED)
    ]


def test_of_too_many_frames_of_one_camera_the_oldest_goes() -> None:
    bench = opened(SchedulerParameters(camera_pending_max=2, first_pixels_max=LARGE))
    bench(RequestArrived(request(1, 250)), 0)
    bench(RequestArrived(request(2, 250)), 0)
    assert decisions(bench(RequestArrived(request(3, 250)), 1)) == [
        Drop(ONE, DropReason.OVERLOAD, Cause.DISPLACED),
        Prepare(THREE, name(416)),
    ]
    # What runs does not count.
    bench(RequestPrepared(TWO, MS), 2)
    assert decisions(bench(RequestArrived(request(4, 250)), 3)) == [
        Prepare(RequestId(4), name(416))
    ]


def test_a_full_box_refuses_whoever_has_nothing_to_give_up() -> None:
    bench = opened(SchedulerParameters(box_pending_max=2, first_pixels_max=LARGE))
    bench(CameraConnected(camera("gate-2")), 0)
    bench(RequestArrived(request(1, 250)), 0)
    bench(RequestArrived(request(2, 250, of="http", variant=name(128))), 0)
    refused = bench(RequestArrived(request(3, 250, of="gate-2")), 0)
    assert refused == [Drop(THREE, DropReason.OVERLOAD, Cause.REFUSED)]
    one_shot = bench(RequestArrived(request(4, 250, of="http", variant=name(128))), 0)
    assert one_shot == [Drop(RequestId(4), DropReason.OVERLOAD, Cause.REFUSED)]
    newer = bench(RequestArrived(request(5, 250)), 0)
    assert newer == [
        Drop(ONE, DropReason.OVERLOAD, Cause.DISPLACED),
        Prepare(RequestId(5), name(416)),
    ]


def test_a_waiting_request_is_dropped_the_moment_it_is_lost_and_not_before() -> None:
    bench = opened(SchedulerParameters(first_pixels_max=LARGE, variant_per_batch=False))
    bench(RequestArrived(request(1, 100)), 0)
    bench(RequestArrived(request(2, 100)), 0)
    bench(RequestPrepared(ONE, 3 * MS), 4)  # runs, so the other waits
    bench(RequestPrepared(TWO, 3 * MS), 4)
    # 416 px takes 18 ms at its quickest (P5).
    lost_ns = 82 * MS + 1
    bench.scheduler.handle(None, lost_ns - 1)
    assert bench.scheduler.queue_length == 1
    assert bench.scheduler.next_wakeup_ns() == lost_ns
    # The plan is due first, but nobody answers this test's ComputePlan.
    assert decisions(bench.scheduler.handle(None, lost_ns)) == [
        Drop(TWO, DropReason.QUEUE, Cause.EXPIRED)
    ]
    assert bench.scheduler.queue_length == 0


def test_what_is_dropped_while_being_decoded_stays_dropped() -> None:
    bench = opened()
    bench(RequestArrived(request(1, 100)), 0)
    assert decisions(bench(None, 99)) == [Drop(ONE, DropReason.QUEUE, Cause.EXPIRED)]
    assert decisions(bench(RequestPrepared(ONE, 99 * MS), 99)) == []
    assert decisions(bench(RequestRejected(ONE), 99)) == []


def test_a_picture_that_cannot_be_decoded_is_invalid() -> None:
    bench = opened()
    bench(RequestArrived(request(1, 100)), 0)
    assert decisions(bench(RequestRejected(ONE), 1)) == [
        Drop(ONE, DropReason.INVALID, Cause.REJECTED)
    ]


def test_a_camera_that_leaves_takes_its_frames_along() -> None:
    bench = opened()
    bench(CameraConnected(camera("gate-2")), 0)
    for at, of in [(1, "gate-1"), (2, "gate-1"), (3, "gate-2")]:
        bench(RequestArrived(request(at, 250, of=of)), 0)
    bench(RequestPrepared(ONE, MS), 1)
    gone = bench(CameraDisconnected(CameraId("gate-1")), 2)
    assert decisions(gone) == [Drop(TWO, DropReason.DEPARTED, Cause.DEPARTED)]
    # Even if a camera of that name comes back meanwhile.
    bench(CameraConnected(camera("gate-1")), 3)
    done = bench(BatchCompleted(CPU, BatchId(1), 20 * MS), 22)
    assert decisions(done) == [Drop(ONE, DropReason.DEPARTED, Cause.DEPARTED)]
    assert bench.scheduler.queue_length == 1


def test_a_batch_that_fails_fails_its_members_and_the_executor_goes_on() -> None:
    bench = opened()
    for at in (1, 2):
        bench(RequestArrived(request(at, 250)), 0)
        bench(RequestPrepared(RequestId(at), MS), 1)
    actions = decisions(bench(BatchFailed(CPU, BatchId(1)), 2))
    assert actions == [
        Drop(ONE, DropReason.FAILED, Cause.FAILED),
        Infer(CPU, BatchId(2), name(416), (TWO,), 1),
    ]
    assert decisions(bench(ExecutorStopped(CPU), 3)) == [Drop(TWO, DropReason.FAILED, Cause.FAILED)]
    assert decisions(bench(BatchCompleted(CPU, BatchId(2), MS), 4)) == []
    refused = bench(RequestArrived(request(3, 250)), 5)
    assert decisions(refused) == [Drop(THREE, DropReason.INFEASIBLE, Cause.REFUSED)]


def test_what_waits_for_a_lost_executor_runs_when_it_comes_back() -> None:
    bench = opened()
    bench(RequestArrived(request(1, 250)), 0)
    bench(ExecutorStopped(CPU), 1)
    bench(RequestPrepared(ONE, MS), 2)
    back = bench(ExecutorStarted(CPU, (profile(416),)), 100)
    assert infers(back) == [Infer(CPU, BatchId(1), name(416), (ONE,), 1)]


def test_two_executors_work_side_by_side() -> None:
    second = ExecutorId("cpu/1")
    bench = Bench(profiles=[profile(416), profile(416, second)])
    bench(CameraConnected(camera()), 0)
    for at in (1, 2, 3):
        bench(RequestArrived(request(at, 250)), 0)
        bench(RequestPrepared(RequestId(at), MS), 1)
    running = bench.scheduler.running
    assert {executor: infer.requests for executor, infer in running.items()} == {
        CPU: (ONE,),
        second: (TWO,),
    }


def test_a_batch_forms_where_batching_pays() -> None:
    bench = Bench(profiles=[profile(416, gain=0.9)])
    bench(CameraConnected(camera()), 0)
    for at in range(1, 5):
        bench(RequestArrived(request(at, 250 - at)), 0)
    bench(RequestPrepared(RequestId(1), MS), 1)
    for at in (2, 3, 4):
        bench(RequestPrepared(RequestId(at), MS), 1)
    done = bench(BatchCompleted(CPU, BatchId(1), 20 * MS), 21)
    latest_first = (RequestId(4), RequestId(3), RequestId(2))
    assert infers(done) == [Infer(CPU, BatchId(2), name(416), latest_first, 4)]


def test_shutdown_drops_what_waits_and_lets_finish_what_runs() -> None:
    bench = opened()
    for at in (1, 2):
        bench(RequestArrived(request(at, 250)), 0)
    bench(RequestPrepared(ONE, MS), 1)
    assert decisions(bench(ShutdownRequested(), 2)) == [
        Drop(TWO, DropReason.SHUTDOWN, Cause.SHUTDOWN)
    ]
    refused = bench(RequestArrived(request(3, 250)), 3)
    assert decisions(refused) == [Drop(THREE, DropReason.SHUTDOWN, Cause.REFUSED)]
    done = bench(BatchCompleted(CPU, BatchId(1), 20 * MS), 21)
    assert decisions(done) == [Finish(ONE, BatchId(1), Outcome.ON_TIME)]
    assert bench.scheduler.next_wakeup_ns() is None


def test_a_slow_executor_changes_what_is_feasible() -> None:
    bench = opened()
    now_ms = 0
    for at in range(1, 65):
        now_ms += 100
        bench(RequestArrived(request(at, now_ms + 400, arrival_ms=now_ms)), now_ms)
        started = infers(bench(RequestPrepared(RequestId(at), 4 * MS), now_ms + 4))
        bench(BatchCompleted(CPU, started[0].batch, 63 * MS), now_ms + 67)
    # 63 ms is three times the profile's 75 % quantile (21 ms), which holds for who is new here too.
    assert bench.scheduler.slowdown == {CPU: 3.0}
    bench(CameraConnected(camera("new", app="new")), now_ms + 100)
    tight = bench(RequestArrived(request(99, now_ms + 100 + 43, of="new", app="new")), now_ms + 100)
    assert [a for a in decisions(tight) if isinstance(a, Prepare)] == [
        Prepare(RequestId(99), name(320))
    ]
    # Left alone, the executor is trusted again after a while.
    later_ms = now_ms + 20_000
    bench(None, later_ms)
    tight = bench(RequestArrived(request(100, later_ms + 43, of="new", app="new")), later_ms)
    assert decisions(tight) == [Prepare(RequestId(100), name(416))]
    assert bench.scheduler.slowdown == {CPU: 1.0}


def test_an_idle_executor_takes_work_as_soon_as_it_is_trusted_again() -> None:
    gpu = ExecutorId("cuda:0/0")
    bench = Bench(profiles=[profile(608), profile(608, gpu)])
    at, now_ms = 0, 0
    for _ in range(64):
        now_ms += 200
        started = []
        for _ in range(2):
            at += 1
            bench(RequestArrived(request(at, now_ms + 150, variant=name(608))), now_ms)
            started += infers(bench(RequestPrepared(RequestId(at), 4 * MS), now_ms))
        for infer in started:
            took_ms = 126 if infer.executor == CPU else 42
            bench(BatchCompleted(infer.executor, infer.batch, took_ms * MS), now_ms + took_ms)
        now_ms += 130
    assert bench.scheduler.slowdown == {CPU: 3.0, gpu: 1.0}
    idle_ms = now_ms - 130 + 126
    # The GPU is busy, and the CPU (108 ms at its quickest) is lost for what has 100 ms left.
    start_ms = idle_ms + 1990
    for one, left_ms in [(1001, 90), (1002, 100)]:
        bench(RequestArrived(request(one, start_ms + left_ms, variant=name(608))), start_ms)
        bench(RequestPrepared(RequestId(one), 4 * MS), start_ms)
    assert set(bench.scheduler.running) == {gpu}
    due_ns = bench.scheduler.next_wakeup_ns()
    assert due_ns == (idle_ms + 2000) * MS
    [infer] = infers(bench(None, idle_ms + 2000))
    assert (infer.executor, infer.requests) == (CPU, (RequestId(1002),))


def test_a_duplicate_of_a_living_request_is_ignored() -> None:
    bench = opened()
    bench(RequestArrived(request(1, 250)), 0)
    assert bench(RequestArrived(request(1, 250)), 1) == []
    assert bench.scheduler.queue_length == 1


def test_a_variant_that_is_no_longer_offered_is_replaced_by_a_smaller_one() -> None:
    bench = opened()
    bench(VariantsAvailable(FAMILY[:3]), 0)
    arrived = bench(RequestArrived(request(1, 250, size=(608, 342))), 1)
    assert decisions(arrived) == [Prepare(ONE, name(320))]
