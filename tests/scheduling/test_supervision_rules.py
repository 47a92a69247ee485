"""The rules of supervision at their edges: what is counted, forgotten, and told too late."""

import pytest

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, LatencyProfile
from edgebox.domain.requests import BatchId, CameraId, DropReason, Outcome, RequestId
from edgebox.scheduling.actions import (
    Abandon,
    Action,
    Drop,
    ExitProcess,
    Finish,
    Infer,
    Load,
    Open,
    RunAgain,
)
from edgebox.scheduling.dispatch import RUNS_AGAIN_MAX
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraConnected,
    CameraDisconnected,
    ExecutorGone,
    ExecutorHung,
    ExecutorLent,
    ExecutorStarted,
    MemoryLimited,
    OpenFailed,
    RequestArrived,
    RequestPrepared,
    RequestsUnanswered,
    ShutdownRequested,
)
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler import SchedulerParameters
from edgebox.scheduling.supervised import (
    LIMIT_DOUBLINGS_MAX,
    OPEN_LIMIT_NS,
    OPENINGS_MAX,
    ExecutorState,
)
from edgebox.scheduling.supervision import (
    FAILURES_MAX,
    LIMIT_MAX_NS,
    OPEN_FACTOR,
    REFUSALS_MAX,
)
from tests.scheduling.scene import (
    CPU,
    LARGE,
    MEDIAN_MS,
    MS,
    Bench,
    camera,
    infers,
    name,
    profile,
    request,
    row,
)
from tests.scheduling.test_residency import STOCK, plan_of, weights
from tests.scheduling.test_supervision import (
    OTHER,
    PROFILES,
    Box,
    Loading,
    hang,
    orders,
)

OF_OTHER = tuple(profile(px, OTHER) for px in MEDIAN_MS)


def open_anew(box: Box, at_ms: float) -> float:
    """Wait until it is opened, and have that succeed; return when."""
    while box.state() is ExecutorState.WAITING:
        at_ms, _ = box.wake()
    box(ExecutorStarted(CPU, PROFILES), at_ms)
    return at_ms


def test_one_that_is_said_to_hang_while_it_is_away_is_trusted_when_it_is_back() -> None:
    box = Box()
    box(ExecutorHung(CPU), 1)
    box(ExecutorHung(CPU), 2)
    box(ExecutorStarted(CPU, PROFILES), 3)
    assert box.state() is ExecutorState.UP
    assert box.scheduler.supervised[CPU].losses == {LossCause.HUNG: 1}


def test_one_that_somebody_says_hangs_is_no_evidence_against_its_batch() -> None:
    box = Box()
    box.begin(0)
    abandoned = [a for a in box(ExecutorHung(CPU), 500) if isinstance(a, Abandon)]
    assert abandoned == [Abandon(CPU, LossCause.HUNG, None, 0)]
    assert not box.scheduler.supervised[CPU].doublings


def test_one_that_is_not_back_yet_is_looked_for_every_eight_seconds() -> None:
    box = Box()
    box(ExecutorGone(CPU), 0)
    waits_ms, at_ms = [], 0.0
    for _ in range(7):
        box(OpenFailed(CPU), at_ms)
        due_ms, _ = box.wake()
        waits_ms.append(due_ms - at_ms)
        at_ms = due_ms
    assert waits_ms == [1000, 2000, 4000, 8000, 8000, 8000, 8000]


def test_one_that_comes_back_and_goes_again_is_opened_ever_later() -> None:
    box = Box()
    at_ms = 0.0
    for _ in range(7):
        box(ExecutorGone(CPU), at_ms)
        gone_ms, at_ms = at_ms, open_anew(box, at_ms)
    assert at_ms - gone_ms == 32_000


def test_a_batch_behind_a_measurement_is_judged_from_the_end_of_that_on() -> None:
    box = Box()
    box(ExecutorLent(CPU, True), 0)
    box.begin(10)
    assert orders(box(None, 30_000)) == []
    box(ExecutorLent(CPU, False), 30_000)
    at_ms, (_, abandon, _) = box.wake()
    assert at_ms == 31_000
    assert abandon == Abandon(CPU, LossCause.HUNG, name(416), 1000 * MS)


