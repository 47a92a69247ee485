"""Whatever happens, in whatever order, every request ends exactly once and no order is absurd."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.plans import Assignment, Group, Plan
from edgebox.domain.requests import (
    BatchId,
    Camera,
    CameraId,
    DropReason,
    LinkState,
    Outcome,
    Request,
    RequestId,
)
from edgebox.scheduling.events import (
    Abandon,
    Action,
    Advise,
    BatchCompleted,
    BatchFailed,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    ComputePlan,
    Drop,
    Event,
    ExecutorHung,
    ExecutorStarted,
    ExecutorStopped,
    ExitProcess,
    Finish,
    Infer,
    LinkMeasured,
    Load,
    LoadReturned,
    LossCause,
    Open,
    OpenFailed,
    PlanComputed,
    PlanFailed,
    Prepare,
    Release,
    RequestArrived,
    RequestPrepared,
    RequestRejected,
    Retain,
    Sample,
    SampleCompleted,
    SampleFailed,
    ShutdownRequested,
    Unload,
    VariantsAvailable,
)
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.policies import POLICIES, make_policy
from edgebox.scheduling.request_stages import TRANSITIONS, WAITING, Cause, Stage, Transition
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from tests.scheduling.held import Held
from tests.scheduling.scene import FAMILY, MEDIAN_MS, MS, camera, name, profile, request

EXECUTORS = (ExecutorId("cpu/0"), ExecutorId("cuda:0/0"))
CAMERAS = ("gate-1", "gate-2", "gate-3")
PARAMETERS = SchedulerParameters(camera_pending_max=3, box_pending_max=6, sample_share=0.2)


def reachable(stage: Stage) -> set[Stage]:
    """Return a stage and all that may follow it."""
    found, added = {stage}, {stage}
    while added:
        added = {row.to for (at, _), row in TRANSITIONS.items() if at in added} - found
        found |= added
    return found


STEPS = {stage: reachable(stage) for stage in Stage}


def fresh(policy: str) -> Scheduler:
    return Scheduler(PARAMETERS, make_policy(policy))


def profiles(executor: ExecutorId, loaded: int) -> tuple[LatencyProfile, ...]:
    gain = 0.3 if executor == EXECUTORS[0] else 0.9
    return tuple(
        profile(px, executor, gain=gain) for at, px in enumerate(MEDIAN_MS) if loaded >> at & 1
    )


@dataclass
class World:
    """Turns drawn numbers into events, some sensible and some not, and watches the answers."""

    policy: str
    scheduler: Scheduler = field(init=False)
    now_ns: int = 0
    journal: list[tuple[int, Event | None, list[Action]]] = field(default_factory=list)
    loaded: dict[ExecutorId, dict[VariantName, LatencyProfile]] = field(default_factory=dict)
    held: Held = field(default_factory=Held)
    busy: dict[ExecutorId, Infer] = field(default_factory=dict)
    alive: dict[RequestId, Request] = field(default_factory=dict)
    variant: dict[RequestId, VariantName] = field(default_factory=dict)
    preparing: list[RequestId] = field(default_factory=list)
    ready: set[RequestId] = field(default_factory=set)
    open: set[CameraId] = field(default_factory=set)
    groups: tuple[Group, ...] = ()
    plans: list[ComputePlan] = field(default_factory=list)
    tried: set[RequestId] = field(default_factory=set)
    """What seemed to have no chance, and was prepared all the same."""
    ended: set[RequestId] = field(default_factory=set)
    retained: set[RequestId] = field(default_factory=set)
    sampling: Sample | None = None
    opening: set[ExecutorId] = field(default_factory=set)
    stopping: bool = False
    cancelled: set[RequestId] = field(default_factory=set)
    """Requests whose camera left while they ran."""
    stale: Counter[str] = field(default_factory=Counter)
    stages: dict[RequestId, Stage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler = fresh(self.policy)

    def tell(self, event: Event | None) -> None:
        before = dict(self.busy)
        self._judge_stale(event)
        actions = self.scheduler.handle(event, self.now_ns)
        self.journal.append((self.now_ns, event, actions))
        check_invariants(self.scheduler)
        self._note(event)
        for action in actions:
            self._judge(action, event, before)
        assert self.scheduler.queue_length + sum(
            len(infer.requests) for infer in self.busy.values()
        ) == len(self.alive)
        assert self.scheduler.running == self.busy
        assert self.scheduler.stale_events == +self.stale
        self._follow_stages()
        due_ns = self.scheduler.next_wakeup_ns()
        assert due_ns is None or due_ns > self.now_ns

    def _follow_stages(self) -> None:
        """Hold every request's stage against the table and against what the world has seen."""
        live = self.scheduler._ledger.live
        for number, of in live.items():
            assert of.stage in STEPS[self.stages.get(number, Stage.RECEIVED)]
            assert of.waits == (number in self.ready or number in self.preparing)
            assert (of.stage is Stage.CANCELLED) == (number in self.cancelled)
        self.stages = {number: of.stage for number, of in live.items()}

    def _judge_stale(self, event: Event | None) -> None:
        """Say before the Scheduler does whether an event comes too late to change anything."""
        match event:
            case RequestArrived():
                stale = event.request.id in self.alive
            case RequestPrepared() | RequestRejected():
                stale = event.request not in self.preparing
            case BatchCompleted() | BatchFailed():
                running = self.busy.get(event.executor)
                stale = running is None or running.batch != event.batch
            case SampleCompleted() | SampleFailed():
                of = self.sampling
                stale = of is None or (of.executor, of.batch) != (event.executor, event.batch)
            case CameraDisconnected():
                living = {of.camera for r, of in self.alive.items() if r not in self.cancelled}
                stale = event.camera not in self.open | living
            case CameraChanged():
                stale = event.camera.id not in self.open
            case LinkMeasured():
                stale = event.camera not in self.open
            case _:
                return
        self.stale[type(event).__name__] += stale

    def pass_time(self, until_ns: int) -> None:
        while (due_ns := self.scheduler.next_wakeup_ns()) is not None and due_ns < until_ns:
            self.now_ns = due_ns
            self.tell(None)
        self.now_ns = until_ns

    def _note(self, event: Event | None) -> None:
        self.held.note(event)
        match event:
            case RequestArrived():
                self.alive.setdefault(event.request.id, event.request)
            case RequestPrepared() if event.request in self.preparing:
                self.preparing.remove(event.request)
                self.ready.add(event.request)
            case ExecutorStarted() | ExecutorStopped() | OpenFailed():
                self._note_executor(event)
            case SampleCompleted() | SampleFailed() if self.sampling is not None:
                if (self.sampling.executor, self.sampling.batch) == (event.executor, event.batch):
                    self.sampling = None
            case BatchCompleted() | BatchFailed():
                running = self.busy.get(event.executor)
                if running is not None and running.batch == event.batch:
                    del self.busy[event.executor]
            case CameraConnected():
                self._cancel(event.camera.id if event.camera.id in self.open else None)
                self.open.add(event.camera.id)
            case CameraDisconnected():
                self._cancel(event.camera)
                self.open.discard(event.camera)
            case ShutdownRequested():
                self.stopping = True
            case _:
                pass

    def _cancel(self, camera: CameraId | None) -> None:
        running = {member for infer in self.busy.values() for member in infer.requests}
        self.cancelled |= {r for r in running if self.alive[r].camera == camera}

    def _note_executor(self, event: ExecutorStarted | ExecutorStopped | OpenFailed) -> None:
        self.opening.discard(event.executor)
        if isinstance(event, OpenFailed):
            return
        self._halt(event.executor)
        self.loaded.pop(event.executor, None)
        if isinstance(event, ExecutorStarted):
            self.loaded[event.executor] = {p.variant: p for p in event.profiles}

    def _halt(self, executor: ExecutorId) -> None:
        self.busy.pop(executor, None)
        if self.sampling is not None and self.sampling.executor == executor:
            self.sampling = None

    def _judge(  # noqa: PLR0912 - one case a kind of action
        self, action: Action, event: Event | None, before: dict[ExecutorId, Infer]
    ) -> None:
        match action:
            case Prepare():
                assert isinstance(event, RequestArrived)
                assert event.request.id == action.request
                assert not self.stopping
                assert self._runs_on(action.variant)
                self.variant[action.request] = action.variant
                if self.scheduler._trials.is_of(action.request):
                    assert self.scheduler.queue_length == 1, "somebody else waits"
                    self.tried.add(action.request)
                self.preparing.append(action.request)
            case Infer():
                self._judge_infer(action)
            case Retain():
                assert isinstance(event, BatchCompleted)
                assert action.request in before[event.executor].requests
                assert action.request in self.alive
                self.retained.add(action.request)
            case Release():
                self.retained.remove(action.request)
            case Sample():
                self._judge_sample(action)
            case Finish():
                assert isinstance(event, BatchCompleted)
                assert action.request in before[event.executor].requests
                on_time = self.now_ns <= self.alive[action.request].deadline_ns
                assert action.outcome is (Outcome.ON_TIME if on_time else Outcome.LATE)
                self._end(action.request)
            case Drop():
                if action.reason is DropReason.QUEUE:
                    self._judge_lost(action.request)
                self._end(action.request)
            case Advise():
                assert action.camera in self.open
                assert action.advice == self.scheduler.advice[action.camera]
            case ComputePlan():
                assert not self.plans, "a plan is already being computed"
                assert {c.camera.id for c in action.snapshot.cameras} == self.open
                assert not self.stopping
                self.plans.append(action)
            case Abandon() | Open() | ExitProcess():
                self._judge_supervision(action)
            case Load() | Unload():
                in_use = {self.variant[request] for request in self.alive}
                self.held.judge(action, in_use)

    def _judge_supervision(self, action: Abandon | Open | ExitProcess) -> None:
        match action:
            case Abandon():
                self._judge_abandoned(action)
            case Open():
                self._judge_open(action)
            case ExitProcess():
                assert not self.loaded, "somebody is up"

    def _judge_abandoned(self, abandon: Abandon) -> None:
        """What ran on it has ended by now, and nobody runs anything there any more."""
        executor = abandon.executor
        if abandon.cause is LossCause.OPENING:
            self.opening.remove(executor)
            return
        running = self.busy.get(executor)
        if running is not None:
            assert self.ended.issuperset(running.requests)
        if abandon.cause is LossCause.HUNG and abandon.variant is not None:
            assert abandon.waited_ns >= PARAMETERS.batch_limit_min_ns
        self._halt(executor)
        del self.loaded[executor]
        self.held.memories.pop(executor, None)

    def _judge_open(self, order: Open) -> None:
        assert order.executor not in self.loaded
        assert order.executor not in self.opening
        assert not self.stopping
        self.opening.add(order.executor)

    def _runs_on(self, variant: VariantName) -> list[ExecutorId]:
        return [e for e, on in self.loaded.items() if variant in on and self.held.runs(e, variant)]

    def _judge_sample(self, sample: Sample) -> None:
        assert not self.alive, "somebody waits or runs"
        assert self.sampling is None
        assert not self.stopping
        assert self.scheduler.policy.wants_samples
        assert self.variant[sample.request] == sample.variant
        assert sample.executor in self._runs_on(sample.variant)
        sizes = self.loaded[sample.executor][sample.variant].batch_sizes
        assert sample.batch_size == sizes[0]
        self.retained.remove(sample.request)
        self.sampling = sample

    def _judge_infer(self, infer: Infer) -> None:
        assert infer.executor not in self.busy
        assert self.sampling is None or self.sampling.executor != infer.executor
        assert infer.executor in self._runs_on(infer.variant)
        self._judge_home(infer)
        sizes = self.loaded[infer.executor][infer.variant].batch_sizes
        assert infer.batch_size in sizes
        assert 1 <= len(infer.requests) <= infer.batch_size
        for member in infer.requests:
            assert self.variant[member] == infer.variant
            self.ready.remove(member)
            if member in self.tried or self.scheduler._trials.running == infer.batch:
                assert infer.requests == (member,), "what is tried runs alone"
            elif self.policy == "edf":
                last_ns = self.alive[member].last_deadline_ns
                quickest_ns = self._quickest_ns(infer.variant, self.alive[member].app)
                assert self.now_ns + quickest_ns <= last_ns, "a lost request was run"
        self.busy[infer.executor] = infer

    def _judge_home(self, infer: Infer) -> None:
        """Executors run what is theirs, or what is short enough while nothing of theirs waits."""
        own = next((g for g in self.groups if infer.executor in g.executors), None)
        home = next((g for g in self.groups if infer.variant in g.variants), None)
        if own is None or home is None or own is home:
            return
        if set(home.executors).isdisjoint(self._runs_on(infer.variant)):
            return
        assert not any(self.variant[each] in own.variants for each in self.ready)
        expectations = self.scheduler.times.expectations
        for app in {self.alive[member].app for member in infer.requests}:
            high_ns = expectations.high_ns(
                infer.executor, infer.variant, app, infer.batch_size, others=0
            )
            assert high_ns <= own.steal_budget_ns + 1

    def _judge_lost(self, request: RequestId) -> None:
        if self.policy == "edf":
            of = self.alive[request]
            quickest_ns = self._quickest_ns(self.variant[request], of.app)
            assert self.now_ns + quickest_ns > of.last_deadline_ns

    def _quickest_ns(self, variant: VariantName, app: str) -> int:
        """Return what admission goes by: who was let in by it is not lost by more."""
        alone = self.scheduler.times.expectations.single_request(variant, app)
        return 0 if alone is None else int(alone.low_ns)

    def _end(self, request: RequestId) -> None:
        del self.alive[request]
        assert request not in self.ended
        self.ended.add(request)
        self.ready.discard(request)
        if request in self.preparing:
            self.preparing.remove(request)


