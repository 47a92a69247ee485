"""Executors that hang or keep failing, as the core sees them."""

from dataclasses import replace

import pytest

from edgebox.domain.learned import Learned, LearnedDrift
from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.domain.requests import BatchId, DropReason, Outcome, RequestId
from edgebox.scheduling.actions import (
    Abandon,
    Action,
    Drop,
    ExitProcess,
    Finish,
    Infer,
    Load,
    Open,
    Sample,
)
from edgebox.scheduling.checkpoint import read_state, write_state
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraConnected,
    Event,
    ExecutorHung,
    ExecutorStarted,
    ExecutorStopped,
    LearningRestored,
    LoadFailed,
    LoadReturned,
    MemoryLimited,
    OpenFailed,
    RequestArrived,
    RequestPrepared,
    RequestSampled,
    SampleCompleted,
    VariantsAvailable,
)
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from edgebox.scheduling.supervised import (
    ABANDONED_MAX,
    BACK_OFF_MAX_NS,
    EXCUSED_NS,
    HANGS_MAX,
    LATE_NS,
    OPENINGS_MAX,
    ExecutorState,
)
from edgebox.scheduling.supervision import (
    FAILURES_MAX,
    LIMIT_FACTOR,
    LIMIT_MAX_NS,
    LOAD_LIMIT_NS,
)
from tests.scheduling.scene import (
    CPU,
    FAMILY,
    LARGE,
    MEDIAN_MS,
    MS,
    Bench,
    camera,
    name,
    profile,
    request,
)
from tests.scheduling.test_residency import STOCK, plan_of, weights

OTHER = ExecutorId("cpu/1")
PROFILES = tuple(profile(px) for px in MEDIAN_MS)
LATER = 3_600_000
"""A deadline in ms that no test reaches."""


class Box(Bench):
    """Runs one-shot requests one by one on a variant."""

    def __init__(self, *executors: ExecutorId) -> None:
        found = [profile(px, e) for e in executors or (CPU,) for px in MEDIAN_MS]
        super().__init__(found, SchedulerParameters(first_pixels_max=LARGE))
        self.number = 0

    def ask(self, at_ms: float, px: int = 416) -> list[Action]:
        self.number += 1
        sent = request(self.number, at_ms + LATER, of="http", arrival_ms=at_ms, variant=name(px))
        arrived = self(RequestArrived(sent), at_ms)
        return arrived + self(RequestPrepared(RequestId(self.number), 0), at_ms)

    def begin(self, at_ms: float, px: int = 416) -> Infer:
        (infer,) = (a for a in self.ask(at_ms, px) if isinstance(a, Infer))
        return infer

    def fail(self, at_ms: float, px: int = 416, *, disconnected: bool = False) -> list[Action]:
        infer = self.begin(at_ms, px)
        return orders(self(BatchFailed(infer.executor, infer.batch, disconnected), at_ms))

    def wake(self) -> tuple[float, list[Action]]:
        """Wake it as it asks for, until something comes of it."""
        while True:
            due_ns = self.scheduler.next_wakeup_ns()
            assert due_ns is not None
            actions = orders(self(None, due_ns / MS))
            if actions:
                return due_ns / MS, actions

    def state(self, executor: ExecutorId = CPU) -> ExecutorState:
        return self.scheduler.supervised[executor].state


def orders(actions: list[Action]) -> list[Action]:
    kinds = (Abandon, Open, ExitProcess, Drop, Finish, Infer, Sample)
    return [action for action in actions if isinstance(action, kinds)]