def test_a_batch_before_a_measurement_is_judged_as_ever() -> None:
    box = Box()
    box.begin(0)
    box(ExecutorLent(CPU, True), 1)
    at_ms, (_, abandon, _) = box.wake()
    assert (at_ms, abandon) == (1000, Abandon(CPU, LossCause.HUNG, name(416), 1000 * MS))


def test_a_measurement_that_does_not_end_costs_the_executor_and_no_batch_is_blamed() -> None:
    box = Box()
    box(ExecutorLent(CPU, True), 0)
    box.begin(10)
    at_ms, (_, abandon, _) = box.wake()
    assert (at_ms, abandon) == (10 + LIMIT_MAX_NS / MS, Abandon(CPU, LossCause.HUNG, None, 0))
    assert not box.scheduler.supervised[CPU].doublings
    began_ms = open_anew(box, at_ms) + 1
    box.begin(began_ms)
    assert box.wake()[0] == began_ms + 1000, "nothing is measured now"


def test_one_that_is_gone_is_lost_at_once_and_opened_again_without_blame_for_its_batch() -> None:
    box = Box()
    infer = box.begin(0)
    abandoned = [a for a in box(ExecutorGone(CPU), 1) if isinstance(a, Abandon)]
    assert abandoned == [Abandon(CPU, LossCause.GONE, None, 0)]
    assert not box.scheduler.supervised[CPU].doublings
    box(BatchFailed(CPU, infer.batch), 2)
    assert not box.scheduler.supervised[CPU].abandoned
    open_anew(box, 3)
    assert box.state() is ExecutorState.UP
    assert box.scheduler.supervised[CPU].losses == {LossCause.GONE: 1}


def test_what_ran_on_one_that_is_gone_runs_on_another_in_the_same_call() -> None:
    box = Box(CPU, OTHER)
    infer = box.begin(0)
    actions = box(ExecutorGone(infer.executor), 1)
    again = Infer(OTHER, BatchId(infer.batch + 1), infer.variant, infer.requests, infer.batch_size)
    assert orders(actions) == [Abandon(CPU, LossCause.GONE, None, 0), Open(CPU), again]
    assert [a for a in actions if isinstance(a, RunAgain)] == [RunAgain(RequestId(1), name(416))]
    assert orders(box(BatchFailed(CPU, infer.batch), 2)) == []
    assert orders(box(BatchCompleted(OTHER, again.batch, 20 * MS), 22)) == [
        Finish(RequestId(1), again.batch, Outcome.ON_TIME)
    ]


def test_what_ran_on_one_that_is_gone_waits_for_another_that_is_busy() -> None:
    box = Box(CPU, OTHER)
    first, second = box.begin(0), box.begin(0)
    gone, busy = first.executor, second.executor
    assert orders(box(ExecutorGone(gone), 1)) == [
        Abandon(gone, LossCause.GONE, None, 0),
        Open(gone),
    ]
    finish, again = orders(box(BatchCompleted(busy, second.batch, 20 * MS), 20))
    assert isinstance(finish, Finish)
    assert isinstance(again, Infer)
    assert (again.executor, again.requests) == (busy, first.requests)


def test_a_request_that_ends_one_executor_after_the_other_does_not_end_all() -> None:
    box = Box(*(ExecutorId(f"ray/{number}") for number in range(8)))
    infer = box.begin(0)
    for times in range(1, RUNS_AGAIN_MAX + 1):
        (infer,) = infers(box(ExecutorGone(infer.executor), times))
        assert infer.requests == (RequestId(1),)
    failed = orders(box(ExecutorGone(infer.executor), times + 1))
    assert failed[0] == Drop(RequestId(1), DropReason.FAILED, Cause.FAILED)
    assert not infers(failed)


def test_what_no_other_can_answer_in_time_fails_at_once() -> None:
    box = Box(CPU, OTHER)
    sent = request(1, MEDIAN_MS[416] * 2, of="http", variant=name(416))
    box(RequestArrived(sent), 0)
    box(RequestPrepared(sent.id, 0), 0)
    left_ms = MEDIAN_MS[416] / 3
    assert orders(box(ExecutorGone(CPU), MEDIAN_MS[416] * 2 - left_ms))[0] == Drop(
        sent.id, DropReason.FAILED, Cause.FAILED
    )


