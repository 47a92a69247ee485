"""An idle box runs finished requests again: alone, rarely, the least known first, with no harm."""

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import BatchId, CameraId, DropReason, RequestId
from edgebox.scheduling.actions import Action, Drop, Finish, Infer, Release, Retain, Sample
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    CameraDisconnected,
    ExecutorStarted,
    ExecutorStopped,
    ProfilesChanged,
    RequestArrived,
    RequestPrepared,
    RequestsUnanswered,
    SampleCompleted,
    SampleFailed,
    ShutdownRequested,
)
from edgebox.scheduling.learning import Known
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.sampling import (
    KEPT_BYTES_MAX,
    KEPT_MAX,
    KEPT_PER_APPLICATION,
    SPACING_NS,
)
from edgebox.scheduling.scheduler import SchedulerParameters
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
)

GAIN = 0.9
SMALL = name(128)
"""2 ms alone in the median, 3 ms at P99."""


def samples(actions: list[Action]) -> list[Sample]:
    return [action for action in actions if isinstance(action, Sample)]


@dataclass
class Box:
    """A box of one executor and variant whose policy learns."""

    policy: str = "adaptive"
    share: float = 0.01
    slo_ms: int = 300
    px: int = 128
    bench: Bench = field(init=False)
    at: int = 0
    retained: list[RequestId] = field(default_factory=list)

    def __post_init__(self) -> None:
        parameters = SchedulerParameters(
            first_pixels_max=LARGE, sample_share=self.share, camera_pending_max=100
        )
        policy = make_policy(self.policy)
        # Batches must pay, or this policy forms none.
        self.bench = Bench([profile(self.px, gain=GAIN)], parameters, policy)
        self.bench(CameraConnected(camera(slo_ms=self.slo_ms)), 0)

    def arrive(self, at_ms: float, app: str = "default", slo_ms: float = 300) -> list[Action]:
        self.at += 1
        new = request(self.at, at_ms + slo_ms, arrival_ms=at_ms, app=app)
        actions = self.bench(RequestArrived(new), at_ms)
        return actions + self.bench(RequestPrepared(RequestId(self.at), 0), at_ms)

    def complete(self, at_ms: float, took_ms: float = 2) -> list[Action]:
        running = self.bench.scheduler.running[CPU]
        return self.bench(BatchCompleted(CPU, running.batch, round(took_ms * MS)), at_ms)

    def burst(self, at_ms: float, *apps: str, slo_ms: float = 300) -> list[Action]:
        """Let one run alone, and these as a batch behind it; return what follows from its end."""
        self.arrive(at_ms, apps[0], slo_ms)
        for app in apps:
            self.arrive(at_ms, app, slo_ms)
        actions: list[Action] = []
        while self.bench.scheduler.running:
            (running,) = self.bench.scheduler.running.values()
            took_ms = self.took_ms(running.batch_size)
            at_ms += took_ms
            actions += self.complete(at_ms, took_ms)
        self.retained += [a.request for a in actions if isinstance(a, Retain)]
        return actions

    def took_ms(self, size: int) -> float:
        """Return what a batch usually takes."""
        return MEDIAN_MS[self.px] * (1 + (size - 1) * (1 - GAIN))

    def due_ms(self) -> float | None:
        """When the sample that is next may start; the planner's wake-ups are not asked for."""
        due_ns = self.bench.scheduler._sampling.due_ns()
        return None if due_ns is None else due_ns / MS

    def sample(self) -> Sample:
        """Wait for the next sample."""
        due_ms = self.due_ms()
        assert due_ms is not None
        assert self.bench.scheduler.next_wakeup_ns() == round(due_ms * MS)
        (sample,) = samples(self.bench(None, due_ms))
        return sample

    def kept(self) -> list[RequestId]:
        """Return what may be sampled."""
        retained = self.bench.scheduler._sampling.retained.values()
        return [each.request for of_app in retained for each in of_app]

    def known(self, app: str = "default") -> Known:
        found = self.bench.scheduler.times.learning.known(CPU, name(self.px), app)
        assert found is not None
        return found