def test_a_batch_that_hangs_ends_and_its_executor_is_opened_anew_at_once() -> None:
    box = Box()
    infer = box.begin(0)
    at_ms, actions = box.wake()
    assert at_ms == 1000
    assert actions == [
        Drop(RequestId(1), DropReason.FAILED, Cause.FAILED),
        Abandon(CPU, LossCause.HUNG, name(416), 1000 * MS),
        Open(CPU),
    ]
    assert orders(box.ask(1100)) == [Drop(RequestId(2), DropReason.FAILED, Cause.REFUSED)]
    assert orders(box(BatchCompleted(CPU, infer.batch, 1500 * MS), 1500)) == []
    box(ExecutorStarted(CPU, PROFILES, opened_ns=100 * MS), 1600)
    again = box.begin(1700)
    assert orders(box(BatchCompleted(CPU, again.batch, 20 * MS), 1720)) == [
        Finish(RequestId(3), again.batch, Outcome.ON_TIME)
    ]
    assert box.scheduler.supervised[CPU].restarts == 1


def test_the_others_go_on() -> None:
    box = Box(CPU, OTHER)
    assert box.begin(0).executor == CPU
    _, actions = box.wake()
    assert Open(CPU) in actions
    assert box.begin(1001).executor == OTHER


def test_what_only_a_lost_executor_can_run_fails_while_others_are_up() -> None:
    box = Box()
    box(ExecutorStarted(OTHER, (profile(320, OTHER),)), 0)
    box(ExecutorHung(CPU), 1)
    assert orders(box.ask(2)) == [Drop(RequestId(1), DropReason.FAILED, Cause.REFUSED)]
    assert box.begin(3, 320).executor == OTHER


def test_what_an_executor_came_back_without_has_failed() -> None:
    box = Box()
    box(ExecutorHung(CPU), 1)
    box(ExecutorStarted(CPU, (profile(320),)), 2)
    (drop,) = orders(box.ask(3, 416))
    assert drop == Drop(RequestId(1), DropReason.FAILED, Cause.REFUSED)
    assert isinstance(box.begin(4, 320), Infer)


def test_a_camera_whose_family_is_lost_is_told_so() -> None:
    box = Box()
    box(CameraConnected(camera()), 0)
    gate = replace(FAMILY[0], name=VariantName("gate-128"), family=FamilyName("gate"))
    box(VariantsAvailable((*FAMILY, gate)), 0)
    box(ExecutorStarted(OTHER, (replace(profile(128, OTHER), variant=gate.name),)), 0)
    box(ExecutorHung(CPU), 1)
    arrived = box(RequestArrived(request(1, 400, arrival_ms=2)), 2)
    assert Drop(RequestId(1), DropReason.FAILED, Cause.REFUSED) in arrived


def test_a_long_batch_has_as_much_more_time() -> None:
    slow = profile(608).scaled(10)
    box = Box()
    box(ExecutorStarted(CPU, (slow,)), 0)
    box.begin(0, 608)
    at_ms, actions = box.wake()
    assert at_ms == pytest.approx(LIMIT_FACTOR * slow.quantile_ns(1, 0.99) / MS)
    assert Open(CPU) in actions


def test_a_limit_that_was_passed_doubles_until_the_variant_comes_back() -> None:
    box, began_ms = Box(), 0.0
    for wanted_ms in (1000, 2000):
        box.begin(began_ms)
        at_ms, _ = box.wake()
        assert at_ms - began_ms == wanted_ms
        began_ms = at_ms + 10_000
        box(None, began_ms)
        box(ExecutorStarted(CPU, PROFILES), began_ms)
    infer = box.begin(began_ms)
    box(BatchCompleted(CPU, infer.batch, 3500 * MS), began_ms + 3500)
    box.begin(began_ms + 4000)
    assert box.wake()[0] == began_ms + 5000


def test_a_wake_up_that_comes_late_blames_the_machine_once() -> None:
    box = Box()
    box.begin(0)
    assert orders(box(None, 30_000)) == []
    assert Open(CPU) in orders(box(None, 31_000))


def test_a_batch_that_is_back_with_a_late_wake_up_is_answered() -> None:
    box = Box()
    infer = box.begin(0)
    assert orders(box(None, 30_000)) == []
    assert orders(box(BatchCompleted(CPU, infer.batch, 20 * MS), 30_000)) == [
        Finish(RequestId(1), BatchId(1), Outcome.ON_TIME)
    ]