def test_where_nothing_else_is_up_what_ran_fails_at_once() -> None:
    box = Box()
    box.begin(0)
    failed = Drop(RequestId(1), DropReason.FAILED, Cause.FAILED)
    assert failed in box(ExecutorGone(CPU), 1)


def test_a_frame_that_only_a_smaller_variant_answers_in_time_elsewhere_runs_on_that_one() -> None:
    slower = [LatencyProfile(name(px), OTHER, {1: row(4 * MEDIAN_MS[px])}) for px in MEDIAN_MS]
    box = Bench([*PROFILES, *slower])
    box(CameraConnected(camera("gate-1", slo_ms=1000)), 0)
    sent = request(1, 150, size=(608, 342))
    box(RequestArrived(sent), 0)
    (infer,) = infers(box(RequestPrepared(sent.id, 0), 0))
    actions = box(ExecutorGone(infer.executor), 10)
    (kept,) = (a for a in actions if isinstance(a, RunAgain))
    (again,) = infers(actions)
    assert again.executor == OTHER
    assert (infer.variant, kept.variant, again.variant) == (name(608), name(416), name(416))


def test_a_camera_whose_newer_frames_take_all_places_loses_what_ran() -> None:
    parameters = SchedulerParameters(first_pixels_max=LARGE, camera_pending_max=1)
    box = Bench([*PROFILES, *OF_OTHER], parameters)
    box(CameraConnected(camera("gate-1", slo_ms=1000)), 0)
    for number in (1, 2):
        sent = request(number, 1000)
        box(RequestArrived(sent), 0)
        box(RequestPrepared(sent.id, 0), 0)
    box(RequestArrived(request(3, 1000)), 1)
    assert [a for a in box(ExecutorGone(CPU), 2) if isinstance(a, Drop)] == [
        Drop(RequestId(1), DropReason.FAILED, Cause.FAILED)
    ]


def test_a_box_that_stops_runs_nothing_again() -> None:
    box = Box(CPU, OTHER)
    box.begin(0)
    box(ShutdownRequested(), 1)
    assert Drop(RequestId(1), DropReason.FAILED, Cause.FAILED) in box(ExecutorGone(CPU), 2)


def test_of_what_ran_only_that_of_cameras_that_are_there_runs_again() -> None:
    box = Bench([*PROFILES, *OF_OTHER])
    box(CameraConnected(camera("gate-1", slo_ms=1000)), 0)
    sent = request(1, 1000)
    box(RequestArrived(sent), 0)
    (infer,) = infers(box(RequestPrepared(sent.id, 0), 0))
    box(CameraDisconnected(sent.camera), 1)
    actions = box(ExecutorGone(infer.executor), 2)
    assert [a for a in actions if isinstance(a, Drop)] == [
        Drop(sent.id, DropReason.DEPARTED, Cause.DEPARTED)
    ]
    assert infers(actions) == []


def test_one_that_is_gone_while_it_is_away_is_trusted_when_it_is_back() -> None:
    box = Box()
    box(ExecutorHung(CPU), 1)
    box(ExecutorGone(CPU), 2)
    box(ExecutorStarted(CPU, PROFILES), 3)
    assert box.state() is ExecutorState.UP


def test_an_opening_that_nobody_waits_for_may_fail() -> None:
    box = Box(CPU, OTHER)
    assert orders(box(OpenFailed(CPU), 1)) == []
    assert box.state() is ExecutorState.UP


def test_an_opening_that_hangs_and_fails_after_all_is_tried_again() -> None:
    """Its thread hangs no more (fault simulation, seed 300005)."""
    box = Box(CPU, OTHER)
    hang(box, 0)
    now_ms, actions = box.wake()
    assert [each.cause for each in actions if isinstance(each, Abandon)] == [LossCause.OPENING]
    assert box.state() is ExecutorState.WEDGED
    assert box.scheduler.supervised[CPU].threads_abandoned == 2
    box(OpenFailed(CPU), now_ms + 1)
    assert box.state() is ExecutorState.WAITING
    assert box.scheduler.supervised[CPU].threads_abandoned == 1
    _, actions = box.wake()
    assert actions == [Open(CPU)]