def arrival(world: World, a: int, b: int) -> Event:
    # Ids are never given anew, except that a living one may be repeated.
    at = len(world.alive) + len(world.ended)
    if b % 11 == 0 and world.alive:
        at = next(iter(world.alive))
    shot = name(list(MEDIAN_MS)[b % 5]) if b % 7 == 0 else None
    who = "http" if shot else CAMERAS[a % 3]
    deadline_ms = world.now_ns / MS + (b % 13) * 10
    size = (40 * (1 + b % 16), 30 * (1 + a % 16))
    later = [(deadline_ms + 20 * (1 + b % 3), 0.5), (deadline_ms + 90, 0.2)][: a % 4]
    later = [] if a % 4 == 3 else later
    told = (None, name(128), name(416), name(608), name(999))[(a + b) % 5]
    arrived = request(at, deadline_ms, of=who, size=size, variant=shot, later=later, advised=told)
    return RequestArrived(arrived)


def prepared(world: World, a: int, b: int) -> RequestId:
    if world.preparing and b % 6:
        return world.preparing[a % len(world.preparing)]
    return RequestId(a % (len(world.variant) + 2))


def batch(world: World, a: int, b: int) -> BatchId:
    running = world.busy.get(EXECUTORS[a % 2])
    return running.batch if running is not None and b % 5 else BatchId(b)