def test_failing_batches_in_a_row_take_an_executor_out() -> None:
    box = Box()
    for at in range(FAILURES_MAX - 1):
        assert box.fail(at) == [Drop(RequestId(at + 1), DropReason.FAILED, Cause.FAILED)]
    assert box.fail(5)[1:] == [Abandon(CPU, LossCause.FAILING, name(416), 0), Open(CPU)]


def test_one_that_goes_well_between_them_makes_it_no_row() -> None:
    box = Box()
    for at in range(FAILURES_MAX * 3):
        box.fail(at)
        infer = box.begin(at)
        box(BatchCompleted(CPU, infer.batch, MS), at + 0.5)
    assert box.state() is ExecutorState.UP


def test_a_model_that_fails_is_not_held_against_an_executor_that_runs_another() -> None:
    box = Box()
    infer = box.begin(0, 128)
    box(BatchCompleted(CPU, infer.batch, 2 * MS), 2)
    for at in range(10):
        box.fail(10 + at)
    assert box.state() is ExecutorState.UP
    box.fail(EXCUSED_NS / MS + 3)
    assert box.state() is ExecutorState.OPENING, "that was too long ago"


def test_a_connection_that_breaks_is_no_model_s_fault_whatever_ran_before() -> None:
    box = Box()
    infer = box.begin(0, 128)
    box(BatchCompleted(CPU, infer.batch, 2 * MS), 2)
    for at in range(FAILURES_MAX):
        assert box.state() is ExecutorState.UP
        box.fail(10 + at, disconnected=True)
    assert box.state() is ExecutorState.OPENING
    box(ExecutorStarted(CPU, PROFILES), 20)
    box.fail(21, disconnected=True)
    assert box.state() is ExecutorState.UP, "what came before the loss is forgotten"


def test_connections_that_break_now_and_then_cost_no_executor() -> None:
    box = Box()
    for at in range(FAILURES_MAX * 3):
        box.fail(at, disconnected=True)
        infer = box.begin(at, 128)
        box(BatchCompleted(CPU, infer.batch, MS), at + 0.5)
    assert box.state() is ExecutorState.UP


def excluding() -> tuple[Box, float]:
    """Return a box on which a variant hung until it was excluded, and when that was."""
    box, now_ms = Box(), 0.0
    for hangs in range(HANGS_MAX):
        infer = box.begin(now_ms, 128)
        box(BatchCompleted(CPU, infer.batch, 2 * MS), now_ms + 2)
        now_ms, actions, _ = hang(box, now_ms + 10)
        [lost] = (action for action in actions if isinstance(action, Abandon))
        assert lost.excluded == (hangs + 1 == HANGS_MAX)
        while Open(CPU) not in actions:
            now_ms, actions = box.wake()
        box(ExecutorStarted(CPU, PROFILES), now_ms)
    return box, now_ms


def test_a_variant_that_hangs_again_while_others_run_well_is_excluded() -> None:
    box, now_ms = excluding()
    assert orders(box.ask(now_ms + 1)) == [
        Drop(RequestId(box.number), DropReason.FAILED, Cause.REFUSED)
    ]
    infer = box.begin(now_ms + 2, 128)
    box(BatchCompleted(CPU, infer.batch, 2 * MS), now_ms + 4)
    # Measured anew beside it, and still not run.
    box(ExecutorStarted(CPU, PROFILES), now_ms + 5)
    assert orders(box.ask(now_ms + 6)) == [
        Drop(RequestId(box.number), DropReason.FAILED, Cause.REFUSED)
    ]


@pytest.mark.parametrize(
    "forgets",
    [
        [ExecutorStopped(CPU)],
        [VariantsAvailable(FAMILY[:2]), VariantsAvailable(FAMILY)],
    ],
    ids=["an executor that was stopped on purpose", "a variant that was withdrawn"],
)
def test_what_comes_anew_is_not_excluded(forgets: list[Event]) -> None:
    box, now_ms = excluding()
    for event in forgets:
        box(event, now_ms + 7)
    box(ExecutorStarted(CPU, PROFILES), now_ms + 8)
    assert box.begin(now_ms + 9).variant == name(416)
    assert box.scheduler.supervised[CPU].doublings == {}