def test_an_opening_that_hangs_and_succeeds_after_all_gives_its_executor_work() -> None:
    box = Box(CPU, OTHER)
    hang(box, 0)
    now_ms, _ = box.wake()
    box(ExecutorStarted(CPU, PROFILES), now_ms + 1)
    assert box.state() is ExecutorState.UP
    assert box.scheduler.supervised[CPU].threads_abandoned == 1


def test_a_batch_that_comes_back_does_not_help_one_whose_opening_hangs() -> None:
    box = Box(CPU, OTHER)
    _, _, batch = hang(box, 0)
    now_ms, _ = box.wake()
    box(BatchFailed(CPU, batch), now_ms + 1)
    assert not box.scheduler.supervised[CPU].abandoned
    assert box.state() is ExecutorState.WEDGED


def test_openings_that_failed_before_it_was_back_are_forgotten() -> None:
    box, now_ms = Box(), 1.0
    box(ExecutorHung(CPU), now_ms)
    for _ in range(OPENINGS_MAX - 1):
        box(OpenFailed(CPU), now_ms)
        now_ms, _ = box.wake()
    box(ExecutorStarted(CPU, PROFILES), now_ms)
    box(ExecutorHung(CPU), now_ms + 1)
    now_ms, actions = box.wake()
    assert actions == [Open(CPU)]
    assert orders(box(OpenFailed(CPU), now_ms)) == []


def test_one_that_took_long_to_open_has_as_much_more_time_the_next_time() -> None:
    box = Box()
    took_ns = 2 * OPEN_LIMIT_NS // OPEN_FACTOR
    box(ExecutorStarted(CPU, PROFILES, opened_ns=took_ns), 0)
    box(ExecutorHung(CPU), 1)
    at_ms, actions = box.wake()
    assert (at_ms - 1) * MS == 2 * OPEN_LIMIT_NS
    assert actions == [
        Abandon(CPU, LossCause.OPENING, None, 2 * OPEN_LIMIT_NS, wedged=True),
        ExitProcess(),
    ]


def test_a_limit_doubles_only_so_often() -> None:
    box, now_ms = Box(), 0.0
    for turn in range(LIMIT_DOUBLINGS_MAX + 3):
        began_ms = now_ms
        now_ms, _, batch = hang(box, began_ms)
        assert now_ms - began_ms == 1000 << min(turn, LIMIT_DOUBLINGS_MAX)
        box(BatchFailed(CPU, batch), now_ms)  # else it is wedged
        now_ms = open_anew(box, now_ms) + 1


def test_failures_before_a_loss_are_not_held_against_what_comes_back() -> None:
    box = Box()
    for at in range(FAILURES_MAX):
        box.fail(at)
    box(ExecutorStarted(CPU, PROFILES), 10)
    box.fail(11)
    assert box.state() is ExecutorState.UP


def test_a_variant_that_ran_well_before_it_failed_excuses_nothing() -> None:
    box = Box()
    infer = box.begin(0)
    box(BatchCompleted(CPU, infer.batch, 20 * MS), 20)
    for at in range(FAILURES_MAX):
        box.fail(30 + at)
    assert box.state() is ExecutorState.OPENING


def test_the_second_wake_up_that_comes_late_is_no_excuse() -> None:
    box = Box()
    box.begin(0)
    assert orders(box(None, 30_000)) == []
    assert Open(CPU) in orders(box(None, 90_000))


def test_a_box_that_stops_waits_for_no_load() -> None:
    box = Loading()
    box.start_loading(0)
    box(ShutdownRequested(), 1)
    assert box.scheduler.next_wakeup_ns() is None


@pytest.mark.parametrize("failed", [False, True])
def test_a_box_that_stops_waits_for_no_opening(failed: bool) -> None:
    box = Box()
    box(ExecutorHung(CPU), 1)
    if failed:
        box(OpenFailed(CPU), 2)
    assert box.state() is (ExecutorState.WAITING if failed else ExecutorState.OPENING)
    box(ShutdownRequested(), 3)
    assert box.scheduler.next_wakeup_ns() is None