@pytest.mark.parametrize("policy", ["adaptive", "orloj"])
def test_a_member_of_a_batch_is_run_again_alone_and_learnt_from(policy: str) -> None:
    box = Box(policy)
    actions = box.burst(1000, "default", "default", "default", "default")
    (kept,) = box.retained
    # Its input must be kept before it is answered and let go.
    assert actions.index(Retain(kept)) < next(
        at for at, a in enumerate(actions) if isinstance(a, Finish) and a.request == kept
    )
    before = box.known().samples
    # Twice 2 ms are 1 % of 200 ms, which have passed since the executor started.
    (sample,) = samples(actions)
    assert sample == Sample(CPU, sample.batch, SMALL, kept, 1)
    assert box.bench(SampleCompleted(CPU, sample.batch, 5 * MS), 1020) == []
    assert box.known().samples == before + 1
    assert box.known().newest_ns == 1020 * MS
    assert box.due_ms() is None, "each request once"


def test_who_arrives_meanwhile_waits_for_the_sample_and_runs_then() -> None:
    box = Box()
    (sample,) = samples(box.burst(1000, *["default"] * 4))
    assert infers(box.arrive(1020)) == []
    assert box.bench.scheduler.queue_length == 1
    (infer,) = infers(box.bench(SampleCompleted(CPU, sample.batch, 2 * MS), 1021))
    assert infer.requests == (RequestId(box.at),)
    assert infer.batch > sample.batch


OTHER = ExecutorId("cpu/1")


def learnt_from(took_ms: float, *, beside: bool) -> Known:
    """Run a sample of so many ms, with a batch beside it all of the time or alone."""
    box = Box()
    slowed = replace(profile(128, gain=GAIN), interference=0.6)
    box.bench(ExecutorStarted(CPU, (slowed,)), 0)
    (sample,) = samples(box.burst(1000, *["default"] * 4))
    now_ms = box.bench.scheduler._now_ns / MS
    box.bench(ExecutorStarted(OTHER, (replace(slowed, executor=OTHER),)), now_ms)
    latencies = box.bench.scheduler._times.latencies
    if beside:
        (infer,) = infers(box.arrive(now_ms))
        assert infer.executor == OTHER
        now, alone = (latencies.row(OTHER, SMALL, others) for others in (None, 0))
        assert now is not None
        assert alone is not None
        assert now.median_ns[0] == round(1.6 * alone.median_ns[0]), "the sample slows the batch"
    box.bench(SampleCompleted(CPU, sample.batch, round(took_ms * MS)), now_ms + took_ms)
    assert CPU not in latencies.busy.executors
    return box.known()


def test_a_sample_counts_as_running_and_what_it_took_as_if_the_others_rested() -> None:
    assert learnt_from(2 * 1.6, beside=True).high_ns == learnt_from(2, beside=False).high_ns


def test_a_sample_of_an_executor_that_stops_slows_nobody_any_more() -> None:
    box = Box()
    assert samples(box.burst(1000, *["default"] * 4))
    busy = box.bench.scheduler._times.latencies.busy
    assert busy.executors == {CPU}
    box.bench(ExecutorStopped(CPU), 1020)
    assert not busy.executors


def test_no_sample_while_anybody_waits_or_runs() -> None:
    box = Box()
    box.arrive(1000)
    for _ in range(4):
        box.arrive(1000)
    assert not samples(box.complete(1002))
    assert box.bench.scheduler.running
    box.arrive(1003)
    assert not samples(box.complete(1010, 8)), "one waits"
    assert samples(box.complete(1012))


@pytest.mark.parametrize(
    "box", [Box("edf"), Box(share=0.0), Box("clockwork")], ids=["edf", "share 0", "clockwork"]
)
def test_nothing_is_kept_where_nobody_would_learn(box: Box) -> None:
    actions = box.burst(1000, *["default"] * 4)
    assert not any(isinstance(a, Retain | Sample) for a in actions)
    assert box.due_ms() is None


def test_what_ran_alone_is_not_run_again() -> None:
    box = Box()
    box.arrive(1000)
    assert not any(isinstance(a, Retain) for a in box.complete(1002))
    assert box.known().samples == 1


def test_what_takes_long_against_the_tightest_deadline_is_not_sampled() -> None:
    box = Box()
    tight = camera("tight", slo_ms=8)
    box.bench(CameraConnected(tight), 500)
    assert not samples(box.burst(1000, *["default"] * 4)), "3 ms are more than a third of 8 ms"
    assert box.due_ms() is None
    assert samples(box.bench(CameraDisconnected(tight.id), 1100))