def test_hanging_on_an_executor_on_which_nothing_else_ran_sets_nothing_aside() -> None:
    box, now_ms = Box(), 0.0
    infer = box.begin(now_ms, 128)
    box(BatchCompleted(CPU, infer.batch, 2 * MS), 2)
    now_ms = 10
    for _ in range(HANGS_MAX):
        now_ms, actions, _ = hang(box, now_ms)
        while Open(CPU) not in actions:
            now_ms, actions = box.wake()
        box(ExecutorStarted(CPU, PROFILES), now_ms)
    assert box.begin(now_ms + 1).variant == name(416)


def test_the_waits_before_it_is_opened_double_and_end_at_a_minute() -> None:
    box, now_ms, waits = Box(OTHER, CPU), 1.0, []
    box(ExecutorHung(CPU), now_ms)
    for _ in range(9):
        box(OpenFailed(CPU), now_ms)
        of = box.scheduler.supervised[CPU]
        assert of.retry_ns is not None
        waits.append(of.retry_ns / MS - now_ms)
        now_ms = of.retry_ns / MS
        assert Open(CPU) in box(None, now_ms)
    assert waits == [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]


def test_losses_are_forgotten_after_a_minute_of_service() -> None:
    box = Box()
    minute_ms = BACK_OFF_MAX_NS / MS
    assert Open(CPU) in box(ExecutorHung(CPU), 1)
    box(ExecutorStarted(CPU, PROFILES), 2)
    assert Open(CPU) not in box(ExecutorHung(CPU), 3)
    assert Open(CPU) in box(None, 1003)
    box(ExecutorStarted(CPU, PROFILES), 1004)
    assert Open(CPU) in box(ExecutorHung(CPU), 1004 + minute_ms)


def hang(box: Box, began_ms: float) -> tuple[float, list[Action], BatchId]:
    infer = box.begin(began_ms)
    at_ms, actions = box.wake()
    return at_ms, actions, infer.batch


def wedge(box: Box) -> tuple[float, list[Action], list[BatchId]]:
    """Have an executor hang again and again, each time after it was opened again."""
    now_ms, batches = 0.0, []
    for turn in range(ABANDONED_MAX):
        now_ms, actions, batch = hang(box, now_ms)
        batches.append(batch)
        if turn < ABANDONED_MAX - 1:
            while Open(CPU) not in actions:
                now_ms, actions = box.wake()
            box(ExecutorStarted(CPU, PROFILES), now_ms)
    return now_ms, actions, batches


def test_too_many_threads_that_hang_end_the_process() -> None:
    box = Box()
    _, actions, _ = wedge(box)
    assert [action.wedged for action in actions if isinstance(action, Abandon)] == [True]
    assert actions[-1] == ExitProcess()
    assert box.state() is ExecutorState.WEDGED
    assert box.scheduler.next_wakeup_ns() is None


def test_a_thread_that_comes_back_gives_hope_again() -> None:
    box = Box()
    now_ms, _, batches = wedge(box)
    box(BatchFailed(CPU, batches[0]), now_ms + 5)
    assert box.state() is ExecutorState.WAITING


def test_an_opening_that_hangs_ends_the_process_unless_somebody_is_up() -> None:
    box = Box()
    hang(box, 0)
    _, actions = box.wake()
    assert actions == [
        Abandon(CPU, LossCause.OPENING, None, 60_000 * MS, wedged=True),
        ExitProcess(),
    ]
    two = Box(CPU, OTHER)
    hang(two, 0)
    _, actions = two.wake()
    assert actions == [Abandon(CPU, LossCause.OPENING, None, 60_000 * MS, wedged=True)]
    assert two.begin(70_000).executor == OTHER


