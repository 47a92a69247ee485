"""When the core asks for plans, and what it tells cameras of them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.plans import Advice, Assignment, CameraSnapshot, Plan
from edgebox.domain.requests import CameraId, LinkState, RequestId, SiteId
from edgebox.scheduling.actions import Action, Advise, ComputePlan
from edgebox.scheduling.adaptation import (
    FIRST_REASON,
    two_digits,
)
from edgebox.scheduling.calibration import ALL_SLOWER
from edgebox.scheduling.connected_camera import OVERRUN_WINDOW, SENDING_WINDOW
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    ExecutorStarted,
    LinkMeasured,
    PlanComputed,
    PlanFailed,
    RequestArrived,
    RequestPrepared,
    ShutdownRequested,
)
from edgebox.scheduling.scheduler import SchedulerParameters
from tests.scheduling.scene import CPU, MS, Bench, camera, infers, name, profile, request

GATE = CameraId("gate-1")


def snapshots(actions: list[Action]) -> list[ComputePlan]:
    return [a for a in actions if isinstance(a, ComputePlan)]


def advice(actions: list[Action]) -> list[Advice]:
    return [a.advice for a in actions if isinstance(a, Advise)]


def planned(
    px: int, of: CameraId = GATE, rate_hz: float = 10, reason: str = "because"
) -> PlanComputed:
    assignment = Assignment(of, name(px), rate_hz, 85, True, reason)
    return PlanComputed(Plan(0, {of: assignment}))


def test_the_first_advice_is_modest_and_says_why() -> None:
    bench = Bench()
    first = bench(CameraConnected(camera(slo_ms=200)), 0)
    # A third of 200 ms: 608 px takes 60 ms by P99. Its picture is 16:9.
    assert advice(first) == [Advice(name(608), 608, 342, 10, 85, 0, FIRST_REASON)]
    assert len(snapshots(first)) == 1
    for slo_ms, px in [(179, 416), (60, 320), (1, 128)]:
        other = Bench()
        assert advice(other(CameraConnected(camera(slo_ms=slo_ms)), 0))[0].variant == name(px)
    # A link that is not measured gets small frames whatever the SLO.
    modest = Bench(parameters=SchedulerParameters())
    assert advice(modest(CameraConnected(camera(slo_ms=200)), 0))[0].variant == name(128)
    small = Bench()
    assert advice(small(CameraConnected(camera(size=(320, 240))), 0)) == [
        Advice(name(320), 320, 240, 10, 85, 0, FIRST_REASON)
    ]


def test_a_camera_that_came_before_the_executors_is_advised_when_they_start() -> None:
    bench = Bench(profiles=[])
    assert bench(CameraConnected(camera()), 0) == []
    assert bench.scheduler.next_wakeup_ns() is None
    started = bench(ExecutorStarted(CPU, (profile(128),)), 5)
    assert [a.variant for a in advice(started)] == [name(128)]
    assert len(snapshots(started)) == 1


def test_plans_come_at_their_interval_and_at_once_after_changes() -> None:
    bench = Bench()
    assert snapshots(bench(None, 100)) == []
    assert len(snapshots(bench(CameraConnected(camera()), 100))) == 1
    # One is being computed: changes wait, however many there are.
    assert snapshots(bench(CameraConnected(camera("gate-2")), 110)) == []
    assert snapshots(bench(CameraDisconnected(CameraId("gate-2")), 120)) == []
    assert bench.scheduler.next_wakeup_ns() is None
    assert len(snapshots(bench(planned(256), 130))) == 1
    assert snapshots(bench(planned(256), 135)) == []
    assert bench.scheduler.next_wakeup_ns() == 630 * MS
    assert snapshots(bench(None, 629.9)) == []
    assert len(snapshots(bench(None, 630))) == 1
    assert snapshots(bench(PlanFailed(), 640)) == []
    assert len(snapshots(bench(None, 1130))) == 1
    bench(ShutdownRequested(), 1131)
    assert snapshots(bench(planned(256), 1140)) == []
    assert bench.scheduler.next_wakeup_ns() is None


def test_a_link_that_broke_its_estimate_is_planned_for_at_once() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(256), 1)

    def measured(mbps: float, at_ms: float) -> int:
        return len(snapshots(bench(LinkMeasured(GATE, LinkState(mbps * 1e6)), at_ms)))

    assert measured(10, 10) == 0  # the first estimate is no break
    assert len(snapshots(bench(None, 500))) == 1
    bench(planned(256), 505)
    assert measured(30, 600) == 0  # a rise has time
    assert measured(7.1, 700) == 0
    assert measured(6.9, 710) == 1
    bench(planned(256), 715)
    # Not again for less than another fall, nor within 100 ms.
    assert measured(6.5, 750) == 0
    assert measured(2, 760) == 0
    assert bench.scheduler.next_wakeup_ns() == 810 * MS
    assert snapshots(bench(None, 809)) == []
    assert len(snapshots(bench(None, 810))) == 1
    # A plan that takes 40 ms is repeated after 200 ms at the earliest.
    bench(planned(256), 850)
    assert bench.scheduler.next_wakeup_ns() == 1310 * MS
    assert measured(1, 900) == 0
    assert bench.scheduler.next_wakeup_ns() == 1010 * MS


def test_an_executor_that_has_become_slower_is_a_reason_to_plan() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(416), 1)
    bench(None, 500)
    bench(planned(416), 510)

    def batch(at: int, now_ms: float) -> list[ComputePlan]:
        bench(RequestArrived(request(at, now_ms + 900, arrival_ms=now_ms)), now_ms)
        [infer] = infers(bench(RequestPrepared(RequestId(at), MS), now_ms + 1))
        return snapshots(bench(BatchCompleted(CPU, infer.batch, 42 * MS), now_ms + 60))

    requests = [batch(at, 520 + 61 * at) for at in range(ALL_SLOWER)]
    assert bench.scheduler.slowdown == {CPU: 2.0}
    assert [len(of) for of in requests] == [0] * (ALL_SLOWER - 1) + [1]
    [compute] = requests[-1]
    assert compute.snapshot.slowdown == {CPU: 2.0}
    assert compute.snapshot.taken_ns < 1000 * MS  # when the next plan was due


def test_a_snapshot_holds_what_is_known() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    link = LinkState(bandwidth_bps=2e6, rtt_ns=MS, bytes_per_pixel=0.3)
    bench(LinkMeasured(GATE, link), 1)
    bench(LinkMeasured(CameraId("nobody"), link), 1)
    bench(planned(256), 2)
    [compute] = snapshots(bench(None, 600))
    snapshot = compute.snapshot
    assert snapshot.taken_ns == 600 * MS
    [of] = snapshot.cameras
    assert (of.camera, of.link) == (camera(), link)
    assert of.current == bench.scheduler.assignments[GATE]
    assert set(snapshot.profiles) == {CPU}
    assert snapshot.slowdown == {CPU: 1.0}
    assert snapshot.fixed_ns == 4 * MS


@pytest.mark.parametrize(
    ("sent", "fixed_ms"),
    [
        ({}, 900),
        ({"size": (4096, 4096)}, 4),
        ({"variant": name(416)}, 4),
    ],
    ids=["as advised", "too large", "of a program"],
)
def test_what_others_pictures_take_to_decode_is_nobodys_plan(
    sent: dict[str, Any], fixed_ms: int
) -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(416), 1)
    for at in range(1, 65):
        arrived = request(at, 10_000 + at, arrival_ms=at, **sent)
        [infer] = infers(
            bench(RequestArrived(arrived), at) + bench(RequestPrepared(RequestId(at), 900 * MS), at)
        )
        bench(BatchCompleted(CPU, infer.batch, MS), at)
    [compute] = snapshots(bench(None, 600))
    assert compute.snapshot.fixed_ns == fixed_ms * MS


def test_advice_is_sent_when_it_changes() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    assert advice(bench(planned(256), 1)) == [Advice(name(256), 256, 144, 10, 85, 0, "because")]
    for at, (plan, is_news) in enumerate(
        [
            (planned(256), False),
            (planned(256, rate_hz=5), True),
            (planned(256, rate_hz=5, reason="for another reason"), False),
            (planned(320, rate_hz=5), True),
        ]
    ):
        bench(None, 1000 * (at + 1))
        assert bool(advice(bench(plan, 1000 * (at + 1) + 1))) is is_news


def test_news_of_the_reason_alone_waits_for_two_seconds() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(256), 1)
    bench(None, 1999)
    assert advice(bench(planned(256, reason="news"), 2000)) == []
    assert bench.scheduler.advice[GATE].reason == "because"
    assert bench.scheduler.assignments[GATE].reason == "news"
    bench(None, 2500)
    assert [a.reason for a in advice(bench(planned(256, reason="news"), 2501))] == ["news"]
    bench(None, 9000)
    assert advice(bench(planned(256, reason="news"), 9001)) == []


def test_a_bandwidth_is_news_only_if_it_changed_a_lot() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(LinkMeasured(GATE, LinkState(bandwidth_bps=2_040_000)), 0)
    assert [a.bandwidth_bps for a in advice(bench(planned(256), 1))] == [2_000_000]
    bench(None, 600)
    bench(LinkMeasured(GATE, LinkState(bandwidth_bps=2_400_000)), 600)
    assert advice(bench(planned(256), 601)) == []
    bench(None, 1200)
    bench(LinkMeasured(GATE, LinkState(bandwidth_bps=1_400_000)), 1200)
    assert [a.bandwidth_bps for a in advice(bench(planned(256), 1201))] == [1_400_000]


def test_a_plan_for_a_camera_that_has_changed_meanwhile_is_void() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(CameraDisconnected(GATE), 1)
    first = bench(CameraConnected(camera()), 2)
    assert len(advice(first)) == 1
    late = bench(planned(128), 3)
    assert advice(late) == []
    assert len(snapshots(late)) == 1
    unknown = Plan(0, {GATE: replace(bench.scheduler.assignments[GATE], variant=name(999))})
    assert advice(bench(PlanComputed(unknown), 4)) == []
    assert bench.scheduler.assignments[GATE].variant == name(608)


@given(st.floats(0, 1e12))
def test_two_digits_stay_close(value: float) -> None:
    rounded = two_digits(value)
    if value >= 10:
        assert abs(rounded - value) <= 0.051 * value
        assert len(str(rounded).rstrip("0")) <= 2
    else:
        assert abs(rounded - value) < 1


def test_the_planner_is_told_who_was_lowered_when() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(320), 1)
    snapshot = snapshots(bench(None, 501))
    assert [c.lowered_ns for c in snapshot[0].snapshot.cameras] == [1 * MS]
    bench(planned(416), 502)
    snapshot = snapshots(bench(None, 1002))
    assert [c.lowered_ns for c in snapshot[0].snapshot.cameras] == [1 * MS]


def test_the_planner_is_told_who_was_served_until_when() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    best_effort = planned(128)
    [given_] = best_effort.plan.assignments.values()
    best_effort = PlanComputed(Plan(0, {GATE: replace(given_, served=False)}))
    told = []
    for at_ms, plan in ((1, best_effort), (502, planned(128)), (1003, best_effort)):
        bench(plan, at_ms)
        [wanted] = snapshots(bench(None, at_ms + 500))
        told += [c.unserved_ns for c in wanted.snapshot.cameras]
    assert told == [None, None, 1003 * MS]
    bench(best_effort, 1504)
    [wanted] = snapshots(bench(None, 2004))
    assert [c.unserved_ns for c in wanted.snapshot.cameras] == [1003 * MS]


def test_a_changed_rate_holds_at_once_and_is_planned_with() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(256), 1)
    slower = bench(CameraChanged(camera(rate_hz=4)), 2)
    assert [(one.variant, one.rate_hz) for one in advice(slower)] == [(name(256), 4)]
    (snapshot,) = snapshots(slower)
    assert [each.camera.rate_hz for each in snapshot.snapshot.cameras] == [4]
    # A higher rate must wait for the plan: it may not fit beside the others.
    bench(planned(256, rate_hz=4), 3)
    faster = bench(CameraChanged(camera(rate_hz=20)), 4)
    assert advice(faster) == []
    assert len(snapshots(faster)) == 1


def test_a_plan_for_a_camera_as_it_was_is_void_once_it_was_changed() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    assert snapshots(bench(CameraChanged(camera(slo_ms=50)), 1)) == [], "one is on its way"
    answered = bench(planned(608), 2)
    assert advice(answered) == []
    (snapshot,) = snapshots(answered)
    assert [each.camera.slo_ns for each in snapshot.snapshot.cameras] == [50 * MS]
    assert advice(bench(planned(128), 3))[0].variant == name(128)


def test_a_change_of_a_camera_that_is_not_there_is_stale_news() -> None:
    bench = Bench()
    assert bench(CameraChanged(camera()), 0) == []
    bench(CameraConnected(camera()), 1)
    bench(CameraDisconnected(GATE), 2)
    assert bench(CameraChanged(camera()), 3) == []


def test_a_camera_that_has_nothing_to_run_on_starts_as_it_was_changed() -> None:
    bench = Bench([])
    bench(CameraConnected(camera()), 0)
    assert bench(CameraChanged(camera(rate_hz=4)), 1) == []
    started = bench(ExecutorStarted(CPU, (profile(128),)), 2)
    assert [(each.variant, each.rate_hz) for each in advice(started)] == [(name(128), 4)]


def surplus_after(bench: Bench, took_ms: Sequence[float]) -> int | None:
    """Let a camera's frames take so long, one by one; return what its snapshot then says."""
    return seen_after(bench, took_ms, [0.0] * len(took_ms)).overrun_ns