@pytest.mark.parametrize(("slo_ms", "sampled"), [(8, 0), (300, 1)])
def test_without_cameras_the_deadlines_of_the_requests_count(slo_ms: int, sampled: int) -> None:
    box = Box()
    box.bench(CameraDisconnected(camera().id), 0)
    for each in range(1, 6):
        shot = request(each, 1000 + slo_ms, of="http", arrival_ms=1000, variant=SMALL)
        box.bench(RequestArrived(shot), 1000)
        box.bench(RequestPrepared(shot.id, 0), 1000)
    box.complete(1002)
    assert len(samples(box.complete(1006, box.took_ms(4)))) == sampled


def test_the_least_known_come_first_then_those_not_heard_of_for_longest() -> None:
    box = Box(share=0.0005)
    app_of: dict[RequestId, str] = {}
    for number in range(7):
        apps = ("often", "often", "seldom", "seldom")
        first = box.at + 1
        box.burst(1000.0 + number * 260, *apps)
        ids = range(first, box.at + 1)
        app_of |= {RequestId(at): app for at, app in zip(ids, (apps[0], *apps), strict=True)}
    order: list[str] = []
    while box.due_ms() is not None:
        known = {app_of[request]: box.known(app_of[request]) for request in box.kept()}
        now_ms = box.due_ms() or 0.0
        sample = box.sample()
        order.append(app_of[sample.request])
        need = {app: (each.samples, each.newest_ns) for app, each in known.items()}
        assert need[order[-1]] == min(need.values())
        box.bench(SampleCompleted(CPU, sample.batch, 2 * MS), now_ms + 2)
    # One of the others ran alone before each of the batches.
    assert order[:2] == ["seldom", "seldom"]
    assert "often" in order


def test_a_sample_that_fails_is_paid_for_and_not_tried_again() -> None:
    box = Box()
    (sample,) = samples(box.burst(1000, *["default"] * 4))
    before = box.known().samples
    assert box.bench(SampleFailed(CPU, sample.batch), 1060) == []
    assert box.bench.scheduler._sampling.running is None
    assert box.known().samples == before
    box.burst(1500, *["default"] * 4)
    due_ms = box.due_ms()
    assert due_ms is not None
    assert due_ms > 1000 + 50 / 0.01, "50 ms were spent"


def test_news_of_other_samples_is_ignored() -> None:
    box = Box()
    (sample,) = samples(box.burst(1000, *["default"] * 4))
    before = box.known().samples
    for stale in (
        SampleCompleted(CPU, BatchId(sample.batch + 1), MS),
        SampleCompleted(ExecutorId("cpu/9"), sample.batch, MS),
        SampleFailed(CPU, BatchId(sample.batch - 1)),
    ):
        assert box.bench(stale, 1020) == []
    assert box.known().samples == before
    assert box.bench.scheduler._sampling.running is not None


def test_an_executor_that_stops_takes_its_sample_and_its_inputs_along() -> None:
    box = Box(share=0.001)
    (sample,) = samples(box.burst(3000, *["default"] * 4))
    actions = box.bench(ExecutorStopped(CPU), 3020)
    assert box.bench.scheduler._sampling.running is None
    box.bench(ExecutorStarted(CPU, (profile(128, gain=GAIN),)), 3030)
    assert box.bench(SampleCompleted(CPU, sample.batch, 2 * MS), 3040) == []
    actions = box.burst(3300, *["default"] * 4)
    assert not samples(actions), "its time is counted again"
    assert Release(box.retained[-1]) in box.bench(ExecutorStopped(CPU), 3320)
    box.bench(ExecutorStarted(CPU, (profile(128, gain=GAIN),)), 3400)
    assert box.due_ms() is None


def test_other_profiles_wait_for_the_sample_and_let_go_what_was_kept_for_those_that_go() -> None:
    same, other = profile(128, gain=GAIN), profile(256, gain=GAIN)
    box = Box(share=0.001)
    (sample,) = samples(box.burst(3000, *["default"] * 4))
    box.bench(ProfilesChanged(CPU, (same, other)), 3020)
    assert box.bench.scheduler.awaits_profiles(CPU)
    before = box.known().samples
    box.bench(SampleCompleted(CPU, sample.batch, 2 * MS), 3021)
    assert not box.bench.scheduler.awaits_profiles(CPU)
    assert box.known().samples == before + 1
    assert set(box.bench.scheduler.times.latencies.profiles(CPU)) == {SMALL, name(256)}
    box.burst(3300, *["default"] * 4)
    assert box.kept() == [box.retained[-1]]
    box.bench(ProfilesChanged(CPU, (same,)), 3400)
    assert box.kept() == [box.retained[-1]]
    actions = box.bench(ProfilesChanged(CPU, (same.scaled(2), other)), 3401)
    assert Release(box.retained[-1]) in actions


