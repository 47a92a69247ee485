"""Pictures of programs beside cameras: they get the time that cameras leave; some are cancelled."""

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Assignment, Plan
from edgebox.domain.requests import CameraId, DropReason, RequestId
from edgebox.scheduling.actions import Drop, Finish
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    CameraDisconnected,
    PlanComputed,
    RequestArrived,
    RequestCancelled,
    RequestPrepared,
)
from edgebox.scheduling.request_stages import Cause
from tests.scheduling.scene import CPU, MS, Bench, camera, infers, request

SMALL = VariantName("street-128")
PROGRAM = "(one-shot)"


def single(at: int, deadline_ms: float, arrival_ms: float = 0.0) -> RequestArrived:
    return RequestArrived(
        request(at, deadline_ms, of=PROGRAM, variant=SMALL, arrival_ms=arrival_ms)
    )


def planned(bench: Bench, utilisation: float) -> None:
    """Connect a camera, and plan this share of the executors' time for it."""
    bench(CameraConnected(camera()), 0)
    name = CameraId("gate-1")
    given = Assignment(name, SMALL, 10.0, 85, served=True, reason="because")
    bench(PlanComputed(Plan(0, {name: given}, utilisation)), 0)


def refused(bench: Bench, first: int, number: int, deadline_ms: float) -> int:
    """Let pictures arrive at once; return how many are refused for want of time."""
    drops = [
        action
        for at in range(first, first + number)
        for action in bench(single(at, deadline_ms), 0)
        if isinstance(action, Drop)
    ]
    assert {(drop.reason, drop.cause) for drop in drops} <= {(DropReason.OVERLOAD, Cause.REFUSED)}
    return len(drops)


def test_beside_cameras_as_many_are_taken_as_the_time_they_leave_is_enough_for() -> None:
    taken = {}
    for share in (0.0, 0.5, 0.9):
        bench = Bench()
        planned(bench, share)
        taken[share] = 200 - refused(bench, 1, 200, 400.0)
    assert 200 >= taken[0.0] > 1.5 * taken[0.5]
    assert taken[0.5] > 3 * taken[0.9] > 0


def test_frames_of_cameras_that_wait_leave_less() -> None:
    taken = {}
    for waiting in (0, 8):
        bench = Bench()
        planned(bench, 0.5)
        for at in range(1_001, 1_001 + waiting):
            bench(RequestArrived(request(at, 400.0, of="gate-1")), 0)
        taken[waiting] = 200 - refused(bench, 1, 200, 400.0)
    assert taken[0] - 8 >= taken[8] > 0


def test_without_cameras_as_many_are_taken_as_there_is_time_for() -> None:
    bench = Bench()
    planned(bench, 0.9)
    bench(CameraDisconnected(CameraId("gate-1")), 0)
    assert refused(bench, 1, 200, 500.0) == 0


def test_what_is_hopeless_is_refused_on_arrival() -> None:
    """A batch of 16 takes 32 ms."""
    bench = Bench()
    taken = 200 - refused(bench, 1, 200, 100.0)
    assert 40 < taken < 60
    assert 200 - refused(bench, 201, 200, 50.0) > 20, "what is due later does not count"
    assert refused(bench, 401, 10, 10_000.0) == 0


def test_one_picture_is_always_taken() -> None:
    bench = Bench()
    planned(bench, 1.0)
    assert refused(bench, 1, 1, 100.0) == 0


def test_a_cancelled_picture_that_waits_is_dropped() -> None:
    bench = Bench()
    bench(single(1, 1_000), 0)
    assert bench(RequestCancelled(RequestId(1)), 1) == [
        Drop(RequestId(1), DropReason.DEPARTED, Cause.DEPARTED)
    ]
    assert bench.scheduler.queue_length == 0
    assert not any(isinstance(each, Drop) for each in bench(RequestCancelled(RequestId(1)), 2))
    assert bench.scheduler.stale_events["RequestCancelled"] == 1


def test_a_cancelled_picture_that_runs_ends_with_its_batch() -> None:
    bench = Bench()
    bench(single(1, 1_000), 0)
    (infer,) = infers(bench(RequestPrepared(RequestId(1), MS), 1))
    assert not any(isinstance(each, Drop) for each in bench(RequestCancelled(RequestId(1)), 2))
    assert not bench.scheduler.stale_events
    ended = bench(BatchCompleted(CPU, infer.batch, 5 * MS), 6)
    assert Drop(RequestId(1), DropReason.DEPARTED, Cause.DEPARTED) in ended
    assert not any(isinstance(each, Finish) for each in ended)