def test_an_executor_that_cannot_be_opened_ends_the_process_in_the_end() -> None:
    box, now_ms = Box(), 1.0
    box(ExecutorHung(CPU), now_ms)
    for left in reversed(range(OPENINGS_MAX)):
        actions = orders(box(OpenFailed(CPU), now_ms))
        assert (ExitProcess() in actions) == (left == 0)
        if left:
            now_ms, actions = box.wake()
            assert actions == [Open(CPU)]


class Loading(Box):
    """A box whose memory holds two files, and which a plan has load a third."""

    def start_loading(self, at_ms: float) -> None:
        if not self.scheduler.assignments:
            self(CameraConnected(camera()), at_ms)
        self(MemoryLimited(CPU, 30, STOCK, (weights(128), weights(416))), at_ms)
        assert Load(CPU, weights(608)) in self(plan_of(608), at_ms)

    def restart(self, at_ms: float) -> None:
        while self.state() is ExecutorState.WAITING:
            at_ms, _ = self.wake()
        self(ExecutorStarted(CPU, PROFILES), at_ms)
        self.start_loading(at_ms)

    def pass_by(self, at_ms: float) -> list[Action]:
        """Reach the limit of the load, and say what is done about executors."""
        kinds = (Abandon, Open, ExitProcess)
        return [a for a in self(None, at_ms) if isinstance(a, kinds)]


LOAD_MS = LOAD_LIMIT_NS / MS


def test_a_load_that_hangs_costs_the_executor_and_no_batch_is_blamed() -> None:
    box = Loading()
    box.start_loading(0)
    assert box.pass_by(LOAD_MS - 1) == []
    box.begin(LOAD_MS - 0.5)
    assert box.pass_by(LOAD_MS) == [
        Abandon(CPU, LossCause.LOADING, None, LOAD_LIMIT_NS),
        Open(CPU),
    ]
    of = box.scheduler.supervised[CPU]
    assert not of.doublings, "the batch had only just begun"
    assert of.threads_abandoned == 2
    box(BatchCompleted(CPU, BatchId(1), 20 * MS), LOAD_MS + 20)
    assert of.threads_abandoned == 1
    box(LoadFailed(CPU, weights(608)), LOAD_MS + 30)
    assert of.threads_abandoned == 0


def test_loads_that_hang_again_and_again_wedge_an_executor_until_one_comes_back() -> None:
    box, now_ms = Loading(), 0.0
    box.start_loading(now_ms)
    for turn in range(ABANDONED_MAX):
        of = box.scheduler.supervised[CPU]
        assert of.load is not None
        now_ms = of.load.at_ns / MS
        actions = box.pass_by(now_ms)
        assert (ExitProcess() in actions) == (turn == ABANDONED_MAX - 1)
        if ExitProcess() not in actions:
            box.restart(now_ms)
    assert box.state() is ExecutorState.WEDGED
    box(LoadReturned(CPU), now_ms + 1)
    assert box.state() is ExecutorState.OPENING, "there is hope again"


def test_a_load_has_more_time_where_the_whole_machine_stood_still() -> None:
    box = Loading()
    box.start_loading(0)
    assert box.pass_by(2 * LOAD_MS) == []
    assert Open(CPU) in box.pass_by(2 * LOAD_MS + LATE_NS / MS)


def test_one_that_stood_in_and_is_lost_too_ends_the_process() -> None:
    box = Box()
    now_ms, actions, _ = wedge(box)
    assert actions[-1] == ExitProcess()
    assert ExitProcess() not in box(None, now_ms + 1), "it is told once"
    box(ExecutorStarted(OTHER, tuple(profile(px, OTHER) for px in MEDIAN_MS)), now_ms + 2)
    box(ExecutorHung(OTHER), now_ms + 3)
    _, actions = box.wake()
    assert actions[-1] == ExitProcess()