def test_a_box_that_stops_lets_go_what_it_kept_and_lets_the_sample_end() -> None:
    box = Box(share=0.001)
    box.burst(1300, *["default"] * 4)
    assert box.due_ms() is not None
    assert box.bench(ShutdownRequested(), 1320) == [Release(box.retained[-1])]
    assert box.bench.scheduler.next_wakeup_ns() is None
    box = Box()
    (sample,) = samples(box.burst(1000, *["default"] * 4))
    assert box.bench(ShutdownRequested(), 1019) == []
    assert box.bench(SampleCompleted(CPU, sample.batch, 2 * MS), 1020) == []
    assert box.arrive(1030)[0] == Drop(RequestId(box.at), DropReason.SHUTDOWN, Cause.REFUSED)


def test_a_camera_that_left_is_not_retained() -> None:
    box = Box()
    box.arrive(1000)
    for _ in range(4):
        box.arrive(1000)
    box.complete(1002)
    box.bench(CameraDisconnected(CameraId("gate-1")), 1004)
    assert not any(isinstance(a, Retain) for a in box.complete(1010, 8))


def test_requests_of_long_batches_are_not_retained_more_often() -> None:
    """One batch runs after the other, half of them long; the one that ends next often is one."""
    rng, sampling = random.Random(1), Box().bench.scheduler._sampling
    at_ms, long_ones = 0, []
    for number in range(4_000):
        took_ms = rng.choice((20, 300))
        at_ms += took_ms
        members = (RequestId(2 * number), RequestId(2 * number + 1))
        batch = Infer(CPU, BatchId(number), SMALL, members, 2)
        if sampling.served(batch, request(2 * number, at_ms + 300), took_ms * MS, at_ms * MS):
            long_ones.append(took_ms == 300)
    assert len(long_ones) > 500
    assert sum(long_ones) / len(long_ones) == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize("px", [128, 608])
def test_what_is_kept_is_bounded(px: int) -> None:
    box = Box(share=0.0001, px=px, slo_ms=30_000)
    at_ms = 1.0
    for number in range(150):
        app = f"app-{number % 90}" if number > 20 else "steady"
        actions = box.burst(at_ms, app, app, app, slo_ms=30_000)
        for sample in samples(actions):
            box.bench(SampleCompleted(CPU, sample.batch, 2 * MS), at_ms + 500)
        at_ms += 1000
        sampling = box.bench.scheduler._sampling
        assert sampling._count <= KEPT_MAX
        assert sampling._bytes <= KEPT_BYTES_MAX
        assert all(len(kept) <= KEPT_PER_APPLICATION for kept in sampling.retained.values())
    assert sampling._count > 50
    assert len(sampling.retained) > 40, "the many small do not suffer from the large"


