"""A frame with crops ends once: with its last crop, or just before its deadline without some."""

import pytest

from edgebox.domain.requests import BatchId, CameraId, DropReason, Outcome, RequestId
from edgebox.scheduling.actions import Action, Collect, Drop, Finish, Infer, Prepare
from edgebox.scheduling.endings import PARTIAL_EARLY_MAX_NS, PARTIAL_WINDOW
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    CropsPrepared,
    PartialAnswered,
    RequestArrived,
    RequestPrepared,
    RequestsUnanswered,
    ShutdownRequested,
)
from edgebox.scheduling.joins import Joins
from edgebox.scheduling.request_stages import Cause
from tests.scheduling.pipelines import CHAIN, CHECK, READ, camera_with, crops
from tests.scheduling.scene import CPU, MEDIAN_MS, MS, Bench, infers, profile, request

FRAME = request(1, 300)
PARTIAL_EARLY_MS = 2
CAUSES = {
    DropReason.OVERLOAD: Cause.OVERLOADED,
    DropReason.INVALID: Cause.REJECTED,
    DropReason.FAILED: Cause.FAILED,
}
EACH_REASON = pytest.mark.parametrize("reason", CAUSES)


def endings(actions: list[Action]) -> list[Action]:
    return [a for a in actions if isinstance(a, Collect | Finish | Drop)]


def running(bench: Bench) -> Infer:
    return bench.scheduler.running[CPU]


def found(count: int) -> tuple[Bench, list[Action]]:
    """Return a box on which the first stage has found objects at 50 ms, and its last actions."""
    bench = Bench([profile(px, gain=0.9) for px in MEDIAN_MS])
    bench(CameraConnected(camera_with(CHAIN)), 0)
    bench(RequestArrived(FRAME), 0)
    bench(RequestPrepared(FRAME.id, MS), 1)
    spawned = crops(FRAME, READ, range(2, 2 + count), 50)
    return bench, bench(BatchCompleted(CPU, running(bench).batch, 40 * MS, spawned), 50)


def cut(count: int) -> tuple[Bench, Infer]:
    bench, _ = found(count)
    (infer,) = infers(bench(CropsPrepared(tuple(map(RequestId, range(2, 2 + count)))), 52))
    return bench, infer


def test_an_answer_waits_for_its_crops_and_ends_with_the_last() -> None:
    bench, actions = found(2)
    assert endings(actions) == [Collect(FRAME.id, BatchId(1))]
    (infer,) = infers(bench(CropsPrepared((RequestId(2), RequestId(3))), 52))
    assert infer.requests == (2, 3)
    out = bench(BatchCompleted(CPU, infer.batch, 40 * MS), 100)
    assert endings(out) == [
        Collect(RequestId(2), infer.batch),
        Collect(RequestId(3), infer.batch),
        Finish(FRAME.id, BatchId(1), Outcome.ON_TIME),
    ]
    assert list(bench.scheduler.requests) == []


def test_crops_of_crops_keep_their_frame_open() -> None:
    bench, infer = cut(1)
    nested = crops(FRAME, CHECK, [7], 100)
    out = bench(BatchCompleted(CPU, infer.batch, 40 * MS, nested), 100)
    assert endings(out) == [Collect(RequestId(2), infer.batch)]
    assert {of.id for of in bench.scheduler.requests} == {FRAME.id, 7}
    (last,) = infers(bench(CropsPrepared((RequestId(7),)), 102))
    out = bench(BatchCompleted(CPU, last.batch, 40 * MS), 150)
    assert endings(out)[-1] == Finish(FRAME.id, BatchId(1), Outcome.ON_TIME)


def test_a_frame_without_crops_ends_with_its_own_batch() -> None:
    _, actions = found(0)
    assert endings(actions) == [Finish(FRAME.id, BatchId(1), Outcome.ON_TIME)]