def sampled(world: World, b: int) -> tuple[ExecutorId, BatchId]:
    running = world.sampling
    if running is not None and b % 5:
        return running.executor, running.batch
    return EXECUTORS[b % 2], BatchId(b)


def plan(world: World, a: int, b: int) -> Event:
    world.plans.clear()
    variant = name(list(MEDIAN_MS)[b % 5])
    assignments = [
        Assignment(CameraId(c), variant, 1 + b % 3, 85, True, f"{b % 4}") for c in CAMERAS[: a % 4]
    ]
    given = {each.camera: each for each in assignments}
    world.groups = groups(a, b)
    return PlanComputed(Plan(world.now_ns, given, groups=world.groups))


def groups(a: int, b: int) -> tuple[Group, ...]:
    """Give each executor some of the variants, one of which may be nobody's."""
    if b % 3 == 0:
        return ()
    px = list(MEDIAN_MS)
    cut = 1 + b % 4
    one = Group((EXECUTORS[a % 2],), tuple(map(name, px[:cut])), b % 7 * 5 * MS)
    other = Group((EXECUTORS[1 - a % 2],), tuple(map(name, px[cut + b % 2 :])), b % 5 * 10 * MS)
    return (one, other)


def limited(world: World, a: int, b: int) -> Event | None:
    """Limit an executor's memory; a box does that only when it starts, before anything runs."""
    if world.alive or world.sampling:
        return None
    executor = EXECUTORS[a % 2]
    return world.held.limited(executor, world.loaded.get(executor, ()), 1 + b % 4, a)