def seen_after(
    bench: Bench, took_ms: Sequence[float], before_ms: Sequence[float]
) -> CameraSnapshot:
    """Let a camera's frames take so long, and so long before they were sent, one by one."""
    at_ms = 0.0
    bench(CameraConnected(camera(slo_ms=200)), 0)
    for number, (ms, before) in enumerate(zip(took_ms, before_ms, strict=True), start=1):
        at_ms += 500
        arrived = replace(
            request(number, at_ms + 400, arrival_ms=at_ms),
            captured_ns=round((at_ms - 20) * MS),
            sent_ns=round((at_ms - 20 + before) * MS),
        )
        bench(RequestArrived(arrived), at_ms)
        [infer] = infers(bench(RequestPrepared(RequestId(number), 0), at_ms))
        bench(BatchCompleted(CPU, infer.batch, round(ms * MS)), at_ms + ms)
    [snapshot] = snapshots(bench(PlanFailed(), at_ms + 499)) or snapshots(
        bench(CameraChanged(camera(slo_ms=201)), at_ms + 499)
    )
    seen: CameraSnapshot = snapshot.snapshot.cameras[0]
    return seen


def test_what_frames_take_longer_than_planned_is_known_after_so_many() -> None:
    assert surplus_after(Bench(), [30.0] * (OVERRUN_WINDOW - 2)) is None
    # 416 px takes 30 ms by P99, fixed costs come on top.
    assert surplus_after(Bench(), [30.0] * OVERRUN_WINDOW) == 0