def test_a_batch_that_fails_makes_the_answer_partial() -> None:
    bench, infer = cut(2)
    assert endings(bench(BatchFailed(CPU, infer.batch), 90)) == [
        Drop(RequestId(2), DropReason.FAILED, Cause.FAILED),
        Drop(RequestId(3), DropReason.FAILED, Cause.FAILED),
        Finish(FRAME.id, BatchId(1), Outcome.ON_TIME, (READ,)),
    ]


@EACH_REASON
def test_crops_without_an_answer_whose_frame_was_answered_are_unneeded(reason: DropReason) -> None:
    bench, infer = cut(1)
    bench(None, 300 - PARTIAL_EARLY_MS)
    assert endings(bench(RequestsUnanswered(CPU, infer.batch, infer.requests, reason), 310)) == [
        Drop(RequestId(2), DropReason.QUEUE, Cause.FRAME_ENDED)
    ]
    assert not endings(bench(BatchCompleted(CPU, infer.batch, 200 * MS), 510))


@EACH_REASON
def test_what_has_no_answer_and_whose_camera_left_has_departed(reason: DropReason) -> None:
    bench, infer = cut(1)
    bench(CameraDisconnected(FRAME.camera), 60)
    assert endings(bench(RequestsUnanswered(CPU, infer.batch, infer.requests, reason), 61)) == [
        Drop(RequestId(2), DropReason.DEPARTED, Cause.DEPARTED)
    ]


@EACH_REASON
def test_a_crop_that_its_batch_had_no_answer_to_makes_the_answer_partial(
    reason: DropReason,
) -> None:
    bench, infer = cut(2)
    if reason is DropReason.OVERLOAD:
        bench(ShutdownRequested(), 60)  # or it would run again
    first = infer.requests[:1]
    assert endings(bench(RequestsUnanswered(CPU, infer.batch, first, reason), 61)) == [
        Drop(RequestId(2), reason, CAUSES[reason])
    ]
    assert endings(bench(BatchCompleted(CPU, infer.batch, MS), 62)) == [
        Collect(RequestId(3), infer.batch),
        Finish(FRAME.id, BatchId(1), Outcome.ON_TIME, (READ,)),
    ]


def test_a_frame_ends_before_its_deadline_without_what_still_runs() -> None:
    bench, infer = cut(1)
    due_ms = 300 - PARTIAL_EARLY_MS
    assert endings(bench(None, due_ms - 0.001)) == []
    assert endings(bench(None, due_ms)) == [
        Finish(FRAME.id, BatchId(1), Outcome.ON_TIME, (READ,)),
    ]
    # Its crop comes back, even with crops of its own: nobody needs them.
    nested = crops(FRAME, CHECK, [7], 310)
    assert endings(bench(BatchCompleted(CPU, infer.batch, 250 * MS, nested), 310)) == [
        Drop(RequestId(2), DropReason.QUEUE, Cause.FRAME_ENDED),
        Drop(RequestId(7), DropReason.QUEUE, Cause.FRAME_ENDED),
    ]


