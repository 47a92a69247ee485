"""Frames whose first stage ran at their camera end once, and cost the box only their crops."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.plans import Assignment, Plan
from edgebox.domain.requests import DropReason, Outcome, Request, RequestId
from edgebox.scheduling.actions import Action, Collect, ComputePlan, Drop, Finish, Infer, Prepare
from edgebox.scheduling.connected_camera import BOX_SHARE_MIN, PLACEMENT_WINDOW
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraConnected,
    CameraDisconnected,
    CropsPrepared,
    FrameDetected,
    PlanComputed,
    RequestArrived,
    ShutdownRequested,
)
from edgebox.scheduling.request_stages import Cause
from tests.scheduling.pipelines import READ, camera_with, crops, pipeline, stage
from tests.scheduling.scene import MEDIAN_MS, MS, Bench, infers, name, profile, request

TWO_STAGES = pipeline(stage("find"), stage("read", "find"))
FRAME = request(1, 300)


def endings(actions: list[Action]) -> list[Collect | Finish | Drop]:
    return [a for a in actions if isinstance(a, Collect | Finish | Drop)]


def box() -> Bench:
    bench = Bench([profile(px, gain=0.9) for px in MEDIAN_MS])
    bench(CameraConnected(camera_with(TWO_STAGES)), 0)
    return bench


def test_a_frame_without_crops_ends_at_once_and_nothing_runs() -> None:
    bench = box()
    assert endings(bench(FrameDetected(FRAME), 20)) == [Finish(FRAME.id, None, Outcome.ON_TIME)]
    assert not bench.scheduler.running
    assert list(bench.scheduler.requests) == []
    late = request(2, 5)
    assert endings(bench(FrameDetected(late), 20)) == [
        Drop(late.id, DropReason.INFEASIBLE, Cause.REFUSED)
    ]


def test_its_crops_are_requests_and_it_ends_with_the_last() -> None:
    bench = box()
    out = bench(FrameDetected(FRAME, crops(FRAME, READ, (2, 3), 20)), 20)
    assert [a.request for a in out if isinstance(a, Prepare)] == [2, 3]
    assert endings(out) == []
    (infer,) = infers(bench(CropsPrepared((RequestId(2), RequestId(3))), 22))
    out = bench(BatchCompleted(infer.executor, infer.batch, 40 * MS), 70)
    assert endings(out) == [
        Collect(RequestId(2), infer.batch),
        Collect(RequestId(3), infer.batch),
        Finish(FRAME.id, None, Outcome.ON_TIME),
    ]


def test_at_its_deadline_it_is_answered_without_what_is_missing() -> None:
    bench = box()
    bench(FrameDetected(FRAME, crops(FRAME, READ, (2,), 20)), 20)
    out: list[Action] = []
    while (due_ns := bench.scheduler.next_wakeup_ns()) is not None and due_ns <= 300 * MS:
        out += bench(None, due_ns / MS)
        if any(isinstance(each, Finish) for each in out):
            break
    assert endings(out)[-1] == Finish(FRAME.id, None, Outcome.ON_TIME, (READ,))


def test_who_is_refused_takes_its_crops_along() -> None:
    bench = box()
    stranger = replace(FRAME, id=RequestId(9), camera=request(9, 300, of="stranger").camera)
    out = bench(FrameDetected(stranger, crops(stranger, READ, (10,), 20)), 20)
    assert {a.request: a.reason for a in out if isinstance(a, Drop)} == {
        9: DropReason.DEPARTED,
        10: DropReason.DEPARTED,
    }
    bench(ShutdownRequested(), 21)
    out = bench(FrameDetected(FRAME, crops(FRAME, READ, (2,), 20)), 22)
    assert {a.reason for a in out if isinstance(a, Drop)} == {DropReason.SHUTDOWN}


def test_a_camera_has_only_so_many_at_the_box() -> None:
    bench = box()
    most = bench.scheduler.parameters.camera_pending_max
    for number in range(most):
        frame = request(100 + 10 * number, 300)
        bench(FrameDetected(frame, crops(frame, READ, (101 + 10 * number,), 20)), 20)
    frame = request(5_000, 300)
    out = bench(FrameDetected(frame, crops(frame, READ, (5_001,), 20)), 20)
    assert Drop(frame.id, DropReason.OVERLOAD, Cause.REFUSED) in out


@given(
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=8),
    ends=st.lists(st.sampled_from(("answer", "fail", "leave", "wait")), min_size=1, max_size=12),
    slo_ms=st.integers(30, 400),
)
def test_every_frame_and_crop_ends_exactly_once(
    counts: list[int], ends: list[str], slo_ms: int
) -> None:
    bench, now_ms, out = box(), 0.0, list[Action]()
    alive: set[RequestId] = set()
    number = 1

    def step(actions: list[Action]) -> None:
        out.extend(actions)
        prepared = tuple(a.request for a in actions if isinstance(a, Prepare))
        if prepared:
            step(bench(CropsPrepared(prepared), now_ms))

    for count, what in zip(counts, ends * len(counts), strict=False):
        now_ms += 25
        frame = request(number, round(now_ms) + slo_ms, arrival_ms=round(now_ms))
        cut = crops(frame, READ, range(number + 1, number + 1 + count), now_ms)
        alive |= {frame.id, *(crop.id for crop in cut)}
        number += 10
        step(bench(FrameDetected(frame, cut), now_ms))
        now_ms += 10
        running = list(bench.scheduler.running.values())
        if what == "leave":
            step(bench(CameraDisconnected(frame.camera), now_ms))
            step(bench(CameraConnected(camera_with(TWO_STAGES)), now_ms))
        elif running and what == "answer":
            step(bench(BatchCompleted(running[0].executor, running[0].batch, 9 * MS), now_ms))
        elif running and what == "fail":
            step(bench(BatchFailed(running[0].executor, running[0].batch), now_ms))
    for _ in range(200):
        for infer in list(bench.scheduler.running.values()):
            now_ms += 10
            step(bench(BatchCompleted(infer.executor, infer.batch, 9 * MS), now_ms))
        now_ms += 10
        step(bench(None, now_ms))
    ended = [a.request for a in endings(out)]
    assert sorted(ended) == sorted(alive), "each of them once"
    assert list(bench.scheduler.requests) == []
    assert not any(isinstance(a, Infer) and RequestId(1) in a.requests for a in out)


def planned(bench: Bench, now_ms: float) -> tuple[ComputePlan, float]:
    """Return the next order for a plan, and when it came."""
    for _ in range(100):
        for action in bench(None, now_ms):
            if isinstance(action, ComputePlan):
                return action, now_ms
        now_ms += 50
    raise AssertionError("no plan was ordered")


@pytest.mark.parametrize(("here", "share"), [(0, 1.0), (32, 0.5), (64, BOX_SHARE_MIN)])
def test_planning_counts_what_runs_on_the_box_and_advises_all(here: int, share: float) -> None:
    bench = Bench()
    of = camera_with(None, slo_ms=300)
    first = bench(CameraConnected(of), 0)
    (order,) = [a for a in first if isinstance(a, ComputePlan)] or [planned(bench, 0)[0]]
    bench(PlanComputed(Plan(0)), 1)

    def frames(count: int, at: int, kind: type[RequestArrived] | type[FrameDetected]) -> None:
        for number in range(at, at + count):
            each: Request = request(number, 1_000, arrival_ms=2)
            bench(kind(each), 2)

    frames(PLACEMENT_WINDOW - here, 1_000, RequestArrived)
    frames(here, 2_000, FrameDetected)
    order, now_ms = planned(bench, 2_000)
    (snapshot,) = order.snapshot.cameras
    assert snapshot.camera.rate_hz == of.rate_hz * share
    plan = Plan(
        0,
        {of.id: Assignment(of.id, name(256), snapshot.camera.rate_hz, 85, True, "as tested")},
    )
    bench(PlanComputed(plan), now_ms)
    assert bench.scheduler.assignments[of.id].rate_hz == of.rate_hz