def test_the_worst_frame_but_one_tells_how_long_they_may_take() -> None:
    usual = [20.0] * OVERRUN_WINDOW
    none, both = (
        surplus_after(Bench(), [*usual, 58.0]),
        surplus_after(Bench(), [*usual, 58.0, 55.0]),
    )
    assert none == 0
    assert both is not None
    assert 20 * MS < both <= 25 * MS


def test_the_usual_time_before_a_frame_is_sent_is_no_overrun_and_a_longer_one_is() -> None:
    count = OVERRUN_WINDOW + SENDING_WINDOW
    steady = seen_after(Bench(), [29.0] * count, [18.0] * count)
    assert (steady.before_sending_ns, steady.overrun_ns) == (18 * MS, 0)
    # Two frames wait 15 ms longer than usual; their batches take 10 ms less than planned.
    two_wait = seen_after(Bench(), [20.0] * count, [*[3.0] * (count - 2), 18.0, 18.0])
    assert (two_wait.before_sending_ns, two_wait.overrun_ns) == (3 * MS, 5 * MS)


def test_stamps_that_are_not_known_or_run_backwards_take_no_time_of_a_camera() -> None:
    bench = Bench()
    bench(CameraConnected(camera(slo_ms=200)), 0)
    for number in range(1, SENDING_WINDOW + 1):
        at_ms = 500.0 * number
        arrived = request(number, at_ms + 400, arrival_ms=at_ms)
        sent_ns = None if number % 2 else arrived.captured_ns - 5 * MS
        bench(RequestArrived(replace(arrived, sent_ns=sent_ns)), at_ms)
    [snapshot] = snapshots(bench(PlanFailed(), at_ms + 499))
    assert snapshot.snapshot.cameras[0].before_sending_ns == 0