def plan_failed(world: World, a: int, b: int) -> Event:
    world.plans.clear()
    return PlanFailed()


def wishes(a: int, b: int) -> Camera:
    return camera(CAMERAS[a % 3], slo_ms=20 + b * 5, rate_hz=1 + b, min_accuracy=0.5 * (b % 2))


def link(a: int, b: int) -> Event:
    state = LinkState(bandwidth_bps=b * 1e5, rtt_ns=a * MS)
    return LinkMeasured(CameraId(CAMERAS[a % 3]), state)


MAKERS: dict[str, Callable[[World, int, int], Event | None]] = {
    "arrived": arrival,
    "prepared": lambda w, a, b: RequestPrepared(prepared(w, a, b), b % 9 * MS),
    "rejected": lambda w, a, b: RequestRejected(prepared(w, a, b)),
    "completed": lambda w, a, b: BatchCompleted(EXECUTORS[a % 2], batch(w, a, b), b * MS),
    "failed": lambda w, a, b: BatchFailed(EXECUTORS[a % 2], batch(w, a, b)),
    "sampled": lambda w, a, b: SampleCompleted(*sampled(w, b), a * MS),
    "sample_failed": lambda w, a, b: SampleFailed(*sampled(w, b)),
    "started": lambda w, a, b: ExecutorStarted(EXECUTORS[a % 2], profiles(EXECUTORS[a % 2], b)),
    "stopped": lambda w, a, b: ExecutorStopped(EXECUTORS[a % 2]),
    "hung": lambda w, a, b: ExecutorHung(EXECUTORS[a % 2]),
    "open_failed": lambda w, a, b: OpenFailed(EXECUTORS[a % 2]),
    "load_returned": lambda w, a, b: LoadReturned(EXECUTORS[a % 2]),
    "limited": limited,
    "load_ended": lambda w, a, b: w.held.ended(EXECUTORS[a % 2], a, b),
    "offered": lambda w, a, b: VariantsAvailable(FAMILY[: 1 + b % 5]),
    "opened": lambda w, a, b: CameraConnected(wishes(a, b)),
    "changed": lambda w, a, b: CameraChanged(wishes(a, b)),
    "closed": lambda w, a, b: CameraDisconnected(CameraId([*CAMERAS, "http"][b % 4])),
    "measured": lambda w, a, b: link(a, b),
    "planned": plan,
    "plan_failed": plan_failed,
    "shutdown": lambda w, a, b: ShutdownRequested() if b % 16 == 0 else None,
    "wake": lambda w, a, b: None,
}
KINDS = (
    *MAKERS,
    *("arrived",) * 10,
    *("prepared",) * 8,
    *("completed",) * 5,
    *("load_ended",) * 3,
    "sampled",
    "opened",
    "planned",
)
SOMETIMES = (Retain, Release, Sample, Load, Unload, Abandon, Open)
"""Orders that only some worlds bring forth."""
STALE = (
    "RequestArrived", "RequestPrepared", "RequestRejected", "BatchCompleted", "BatchFailed",
    "SampleCompleted", "SampleFailed", "CameraChanged", "CameraDisconnected", "LinkMeasured",
)  # fmt: skip
LATER_NS = (*(0, 0, 1, MS, MS, 3 * MS) * 4, 17 * MS, 60 * MS, 700 * MS, 5000 * MS)
Drawn = list[tuple[str, int, int, int]]