def test_a_load_that_is_ordered_as_its_executor_is_lost_is_not_waited_for() -> None:
    box = Loading()
    box(CameraConnected(camera()), 0)
    box(MemoryLimited(CPU, 30, STOCK, (weights(128), weights(416))), 0)
    box.begin(0)
    actions = box(plan_of(608), 1000)
    assert {Load, Abandon} <= {type(action) for action in actions}
    assert box.scheduler.supervised[CPU].load is None


def overloaded(infer: Infer, number: int | None = None) -> RequestsUnanswered:
    """Have a server refuse the first members of a batch, or all."""
    requests = infer.requests[:number]
    return RequestsUnanswered(infer.executor, infer.batch, requests, DropReason.OVERLOAD)


def refuse(box: Box, at_ms: float, executor: ExecutorId) -> list[Action]:
    """Have a batch of an executor refused, the only one that is not busy; nobody waits for it."""
    infer = box.begin(at_ms)
    assert infer.executor == executor
    box(CameraDisconnected(CameraId("http")), at_ms)
    box(overloaded(infer), at_ms)
    ended = box(BatchCompleted(executor, infer.batch, 200 * MS), at_ms)
    return [action for action in orders(ended) if isinstance(action, Abandon | Open)]


def test_one_that_refuses_for_too_much_to_do_is_lost_while_others_run_its_variants() -> None:
    box = Box(CPU, OTHER)
    assert box.begin(0).executor == CPU
    for at_ms in range(1, REFUSALS_MAX):
        assert refuse(box, at_ms, OTHER) == []
    assert refuse(box, REFUSALS_MAX, OTHER) == [
        Abandon(OTHER, LossCause.REFUSING, name(416), 0),
        Open(OTHER),
    ]
    assert box.state(CPU) is ExecutorState.UP
    box(ExecutorStarted(OTHER, OF_OTHER), 20)
    assert [refuse(box, 20 + at_ms, OTHER) for at_ms in range(REFUSALS_MAX - 1)][-1] == []
    assert refuse(box, 30, OTHER) == [Abandon(OTHER, LossCause.REFUSING, name(416), 0)]
    assert box.state(OTHER) is ExecutorState.WAITING, "it is opened again ever later"