def test_a_frame_that_could_not_be_answered_says_that_nothing_is_sure() -> None:
    bench = Bench()
    assert surplus_after(bench, [20.0] * OVERRUN_WINDOW) == 0
    at_ms = 500.0 * OVERRUN_WINDOW + 10_000
    for number in (1000, 1001):
        bench(RequestArrived(request(number, at_ms + 40, arrival_ms=at_ms)), at_ms)
        bench(None, at_ms + 41)
        at_ms += 100
    [snapshot] = snapshots(bench(PlanFailed(), at_ms))
    assert snapshot.snapshot.cameras[0].overrun_ns is None


def test_cameras_of_a_site_are_planned_by_what_was_told_last_of_any_of_them() -> None:
    bench = Bench()
    site = SiteId("yard")
    for of in ("a", "b"):
        bench(CameraConnected(replace(camera(of), site=site)), 0)
    bench(CameraConnected(camera("c")), 0)

    def measure(of: str, mbps: float, at_ns: int) -> None:
        link = LinkState(mbps * 1e6, 2 * MS, None, None, 0.9)
        bench(LinkMeasured(CameraId(of), link), at_ns)

    measure("a", 1, 1 * MS)  # and then it falls silent
    measure("b", 20, 2 * MS)
    measure("c", 5, 3 * MS)
    seen = {c.camera.id: c.link.bandwidth_bps for c in bench.scheduler.snapshot(4 * MS).cameras}
    assert seen == {"a": 20e6, "b": 20e6, "c": 5e6}