def test_a_sample_that_hangs_is_noticed_too() -> None:
    profiles = [profile(px, gain=0.9) for px in MEDIAN_MS]
    policy = make_policy("adaptive")
    bench = Bench(profiles, SchedulerParameters(sample_share=0.2, first_pixels_max=LARGE), policy)
    bench(CameraConnected(camera(slo_ms=3000)), 1000)
    running: list[Infer] = []
    for at in (1, 2, 3):
        bench(RequestArrived(request(at, 4000, arrival_ms=1000)), 1000)
        running += [a for a in bench(RequestPrepared(RequestId(at), 0), 1000)
                    if isinstance(a, Infer)]  # fmt: skip
    after = bench(BatchCompleted(CPU, running[0].batch, 8 * MS), 1010)
    (second,) = (a for a in after if isinstance(a, Infer))
    after = bench(BatchCompleted(CPU, second.batch, 8 * MS), 1020)
    (sample,) = (a for a in after if isinstance(a, Sample))
    lost = [a for at_ms in range(1020, 2040, 5) for a in orders(bench(None, at_ms))]
    assert lost == [Abandon(CPU, LossCause.HUNG, sample.variant, 1000 * MS), Open(CPU)]
    assert orders(bench(SampleCompleted(CPU, sample.batch, MS), 3000)) == []
    assert not bench.scheduler.supervised[CPU].abandoned


def test_slow_batches_are_not_counted_twice() -> None:
    """As the application's time, and as the executor's slowdown, which would be multiplied."""
    box, at_ms, took_ms = Box(), 10.0, 30 * MEDIAN_MS[416]
    for _ in range(12):
        app = request(1, LATER, of="http").app
        box(RequestSampled(CPU, name(416), app, round(took_ms * MS)), at_ms)
        infer = box.begin(at_ms, 416)
        at_ms += took_ms
        box(BatchCompleted(CPU, infer.batch, round(took_ms * MS)), at_ms)
        at_ms += 1
    assert box.scheduler.slowdown[CPU] >= 4
    box.begin(at_ms, 416)
    assert orders(box(None, at_ms + 1000)) == [], "a limit is derived when the shortest has passed"
    limit = box.scheduler.supervised[CPU].limit
    assert limit is not None
    assert limit.at_ns / MS - at_ms == pytest.approx(10 * took_ms, rel=0.1)


def test_an_application_known_to_be_long_does_not_hang() -> None:
    """20 times the profile's 20 ms: ten times that is not passed by a third of it."""
    box = Box()
    for _ in range(100):
        box(RequestSampled(CPU, name(416), "long", 400 * MS), 1)
    long = request(1, LATER, of="http", arrival_ms=10, variant=name(416), app="long")
    box(RequestArrived(long), 10)
    (infer,) = (a for a in box(RequestPrepared(long.id, 0), 10) if isinstance(a, Infer))
    assert orders(box(None, 1010)) == []
    limit_ns = box.scheduler.supervised[CPU].limit
    assert limit_ns is not None
    assert (limit_ns.at_ns - 10 * MS) / MS == pytest.approx(10 * 400, rel=0.05)
    actions = box(BatchCompleted(CPU, infer.batch, 1200 * MS), 1210)
    assert Finish(long.id, BatchId(1), Outcome.ON_TIME) in actions
    box.number = 1
    box.begin(2000, 416)
    assert box.wake()[0] == 3000, "of others the profile holds"