def long_story(rng: random.Random) -> Drawn:
    return [
        (rng.choice(KINDS), rng.randrange(32), rng.randrange(64), rng.choice(LATER_NS))
        for _ in range(200)
    ]


def calm_story(rng: random.Random) -> Drawn:
    """Bursts that are answered, with pauses in which an idle box may sample."""
    story: Drawn = [("opened", 1, 63, 0), ("opened", 2, 63, 0)]
    story += [("limited", at, rng.randrange(64), 0) for at in range(rng.randrange(3))]
    for _ in range(20):
        story += [("arrived", at % 3, 12, 0) for at in range(6)]
        story += [("prepared", 0, 1, 0)] * 6
        story += [("completed", at % 2, rng.randint(1, 4), MS) for at in range(6)]
        story += [("sampled", rng.randrange(8), 1, rng.choice(LATER_NS)) for _ in range(4)]
        story.append((rng.choice(KINDS), rng.randrange(32), rng.randrange(64), MS))
    return story


steps = st.one_of(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.integers(0, 31),
            st.integers(0, 63),
            st.sampled_from(LATER_NS),
        ),
        max_size=120,
    ),
    st.integers(0, 2**32).map(random.Random).map(long_story),
    st.integers(0, 2**32).map(random.Random).map(calm_story),
)