def test_changes_without_end_take_no_more_than_plannings_share_of_the_time() -> None:
    parameters = SchedulerParameters()
    bench = Bench(parameters=parameters)
    took_ms, ends_ms = 200, 10_000
    answer_ms: int | None = None
    seen: list[tuple[int, int]] = []
    for arrived, now_ms in enumerate(range(0, ends_ms, 10)):
        orders = []
        if now_ms == answer_ms:
            answer_ms = None
            orders += snapshots(bench(planned(256), now_ms))
        orders += snapshots(bench(CameraConnected(camera(f"gate-{arrived}")), now_ms))
        for order in orders:
            answer_ms = now_ms + took_ms
            seen.append((now_ms, len(order.snapshot.cameras)))
    interval_ms, rests_ms = parameters.planning_interval_ns / MS, took_ms / parameters.replan_share
    # The first at once; then one for all changes since the one before.
    assert [at for at, _ in seen[:2]] == [0, rests_ms - interval_ms]
    assert len(seen) * took_ms <= parameters.replan_share * (ends_ms + interval_ms) + took_ms
    assert all(later[0] - at[0] <= rests_ms for at, later in pairwise(seen))
    assert all(cameras >= at / 10 for at, cameras in seen)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, 100, 200, 300])), max_size=30)
)
def test_the_shortest_deadline_is_that_of_the_cameras_that_are_there(
    changes: list[tuple[str, int | None]],
) -> None:
    bench = Bench()
    there: dict[str, int] = {}
    for at, (of, slo_ms) in enumerate(changes):
        if slo_ms is None:
            there.pop(of, None)
            bench(CameraDisconnected(CameraId(of)), at)
        else:
            event = CameraChanged if of in there and at % 2 else CameraConnected
            there[of] = slo_ms
            bench(event(camera(of, slo_ms=slo_ms)), at)
        shortest_ms = min(there.values(), default=None)
        expected_ns = None if shortest_ms is None else shortest_ms * MS
        assert bench.scheduler.tightest_slo_ns == expected_ns