def test_refusals_say_nothing_of_how_long_requests_are() -> None:
    """The rest after a refusal would look like long requests, here as well."""
    box = Box(CPU, OTHER)
    expectations = box.scheduler.times.expectations
    before = expectations.single_request(name(416), "default")
    for at_ms in range(0, 60_000, 1000):
        mine, theirs = box.begin(at_ms), box.begin(at_ms)
        assert theirs.executor == OTHER
        box(BatchCompleted(CPU, mine.batch, 20 * MS), at_ms + 20)
        refused = at_ms % 5000 > 0  # five in a row would cost it
        if refused:
            box(CameraDisconnected(CameraId("http")), at_ms + 20)
            box(overloaded(theirs), at_ms + 20)
        took_ns = (2000 if refused else 20) * MS
        box(BatchCompleted(OTHER, theirs.batch, took_ns), at_ms + took_ns // MS)
    after = expectations.single_request(name(416), "default")
    assert before is not None and after is not None
    assert after.high_ns <= before.high_ns
    assert box.scheduler.slowdown[OTHER] > 10, "plans and batches count on it less"
    assert box.scheduler.slowdown[CPU] == 1


def test_what_one_refuses_runs_on_another_in_the_same_call_and_the_one_rests() -> None:
    box = Box(CPU, OTHER)
    infer = box.begin(0)
    actions = box(overloaded(infer), 1)
    assert [a for a in actions if isinstance(a, RunAgain)] == [
        RunAgain(RequestId(1), name(416), refused=True)
    ]
    again = Infer(OTHER, BatchId(infer.batch + 1), infer.variant, infer.requests, infer.batch_size)
    assert orders(actions) == [again]
    assert orders(box(BatchCompleted(OTHER, again.batch, 20 * MS), 21)) == [
        Finish(RequestId(1), again.batch, Outcome.ON_TIME)
    ]
    assert box.begin(22).executor == OTHER, "the other rests"
    assert orders(box(BatchCompleted(CPU, infer.batch, 200 * MS), 201)) == []
    assert box.begin(202).executor == CPU


def test_what_one_refuses_waits_for_it_where_no_other_is_up_as_long_as_there_is_time() -> None:
    box = Box()
    sent = request(1, 1000, of="http", variant=name(416))
    box(RequestArrived(sent), 0)
    (infer,) = infers(box(RequestPrepared(sent.id, 0), 0))
    assert orders(box(overloaded(infer), 1)) == []
    (again,) = infers(box(BatchCompleted(CPU, infer.batch, 200 * MS), 201))
    left_ms = 1000 - MEDIAN_MS[416] / 3
    assert orders(box(overloaded(again), left_ms)) == [
        Drop(sent.id, DropReason.OVERLOAD, Cause.OVERLOADED)
    ]
    assert orders(box(BatchCompleted(CPU, again.batch, 200 * MS), 1200)) == []
    assert not box.scheduler.stale_events


def test_an_executor_that_rests_longer_than_a_batch_may_take_does_not_hang() -> None:
    box = Box()
    infer = box.begin(0)
    box(overloaded(infer), 1)
    assert orders(box(None, 30_000)) == [], "the request has expired: that is no order"
    assert box.state() is ExecutorState.UP


def test_nor_does_one_that_rests_after_a_measurement_that_it_was_lent_for() -> None:
    box = Box()
    box(ExecutorLent(CPU, True), 0)
    infer = box.begin(1)
    box(overloaded(infer), 2)
    box(ExecutorLent(CPU, False), 3)
    assert orders(box(None, 30_000)) == []
    assert box.state() is ExecutorState.UP


def test_a_batch_that_is_refused_in_part_counts_as_slow_and_teaches_nothing_else() -> None:
    times = Box().scheduler.times
    before = times.expectations.single_request(name(416), "default")
    infer = Infer(CPU, BatchId(1), name(416), (RequestId(1),), 1)
    for at_ms in range(0, 64_000, 1000):
        times.started(CPU, at_ms * MS)
        ran = RunningBatch(infer, at_ms * MS, unanswered=3, rests_until_ns=at_ms * MS)
        took_ns = round(MEDIAN_MS[416] * MS)
        times.batch_completed(ran, ["default"], took_ns, at_ms * MS + took_ns)
    times.calibrate(CPU)
    assert times.latencies.slowdown(CPU) == pytest.approx(4, rel=0.2)
    times.latencies.set_slowdown(CPU, 1)
    assert times.expectations.single_request(name(416), "default") == before


def test_a_batch_that_is_answered_shows_that_a_server_has_time_again() -> None:
    box = Box(CPU, OTHER)
    box.begin(0)
    for at_ms in range(1, 3 * REFUSALS_MAX):
        if at_ms % (REFUSALS_MAX - 1):
            assert refuse(box, at_ms, OTHER) == []
        else:
            answered = box.begin(at_ms)
            box(BatchCompleted(OTHER, answered.batch, MS), at_ms)
    assert box.state(OTHER) is ExecutorState.UP


def test_the_last_one_stays_however_often_it_refuses() -> None:
    box = Box()
    for at_ms in range(3 * REFUSALS_MAX):
        assert refuse(box, at_ms, CPU) == []
    lost = box(ExecutorStarted(OTHER, OF_OTHER), 100)
    assert Abandon(CPU, LossCause.REFUSING, name(416), 0) in lost


def test_an_executor_that_rests_is_free_when_it_has_rested() -> None:
    box = Box()
    infer = box.begin(0)
    latencies = box.scheduler.times.latencies
    running = box.scheduler._ledger.running
    assert latencies.usually_free_ns(running[CPU]) == MEDIAN_MS[416] * MS
    refused = (infer.requests, DropReason.OVERLOAD, 10_000 * MS)
    box(RequestsUnanswered(CPU, infer.batch, *refused), 5)
    assert latencies.usually_free_ns(running[CPU]) == 10_005 * MS