policies = st.sampled_from(sorted(POLICIES))


def played(drawn: Drawn, policy: str) -> World:
    world = World(policy)
    world.tell(VariantsAvailable(FAMILY))
    for executor in EXECUTORS:
        world.tell(ExecutorStarted(executor, profiles(executor, 31)))
    world.tell(CameraConnected(camera("gate-1")))
    for kind, a, b, later_ns in drawn:
        world.pass_time(world.now_ns + later_ns)
        world.tell(MAKERS[kind](world, a, b))
    return world


@settings(max_examples=300, deadline=None)
@given(steps, policies)
def test_every_request_ends_exactly_once(drawn: Drawn, policy: str) -> None:
    world = played(drawn, policy)
    world.tell(ShutdownRequested())
    for executor, infer in list(world.busy.items()):
        world.tell(BatchCompleted(executor, infer.batch, MS))
    if world.sampling is not None:
        world.tell(SampleCompleted(world.sampling.executor, world.sampling.batch, MS))
    assert world.retained == set()
    assert world.scheduler._sampling.running is None
    assert world.alive == {}
    asked = {e.request.id for _, e, _ in world.journal if isinstance(e, RequestArrived)}
    assert world.ended == asked
    assert world.scheduler.next_wakeup_ns() is None
    assert list(world.scheduler._policy.pending()) == []


@settings(max_examples=100, deadline=None)
@given(steps, policies)
def test_a_replay_repeats_every_action(drawn: Drawn, policy: str) -> None:
    again = fresh(policy)
    for now_ns, event, actions in played(drawn, policy).journal:
        assert again.handle(event, now_ns) == actions


@settings(max_examples=200, deadline=None)
@given(steps, policies, st.integers(0, 2**32))
def test_early_and_repeated_wakeups_change_nothing(drawn: Drawn, policy: str, seed: int) -> None:
    # One drawn seed: hypothesis takes longer for the instants one by one than the scheduler.
    rng, again, last_ns = random.Random(seed), fresh(policy), 0
    for now_ns, event, actions in played(drawn, policy).journal:
        for early_ns in sorted(rng.randint(last_ns, now_ns) for _ in range(rng.randint(0, 3))):
            due_ns = again.next_wakeup_ns()
            if due_ns is None or early_ns < due_ns:
                assert again.handle(None, early_ns) == []
        assert again.handle(event, now_ns) == actions
        assert again.handle(None, now_ns) == []
        last_ns = now_ns


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_random_events_reach_every_ending(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The properties above would be worth little if their worlds never got anywhere."""
    rng, seen, moved = random.Random(7), Counter[object](), set[tuple[Stage, Cause]]()

    def transition(stage: Stage, cause: Cause) -> Transition:
        moved.add((stage, cause))
        return TRANSITIONS[stage, cause]

    monkeypatch.setattr("edgebox.scheduling.ledger.transition", transition)
    for number in range(50):
        story = calm_story(rng) if number % 5 == 0 else long_story(rng)
        world = played(story, policy)
        seen.update(+world.stale)
        for _, _, actions in world.journal:
            seen.update(a.outcome for a in actions if isinstance(a, Finish))
            seen.update(a.reason for a in actions if isinstance(a, Drop))
            seen.update(type(a) for a in actions if isinstance(a, SOMETIMES))
            seen.update("batch" for a in actions if isinstance(a, Infer) and len(a.requests) > 1)
    never: set[object] = {Outcome.DROPPED, DropReason.SENDER}
    if not POLICIES[policy]().wants_samples:
        never |= {Retain, Release, Sample}
    if policy == "clipper":  # it drops nothing
        never.add(DropReason.QUEUE)
    assert set(seen) == {*Outcome, *DropReason, "batch", *SOMETIMES, *STALE} - never
    seldom = {(Stage.READY, Cause.SHUTDOWN), (Stage.READY, Cause.TRIAL_EXPIRED)}
    if policy == "clipper":
        seldom |= {(stage, Cause.EXPIRED) for stage in WAITING}
    assert set(TRANSITIONS) - moved - seldom == {(Stage.RECEIVED, Cause.REFUSED)}