def test_what_a_busy_machine_made_long_here_keeps_no_hanging_batch_elsewhere() -> None:
    """Work is learned relative to the profile, on all executors together."""
    box = Box(CPU, OTHER)
    quick, slow = profile(416, CPU).scaled(0.1), profile(416, OTHER).scaled(5)
    box(ExecutorStarted(CPU, (quick,)), 0)
    box(ExecutorStarted(OTHER, (slow,)), 0)
    for number in range(100):  # of 2 ms each; now and then the thread got no time for 0.4 s
        took_ns = 402 * MS if number % 20 == 0 else 2 * MS
        box(RequestSampled(CPU, name(416), "default", took_ns), 1)
    assert box.begin(1).executor == CPU
    assert box.begin(1).executor == OTHER
    limit_ns = box.scheduler.supervised[OTHER].limit
    assert limit_ns is not None
    box(BatchCompleted(CPU, BatchId(1), 2 * MS), 3)
    at_ms, (_, abandon, _) = box.wake()
    assert isinstance(abandon, Abandon)
    assert (abandon.executor, abandon.cause) == (OTHER, LossCause.HUNG)
    assert at_ms == 1 + LIMIT_MAX_NS / MS
    usual_ns = LIMIT_FACTOR * slow.quantile_ns(1, 0.99)
    assert usual_ns < LIMIT_MAX_NS / 20, "by its profile it would have been far earlier"


def drifted(box: Box) -> float:
    """Have an executor become twice as slow, with requests of half the work in between."""
    at_ms = 0.0
    for number in range(520):
        app = "half" if number % 3 == 0 else "whole"
        took_ms = 20 * (1 if app == "half" else 2) * (1 if number < 300 else 2) / 2
        sent = request(
            number, at_ms + LATER, of="http", arrival_ms=at_ms, variant=name(416), app=app
        )
        box(RequestArrived(sent), at_ms)
        (infer,) = (a for a in box(RequestPrepared(sent.id, 0), at_ms) if isinstance(a, Infer))
        box(BatchCompleted(CPU, infer.batch, round(took_ms * MS)), at_ms + took_ms)
        at_ms += 100
    box.number = 1000
    return at_ms


def knows(scheduler: Scheduler) -> tuple[object, list[float]]:
    own = [scheduler.times.learning.distribution(name(416), app) for app in ("half", "whole")]
    return scheduler.corrections[CPU], [round(d.mean, 3) for d in own if d is not None]


def test_what_is_known_outlives_the_loss_of_an_executor() -> None:
    box = Box()
    at_ms = drifted(box)
    before = knows(box.scheduler)
    factors = before[0]
    assert isinstance(factors, dict)
    assert factors[name(416)] == pytest.approx(2, rel=0.1)
    assert before[1] == pytest.approx([0.5, 1.0], rel=0.15)
    actions = box(ExecutorHung(CPU), at_ms)
    assert [type(a) for a in orders(actions)] == [Abandon, Open]
    assert knows(box.scheduler) == before, "while it is away too: this is what is kept on disk"
    again = read_state(write_state(box.scheduler))
    for scheduler in (box.scheduler, again):
        scheduler.handle(ExecutorStarted(CPU, PROFILES), round((at_ms + 500) * MS))
        assert knows(scheduler) == before
        alone = scheduler.times.expectations.single_request(name(416), "whole")
        assert alone is not None
        assert alone.usual_ns / MS == pytest.approx(40, rel=0.15)


def test_profiles_that_were_measured_anew_are_not_corrected_for_what_was_before() -> None:
    box = Box()
    at_ms = drifted(box)
    learned = knows(box.scheduler)[1]
    box(ExecutorHung(CPU), at_ms)
    slower = tuple(each.scaled(2.0) if each.variant == name(416) else each for each in PROFILES)
    box(ExecutorStarted(CPU, slower), at_ms + 500)
    factors, own = knows(box.scheduler)
    assert isinstance(factors, dict)
    assert name(416) not in factors
    assert factors[name(608)] > 1.5, "its profile is the same as before"
    assert own == learned


def test_a_factor_of_an_executor_that_is_not_there_yet_waits_for_it() -> None:
    box = Box()
    drift = LearnedDrift(OTHER, name(416), 1.5, 0)
    box(LearningRestored(Learned((), (drift,))), 1)
    box(ExecutorStarted(OTHER, tuple(profile(px, OTHER) for px in MEDIAN_MS)), 2)
    assert box.scheduler.corrections[OTHER] == {name(416): 1.5}
    row = box.scheduler._times.latencies.known(OTHER)[name(416)]
    assert row.quantile_ns(1, 0.5) == 30 * MS