@dataclass
class VariantBatches:
    """One sample as the judge saw it."""

    started_ns: int
    expected_ns: int
    took_ns: int


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 4),
            st.sampled_from([1.0, 2.0, 9.0]),
            st.sampled_from([1, 20, 150, 1000, 9000]),
            st.sampled_from([0.3, 1.0, 4.0]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([0.002, 0.01, 0.2]),
)
def test_the_share_is_never_exceeded_and_an_idle_box_falls_silent(
    drawn: list[tuple[int, float, int, float]], share: float
) -> None:
    """Bursts of batches of any pace, pauses of any length, samples shorter or longer than told."""
    box = Box(share=share, slo_ms=3_000)
    scheduler = box.bench.scheduler
    ran: list[VariantBatches] = []
    now_ns = 0
    factor = 1.0

    def tell_until(until_ns: int) -> None:
        """Wake the box whenever it wants to be, and let its samples end."""
        nonlocal now_ns
        while True:
            due_ns = scheduler._sampling.due_ns()
            if due_ns is None or due_ns > until_ns:
                now_ns = until_ns
                return
            assert due_ns > now_ns
            now_ns = due_ns
            play(samples(box.bench(None, now_ns / MS)))

    def play(started: list[Sample]) -> None:
        nonlocal now_ns
        while started:
            (sample,) = started
            assert not scheduler._ledger.live
            running = scheduler._sampling.running
            assert running is not None
            took_ns = round(running.expected_ns * factor)
            ran.append(VariantBatches(now_ns, running.expected_ns, took_ns))
            now_ns += took_ns
            started = samples(box.bench(SampleCompleted(CPU, sample.batch, took_ns), now_ns / MS))

    for size, pace, pause_ms, sample_factor in drawn:
        factor = sample_factor
        box.arrive(now_ns / MS, slo_ms=3000)
        for _ in range(size):
            box.arrive(now_ns / MS, slo_ms=3000)
        started: list[Sample] = []
        while scheduler.running:
            (running,) = scheduler.running.values()
            took_ns = round(box.took_ms(running.batch_size) * pace * MS)
            now_ns += took_ns
            started += samples(box.complete(now_ns / MS, took_ns / MS))
        play(started)
        tell_until(now_ns + pause_ms * MS)
    woken = len(ran)
    tell_until(now_ns + 10**15)
    assert len(ran) - woken <= KEPT_PER_APPLICATION
    assert scheduler._sampling.running is None
    spent_ns = 0
    for at, each in enumerate(ran):
        spent_ns += each.took_ns
        over_ns = each.took_ns - each.expected_ns
        assert spent_ns <= share * each.started_ns + max(0, over_ns) + len(ran)
        if at:
            assert each.started_ns - ran[at - 1].started_ns >= SPACING_NS


def test_infers_are_never_on_the_sampling_executor_of_two() -> None:
    other = ExecutorId("cuda:0/0")
    parameters = SchedulerParameters(first_pixels_max=LARGE, sample_share=0.2)
    policy = make_policy("adaptive")
    bench = Bench([profile(128, gain=GAIN), profile(128, other, gain=GAIN)], parameters, policy)
    bench(CameraConnected(camera()), 0)
    running: dict[ExecutorId, Infer] = {}
    for at in range(1, 8):
        bench(RequestArrived(request(at, 1300, arrival_ms=1000)), 1000)
        for infer in infers(bench(RequestPrepared(RequestId(at), 0), 1000)):
            running[infer.executor] = infer
    started: list[Sample] = []
    while not started:
        executor, infer = running.popitem()
        took_ns = 2 * infer.batch_size * MS
        actions = bench(BatchCompleted(executor, infer.batch, took_ns), 1010)
        running |= {each.executor: each for each in infers(actions)}
        started = samples(actions)
    (sample,) = started
    bench(RequestArrived(request(9, 1400, arrival_ms=1011)), 1011)
    (infer,) = infers(bench(RequestPrepared(RequestId(9), 0), 1011))
    assert {infer.executor, sample.executor} == {CPU, other}


def test_no_sample_runs_while_an_executor_rests() -> None:
    box = Box()
    (sample,) = samples(box.burst(1000, "default", "default", "default", "default"))
    box.bench(SampleCompleted(CPU, sample.batch, 2 * MS), 1020)
    assert not samples(box.burst(1030, "default", "default", "default", "default"))
    due_ms = box.due_ms()
    assert due_ms is not None
    box.arrive(due_ms - 1, slo_ms=5)
    infer = box.bench.scheduler.running[CPU]
    refusal = RequestsUnanswered(CPU, infer.batch, infer.requests, DropReason.OVERLOAD)
    actions = box.bench(refusal, due_ms + 3)
    assert Drop(RequestId(box.at), DropReason.OVERLOAD, Cause.OVERLOADED) in actions
    assert not samples(actions + box.bench(None, due_ms + 100))
    wakeup_ns = box.bench.scheduler.next_wakeup_ns()
    assert wakeup_ns is None or wakeup_ns > (due_ms + 100) * MS
    rested = BatchCompleted(CPU, infer.batch, 200 * MS)
    assert samples(box.bench(rested, due_ms + 203))


def test_what_ends_after_the_box_was_told_to_stop_is_not_retained() -> None:
    box = Box()
    for _ in range(5):
        box.arrive(1000)
    box.complete(1002)
    box.bench(ShutdownRequested(), 1003)
    assert not any(isinstance(a, Retain) for a in box.complete(1006, box.took_ms(4)))