def test_it_ends_earlier_where_sending_partial_answers_takes_longer() -> None:
    bench, _ = cut(1)
    for _ in range(PARTIAL_WINDOW // 8):
        bench(PartialAnswered(9 * MS), 60)
    assert endings(bench(None, 300 - 9 - 0.001)) == []
    assert endings(bench(None, 300 - 9)) == [Finish(FRAME.id, BatchId(1), Outcome.ON_TIME, (READ,))]


def test_one_slow_answer_changes_nothing_and_no_delay_takes_all_the_time() -> None:
    bench, _ = cut(1)
    bench(PartialAnswered(1000 * MS), 60)
    due_ms = 300 - PARTIAL_EARLY_MS
    assert bench.scheduler.next_wakeup_ns() == due_ms * MS
    for _ in range(PARTIAL_WINDOW):
        bench(PartialAnswered(1000 * MS), 61)
    assert bench.scheduler.next_wakeup_ns() == 300 * MS - PARTIAL_EARLY_MAX_NS


def test_a_frame_leaves_with_its_camera() -> None:
    bench, infer = cut(1)
    gone = bench(CameraDisconnected(FRAME.camera), 60)
    assert endings(gone) == [Drop(FRAME.id, DropReason.DEPARTED, Cause.DEPARTED)]
    out = bench(BatchCompleted(CPU, infer.batch, 40 * MS), 100)
    assert endings(out) == [Drop(RequestId(2), DropReason.DEPARTED, Cause.DEPARTED)]


def test_a_frame_keeps_the_pipeline_that_it_came_with() -> None:
    bench, infer = cut(1)
    bench(CameraChanged(camera_with(None)), 60)
    nested = crops(FRAME, CHECK, [7], 100)
    out = bench(BatchCompleted(CPU, infer.batch, 40 * MS, nested), 100)
    assert endings(out) == [Collect(RequestId(2), infer.batch)]
    assert [order.request for order in out if isinstance(order, Prepare)] == [RequestId(7)]


def test_a_stopping_box_answers_with_what_it_has() -> None:
    bench, _ = found(2)
    assert endings(bench(ShutdownRequested(), 51)) == [
        Drop(RequestId(2), DropReason.SHUTDOWN, Cause.SHUTDOWN),
        Drop(RequestId(3), DropReason.SHUTDOWN, Cause.SHUTDOWN),
        Finish(FRAME.id, BatchId(1), Outcome.ON_TIME, (READ,)),
    ]
    assert bench.scheduler.next_wakeup_ns() is None


def test_a_join_knows_what_it_waits_for() -> None:
    joins, (one, two) = Joins(), crops(FRAME, READ, [2, 3], 0)
    joins.spawned([one])
    assert joins.pipeline_of(one) is None
    joins.open(FRAME, BatchId(1), CHAIN)
    joins.spawned([one, two])
    assert joins.due_ns() == 300 * MS
    assert joins.due(300 * MS - 1) == []
    (frame,) = joins.due(300 * MS)
    assert frame.crops == {READ: 2}
    joins.ended(one, answered=True)
    assert joins.complete() == []
    joins.ended(two, answered=False)
    assert joins.complete() == [frame]
    assert list(frame.missing) == [READ]
    assert joins.depart(CameraId("gate-2")) == []
    assert joins.depart(FRAME.camera) == [frame]
    assert joins.due_ns() is None


def test_crops_that_a_departed_cameras_batch_spawns_depart_too() -> None:
    bench = Bench([profile(px, gain=0.9) for px in MEDIAN_MS])
    bench(CameraConnected(camera_with(CHAIN)), 0)
    bench(RequestArrived(FRAME), 0)
    bench(RequestPrepared(FRAME.id, MS), 1)
    bench(CameraDisconnected(FRAME.camera), 10)
    # The camera is back under its name before the first stage has ended.
    bench(CameraConnected(camera_with(CHAIN)), 20)
    spawned = crops(FRAME, READ, [2, 3], 50)
    out = bench(BatchCompleted(CPU, running(bench).batch, 40 * MS, spawned), 50)
    assert endings(out) == [
        Drop(RequestId(n), DropReason.DEPARTED, Cause.DEPARTED) for n in (1, 2, 3)
    ]


def test_crops_of_crops_of_a_departed_camera_depart_too() -> None:
    bench, infer = cut(1)
    bench(CameraDisconnected(FRAME.camera), 60)
    nested = crops(FRAME, CHECK, [7], 100)
    out = bench(BatchCompleted(CPU, infer.batch, 40 * MS, nested), 100)
    assert endings(out) == [Drop(RequestId(n), DropReason.DEPARTED, Cause.DEPARTED) for n in (2, 7)]


def test_crops_of_a_frame_that_ended_before_its_camera_left_came_too_late() -> None:
    bench, infer = cut(1)
    bench(None, 300 - PARTIAL_EARLY_MS)
    bench(CameraDisconnected(FRAME.camera), 305)
    nested = crops(FRAME, CHECK, [7], 310)
    out = bench(BatchCompleted(CPU, infer.batch, 250 * MS, nested), 310)
    assert endings(out) == [Drop(RequestId(n), DropReason.QUEUE, Cause.FRAME_ENDED) for n in (2, 7)]
