"""A Scheduler among any events: it keeps what it should hold, and judges every action.

The checks are assertions: they hold nothing where Python runs with -O.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import (
    DropReason,
    Outcome,
    Request,
    RequestId,
)
from edgebox.scheduling.actions import (
    Abandon,
    Action,
    Advise,
    Collect,
    ComputePlan,
    Drop,
    ExitProcess,
    Finish,
    Infer,
    Load,
    Open,
    Prepare,
    Release,
    Retain,
    RunAgain,
    Sample,
    Unload,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    CropsPrepared,
    Event,
    ExecutorGone,
    LinkMeasured,
    ProfilesChanged,
    RequestArrived,
    RequestPrepared,
    RequestRejected,
    RequestsUnanswered,
    SampleCompleted,
    SampleFailed,
)
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.request_stages import TRANSITIONS, Cause, Stage
from edgebox.simulation.faults.observed import Observed
from edgebox.simulation.faults.small_box import FAMILY, PARAMETERS, VARIANTS


def reachable(stage: Stage) -> set[Stage]:
    """Return a stage and all that may follow it."""
    found, added = {stage}, {stage}
    while added:
        added = {row.to for (at, _), row in TRANSITIONS.items() if at in added} - found
        found |= added
    return found


STEPS = {stage: reachable(stage) for stage in Stage}


@dataclass
class World(Observed):
    """Judges every order by what was seen before."""

    _variants_before: dict[RequestId, VariantName] = field(default_factory=dict)
    """Those of the live requests before the call."""

    def tell(self, event: Event | None) -> list[Action]:
        """Hand an event to the Scheduler, None for a wake-up; judge and return its orders."""
        before = dict(self.busy)
        if self.held.memories:
            self._variants_before = {each: self.variant[each] for each in self.alive}
        self._judge_stale(event)
        actions = self.scheduler.handle(event, self.now_ns)
        if self.keeps_journal:
            self.journal.append((self.now_ns, event, actions))
        self._calls += 1
        checked = self._calls % self.check_every == 0
        if checked:
            check_invariants(self.scheduler)
        self._note(event)
        self._follow_variants()
        for action in actions:
            self._judge(action, event, before)
        running = sum(len(infer.requests) for infer in self.busy.values())
        assert self.scheduler.queue_length + running == len(self.alive)
        if checked:
            self._compare()
        if self.policy == "edf":
            self._follow_deadlines(event)
        self.due_ns = self.scheduler.next_wakeup_ns()
        assert self.due_ns is None or self.due_ns > self.now_ns
        return actions

    def check(self) -> None:
        """Check all that is else checked after every `check_every`th call."""
        check_invariants(self.scheduler)
        self._compare()

    def _compare(self) -> None:
        """Hold the Scheduler's state against what was seen from outside."""
        assert self.scheduler.running == self.busy
        assert self.scheduler.stale_events == +self.stale
        for executor, on in self.loaded.items():
            assert self.scheduler.times.latencies.known(executor).keys() == on.keys()
            assert self.scheduler.supervised[executor].variants == on.keys()
            assert self.scheduler.awaits_profiles(executor) == (executor in self.changing)
        self._follow_stages()
        self._follow_frames()

    def _follow_stages(self) -> None:
        """Hold every request's stage against the table and against what the world has seen."""
        live = self.scheduler._ledger.live
        for number, of in live.items():
            assert of.stage in STEPS[self.stages.get(number, Stage.RECEIVED)]
            assert of.waits == (number in self.ready or number in self.preparing)
            assert (of.stage is Stage.CANCELLED) == (number in self.cancelled)
            assert (of.stage is Stage.UNNEEDED) == (number in self.unneeded)
        self.stages = {number: of.stage for number, of in live.items()}

    def _follow_frames(self) -> None:
        """Frames end as soon as nothing is left to wait for, and crops take nobody's room."""
        for frame in self.joined.values():
            assert frame.collected
            assert frame.pending, "a frame whose crops have all ended goes on"
            due_ns = frame.request.last_deadline_ns - self.scheduler._endings.partial_early_ns
            assert self.now_ns < due_ns, "a frame goes on after its deadline"
        assert self.frames_waiting() <= PARAMETERS.box_pending_max

    def _follow_deadlines(self, event: Event | None) -> None:
        policy = self.scheduler.policy
        entries, later = policy._entries, policy._later  # type: ignore[attr-defined]
        for number, (variant, _, deadline_ns) in entries.items():
            if number in self.queued_until_ns:
                continue
            until_ns = later[number][-1].by_ns if later.get(number) else deadline_ns
            self.queued_until_ns[number] = until_ns
            of = self.alive[number]
            reserve_ns = of.last_deadline_ns - until_ns
            assert reserve_ns >= 0
            camera = self.cameras.get(of.camera)
            if camera is None or camera.pipeline is None:
                assert reserve_ns == 0, "time is reserved for no later stage"
            elif isinstance(event, RequestArrived):
                left_ns = of.deadline_ns - self.now_ns - self._quickest_ns(variant, of.app)
                assert reserve_ns <= max(0, left_ns), "more is reserved than was left"

    def _follow_variants(self) -> None:
        sides = [variant.name for variant in FAMILY]
        for number, live in self.scheduler._ledger.live.items():
            admitted = self.variant.setdefault(number, live.variant)
            if live.variant == admitted:
                continue
            assert self.policy.endswith(VARIANTS)
            assert live.variant in live.variants, "it must not run there"
            of = self.alive[number]
            assert of.variant is None, "its client named another"
            assert not of.optional
            assert sides.index(live.variant) <= sides.index(live.variants[0])
            self.variant[number] = live.variant

    def _judge_stale(self, event: Event | None) -> None:
        """Say before the Scheduler does whether an event comes too late to change anything."""
        match event:
            case RequestArrived():
                stale = event.request.id in self.alive
            case CropsPrepared():
                unknown = Counter(event.requests)
                unknown.subtract(Counter(set(event.requests) & set(self.preparing)))
                self.stale["CropsPrepared"] += unknown.total()
                return
            case RequestPrepared() | RequestRejected():
                stale = event.request not in self.preparing
            case RequestsUnanswered() | BatchCompleted() | BatchFailed():
                running = self.busy.get(event.executor)
                stale = running is None or running.batch != event.batch
            case SampleCompleted() | SampleFailed():
                of = self.sampling
                stale = of is None or (of.executor, of.batch) != (event.executor, event.batch)
            case CameraDisconnected():
                gone = self.cancelled | self.unneeded
                living = {of.camera for r, of in self.alive.items() if r not in gone}
                living |= {frame.request.camera for frame in self.joined.values()}
                stale = event.camera not in self.open | living
            case CameraChanged():
                stale = event.camera.id not in self.open
            case LinkMeasured():
                stale = event.camera not in self.open
            case ProfilesChanged():
                stale = event.executor not in self.loaded
            case _:
                return
        self.stale[type(event).__name__] += stale

    def pass_time(self, until_ns: int) -> None:
        while self.due_ns is not None and self.due_ns < until_ns:
            self.now_ns = self.due_ns
            self.tell(None)
        self.now_ns = until_ns

    def _judge(  # noqa: PLR0912, PLR0915 - one case a kind of action
        self, action: Action, event: Event | None, before: dict[ExecutorId, Infer]
    ) -> None:
        match action:
            case Prepare():
                self._judge_admitted(action, event)
                assert not self.stopping
                assert self._runs_on(action.variant)
                self.variant[action.request] = action.variant
                if self.scheduler._trials.is_of(action.request):
                    assert self.scheduler.queue_length == 1, "somebody else waits"
                    self.tried.add(action.request)
                self.preparing.append(action.request)
            case Infer():
                self._judge_infer(action)
            case RunAgain():
                self._judge_run_again(action, event)
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
                if action.request in self.joined:
                    self._judge_joined(action)
                    return
                assert isinstance(event, BatchCompleted)
                assert action.request in before[event.executor].requests
                assert self.alive[action.request].frame is None, "a crop is answered alone"
                assert action.missing == ()
                self._judge_outcome(action, self.alive[action.request])
                self._end(action.request)
            case Collect():
                assert isinstance(event, BatchCompleted)
                assert action.request in before[event.executor].requests
                assert action.batch == event.batch
                self._judge_collected(action.request)
            case Drop():
                self._judge_drop(action, event)
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
                self._judge_memory(action)

    def _judge_memory(self, order: Load | Unload) -> None:
        # What moves to another variant in this call does so after the order, and only to one that
        # still runs somewhere.
        stay = [r for r in self.alive if self._variants_before.get(r) == self.variant[r]]
        in_use = {self.variant[request] for request in stay}
        self.held.judge(order, in_use, self.scheduler.supervised[order.executor].variants)

    def _judge_outcome(self, finish: Finish, request: Request) -> None:
        on_time = self.now_ns <= request.deadline_ns
        assert finish.outcome is (Outcome.ON_TIME if on_time else Outcome.LATE)

    def _judge_admitted(self, order: Prepare, event: Event | None) -> None:
        """A frame is admitted when it arrives, a crop when it is cut, to a variant of its stage."""
        if isinstance(event, RequestArrived):
            assert event.request.id == order.request
            return
        assert isinstance(event, BatchCompleted)
        assert order.request in {crop.id for crop in event.spawned}
        crop = self.alive[order.request]
        assert any(order.request in frame.pending for frame in self.joined.values())
        assert crop.frame is not None
        of = self.pipelines[RequestId(crop.frame)]
        stage = None if of is None else of.stage(crop.stage)
        assert stage is not None
        sides = [variant.name for variant in FAMILY]
        if stage.variant is not None:
            larger = sides.index(order.variant) > sides.index(stage.variant)
            smaller_ones = sides[: sides.index(order.variant)]
            offered = {variant.name for variant in self.scheduler._ladders.offered}
            assert not larger or not any(self._runs_on(s) and s in offered for s in smaller_ones)

    def _judge_collected(self, request: RequestId) -> None:
        frame = self.joined.get(request)
        if frame is not None:
            assert not frame.collected
            assert frame.pending
            frame.collected = True
            del self.alive[request]
            return
        crop = self.alive[request]
        assert crop.frame is not None
        del self.joined[RequestId(crop.frame)].pending[request]
        self._end(request)

    def _judge_joined(self, finish: Finish) -> None:
        """A frame ends with its last crop, or at its deadline without those that still run."""
        frame = self.joined.pop(finish.request)
        assert frame.collected
        due_ns = frame.request.last_deadline_ns - self.scheduler._endings.partial_early_ns
        assert not frame.pending or self.now_ns >= due_ns
        running = {member for infer in self.busy.values() for member in infer.requests}
        assert running.issuperset(frame.pending), "a crop waits for a frame that has ended"
        self.unneeded.update(frame.pending)
        assert set(finish.missing) == frame.missing | set(frame.pending.values())
        assert len(finish.missing) == len(set(finish.missing))
        self._judge_outcome(finish, frame.request)
        assert finish.request not in self.ended
        self.ended.add(finish.request)

    def _judge_drop(self, drop: Drop, event: Event | None) -> None:
        if drop.request in self.joined:
            assert drop.reason is DropReason.DEPARTED
            assert isinstance(event, CameraConnected | CameraDisconnected)
            assert self.joined.pop(drop.request).collected
            assert drop.request not in self.ended
            self.ended.add(drop.request)
            return
        of = self.alive[drop.request]
        if drop.request in self.cancelled:
            assert drop.reason is DropReason.DEPARTED
        if isinstance(event, RequestsUnanswered):
            infer = self.busy.get(event.executor)
            if infer is not None and drop.request in infer.requests:
                assert drop.request in event.requests
                self._leave_batch(event.executor, drop.request)
        if drop.reason is DropReason.OVERLOAD and drop.cause is not Cause.OVERLOADED:
            assert of.frame is None, "a crop took a frame's room"
            of_camera = self.frames_waiting(of.camera) >= PARAMETERS.camera_pending_max
            full = of_camera or self.frames_waiting() >= PARAMETERS.box_pending_max
            camera = self.cameras.get(of.camera)
            if not full and (camera is None or camera.pipeline is None):
                assert drop.cause is Cause.REFUSED
                assert not self.scheduler._adaptation.cameras[of.camera].promised
                assert len(self.ready) + len(self.preparing) > 0, "nothing else waits"
        frame = None if of.frame is None else self.joined.get(RequestId(of.frame))
        waited_for = frame is not None and drop.request in frame.pending
        pipeline = None if of.frame is None else self.pipelines.get(RequestId(of.frame))
        has_stage = pipeline is not None and pipeline.stage(of.stage) is not None
        if drop.reason is DropReason.QUEUE and (of.frame is None or (waited_for and has_stage)):
            due_ns = of.last_deadline_ns - self.scheduler._endings.partial_early_ns
            if of.frame is None or self.now_ns < due_ns:
                self._judge_lost(drop.request)
        if frame is not None and waited_for:
            frame.missing.add(frame.pending.pop(drop.request))
        self._end(drop.request)

    def _judge_run_again(self, order: RunAgain, event: Event | None) -> None:
        """What ran where everything has ended waits again, as long as somebody waits for it."""
        assert isinstance(event, RequestsUnanswered if order.refused else ExecutorGone)
        assert not self.stopping
        assert order.request not in self.cancelled | self.unneeded | self.tried
        assert self.now_ns <= self.alive[order.request].last_deadline_ns
        self._leave_batch(event.executor, order.request)
        self.ready.add(order.request)
        self.queued_until_ns.pop(order.request, None)

    def _leave_batch(self, executor: ExecutorId, request: RequestId) -> None:
        infer = self.busy[executor]
        others = tuple(each for each in infer.requests if each != request)
        assert len(others) == len(infer.requests) - 1
        self.busy[executor] = replace(infer, requests=others)

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
            if abandon.excluded:
                self.excluded.setdefault(executor, set()).add(abandon.variant)
        self._halt(executor)
        del self.loaded[executor]
        self.changing.pop(executor, None)
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
        assert not self.busy, "an executor rests"
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
            until_ns = self.queued_until_ns.get(request, of.last_deadline_ns)
            assert self.now_ns + quickest_ns > until_ns

    def _quickest_ns(self, variant: VariantName, app: str) -> int:
        """Return what admission goes by: who was let in by it is not lost by more."""
        alone = self.scheduler.times.expectations.single_request(variant, app)
        return 0 if alone is None else int(alone.low_ns)
