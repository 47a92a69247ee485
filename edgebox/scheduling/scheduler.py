"""Decides what runs next and how every request ends: events in, actions out.

Theory of operation. When a request arrives it is admitted or dropped (`request_admission`). The
driver prepares it, it waits until the policy puts it into a batch, it runs, and it ends with
exactly one `Finish` or `Drop`. A request that can no longer meet its deadline (of several, the
last) is dropped as soon as that is certain, and not before. A box with nothing to do runs some
finished requests again to measure them (`sampling`). Where cameras have a pipeline, a frame's first
stage may spawn crops: they are requests of their own, and the frame ends with the last of them, or
at its deadline (`joins`, `fan_out`). The planning loop runs beside this (`adaptation`): snapshots
leave as `ComputePlan`, plans come back as events and become advice. An executor that hangs, is gone
or keeps failing is taken out of service and opened again (`supervision`).

Pure and deterministic: no clock, no I/O, no randomness. The same events at the same instants give
the same actions; a wake-up that comes early, or twice, changes nothing. Events that contradict the
ledger (an unknown id) are stale: they are counted and ignored. One table says what can move a
request from stage to stage (`request_stages`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Sequence
from typing import Any

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import CameraId, DropReason, FrameId, Request, RequestId
from edgebox.scheduling import events
from edgebox.scheduling.actions import Action, Drop, Prepare
from edgebox.scheduling.adaptation import Adaptation
from edgebox.scheduling.affinity import ExecutorAffinity
from edgebox.scheduling.dispatch import Dispatch
from edgebox.scheduling.endings import Endings
from edgebox.scheduling.events import Event
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.executors import Executors
from edgebox.scheduling.fan_out import FanOut
from edgebox.scheduling.frame_admission import FrameAdmission
from edgebox.scheduling.ladders import Ladders
from edgebox.scheduling.ledger import Ledger, LiveRequest
from edgebox.scheduling.policy import BatchingPolicy
from edgebox.scheduling.request_admission import Admission
from edgebox.scheduling.request_stages import Cause, Stage
from edgebox.scheduling.sampling import Sampling
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.scheduling.scheduler_state import SchedulerState
from edgebox.scheduling.supervision import OBSERVED_ONLY, Supervision
from edgebox.scheduling.trials import Trials

__all__ = ["Scheduler", "SchedulerParameters"]


class Scheduler(SchedulerState):
    """The core of the box: one state machine between the driver (or simulator) and a policy."""

    def __init__(self, parameters: SchedulerParameters, policy: BatchingPolicy) -> None:
        self._parameters = parameters
        self._policy = policy
        self._times = times = ExecutionTimes(parameters)
        self._trials = Trials(parameters, times.expectations)
        self._ladders = Ladders(times.latencies)
        self._affinity = ExecutorAffinity(times.latencies, times.expectations)
        fan_out = FanOut(self._ladders, times)
        self._ledger = Ledger()
        frames = FrameAdmission(parameters, self._ledger, times, fan_out)
        self._adaptation = Adaptation(parameters, self._ladders, self._affinity, times, fan_out)
        self._sampling = Sampling(
            parameters, times.latencies, times.learning, wanted=policy.wants_samples
        )
        self._supervision = supervision = Supervision(
            times.latencies, times.expectations, self._ledger, self._sampling
        )
        self.admission = Admission(
            times,
            self._ladders,
            self._adaptation,
            trials=self._trials,
            supervision=supervision,
            fan_out=fan_out,
            joins=self._ledger.joins,
            frames=frames,
        )
        self._dispatch = Dispatch(
            policy,
            self._ledger,
            times,
            self._affinity,
            trials=self._trials,
            sampling=self._sampling,
            ladders=self._ladders,
        )
        self._endings = Endings(
            self._ledger,
            policy,
            dispatch=self._dispatch,
            trials=self._trials,
            adaptation=self._adaptation,
            fan_out=fan_out,
            frames=frames,
            partial_early_ns=parameters.partial_early_ns,
        )
        self._executors = Executors(
            self._ledger,
            times,
            affinity=self._affinity,
            adaptation=self._adaptation,
            sampling=self._sampling,
            dispatch=self._dispatch,
            endings=self._endings,
        )
        self._stopping = False
        self._stale: Counter[str] = Counter()
        self._now_ns = 0
        self._wakeup_ns: int | None = None
        self._out: list[Action] = []
        policy.attach(times.latencies, times.learning, times.expectations)

    def handle(self, event: Event | None, now_ns: int) -> list[Action]:
        """Process one event and return the resulting actions.

        Args:
            event: what happened; None for a wake-up, which may be early or unnecessary.
            now_ns: the instant, never before that of the last call.
        """
        return self.handle_together(() if event is None else (event,), now_ns)

    def handle_together(self, facts: Collection[Event], now_ns: int) -> list[Action]:
        """Process all events of one instant in order, then decide."""
        self._now_ns = now_ns
        self._out = out = list[Action]()
        self._times.expectations.deciding = True
        try:
            self._times.relax(self._executors.without_batch(), now_ns)
            for event in map(self._supervision.admitted, facts):
                _HANDLERS[type(event)](self, event)
                self._supervision.observe(event, now_ns)
            if not facts or self._can_decide():
                self._decide(woken=not facts)
        finally:
            self._times.expectations.deciding = False
        return out

    def _can_decide(self) -> bool:
        """Return whether there is anything to decide after events; if not, set the next wake-up.

        After most there is not: a frame arrives or is decoded while all executors work. Nothing can
        start and nothing is due, so `_decide` would change nothing, as after an early wake-up.
        """
        if self._dispatch.can_start() or self._supervision.unsettled or self._ledger.joins.frames:
            return True
        self._supervision.set_limits(self._out, self._now_ns)
        self._wakeup_ns = due_ns = self._due_ns()
        return due_ns is not None and due_ns <= self._now_ns

    def _decide(self, *, woken: bool) -> None:
        """Do what is due and start what can start; `woken`: nothing has happened."""
        out, now_ns = self._out, self._now_ns
        self._supervise()
        self._change_profiles()
        out += [*self._endings.expired(now_ns, woken=woken), *self._endings.frames(now_ns)]
        out += self._dispatch.batches(now_ns)
        if not self._stopping:
            out += self._dispatch.sample(now_ns)
        self._plan()
        self._supervision.set_limits(out, now_ns)
        self._wakeup_ns = self._due_ns()

    def next_wakeup_ns(self) -> int | None:
        """Return when `handle(None, ...)` is due if no event comes before; None: never."""
        return self._wakeup_ns

    def _due_ns(self) -> int | None:
        due = [
            self._policy.next_wakeup_ns(),
            self._trials.due_ns(),
            self._endings.next_frame_ns(),
            self._supervision.due_ns(self._stopping),
        ]
        if not self._stopping:
            due.append(self._adaptation.next_plan_ns())
            if not self._ledger.live and not self._ledger.running:
                due.append(self._sampling.due_ns())
        if self._ledger.waiting:
            due.append(self._times.relax_at_ns(self._executors.without_batch()))
            due.append(self._dispatch.crops_awaited_ns(self._now_ns))
        return min([at for at in due if at is not None], default=None)

    def _ignore(self, event: Event) -> None:
        self._stale[type(event).__name__] += 1

    # Requests

    def _request_arrived(self, event: events.RequestArrived) -> None:
        request = event.request
        if request.id in self._ledger.live:
            self._ignore(event)
            return
        variant = self._admit(request)
        if variant is DropReason.INFEASIBLE and not self._ledger.waiting and self._dispatch.idle():
            variant = self.admission.choose_for_trial(request, self._now_ns) or variant
        if isinstance(variant, DropReason):
            self._out.append(Drop(request.id, variant, Cause.REFUSED))
        else:
            self._take(request, variant)

    def _frame_detected(self, event: events.FrameDetected) -> None:
        refused = self.admission.refuse_detected(event, self._parameters, self._now_ns)
        refused = DropReason.SHUTDOWN if self._stopping else refused
        pipeline = self.admission.pipeline_of(event.request)
        self._out += self._endings.detected(event, pipeline, refused, self._now_ns)
        for crop in event.spawned if refused is None else ():
            self._crop_arrived(crop)

    def _crop_arrived(self, crop: Request, departed: Container[FrameId | None] = ()) -> None:
        variant = DropReason.DEPARTED if crop.frame in departed else self._admit(crop)
        if isinstance(variant, DropReason):
            self._out.append(self._endings.unwanted(crop, variant))
        else:
            self._take(crop, variant)

    def _take(self, request: Request, planned: VariantName) -> None:
        trial = self._trials.is_of(request.id)
        above = [] if trial else self._larger_variants(request, planned)
        variant = above[0] if above else planned
        of_stage = request if trial else self.admission.for_policy(request, variant, self._now_ns)
        pipeline = self.admission.pipeline_of(request)
        self._ledger.admit(request, variant, pipeline, of_stage.deadline_ns)
        if not trial:
            variants = (*above, *self.admission.variants(request, planned))
            self._dispatch.admitted(of_stage, variants, len(above), self._now_ns)
        self._out.append(Prepare(request.id, variant))

    def _larger_variants(self, request: Request, planned: VariantName) -> Sequence[VariantName]:
        """Return the larger variant that a request runs on now, and those from there to its own."""
        tightest_slo_ns = self._adaptation.tightest_slo_ns
        fitting = self.admission.larger_variants(request, planned)
        if not fitting or tightest_slo_ns is None:
            return ()
        return self._dispatch.larger_variants(request, fitting, tightest_slo_ns, self._now_ns)

    def _admit(self, request: Request) -> VariantName | DropReason:
        if self._stopping:
            return DropReason.SHUTDOWN
        if not self._executors.in_service and self._supervision.executors:
            return DropReason.FAILED
        if not isinstance(variant := self.admission.choose(request, self._now_ns), DropReason):
            displaced = self._endings.make_room(request, self._parameters)
            self._out += displaced or ()
            return DropReason.OVERLOAD if displaced is None else variant
        return variant

    def _request_prepared(self, event: events.RequestPrepared) -> None:
        if (live := self._preparing(event, event.request)) is None:
            return
        if self._ladders.is_as_planned(live.request, live.variant, live.pipeline):
            self._times.calibration.prepared(event.took_ns)
        self._ready(live)

    def _crops_prepared(self, event: events.CropsPrepared) -> None:
        of_batch = False
        for crop in event.requests:
            if (live := self._preparing(event, crop)) is not None:
                of_batch |= self._ledger.is_of_batch(live)
                self._ready(live)
        # Executors wait for the crops of batches alone, not for those that cameras send.
        if of_batch and event.took_ns is not None:
            self._dispatch.crops_prepared(event.took_ns)

    def _ready(self, live: LiveRequest) -> None:
        self._ledger.prepared(live, self._now_ns)
        if not self._trials.is_of(live.request.id):
            self._policy.prepared(live.request.id, self._now_ns)

    def _request_rejected(self, event: events.RequestRejected) -> None:
        if self._preparing(event, event.request) is not None:
            self._out.append(self._endings.drop(event.request, Cause.REJECTED))

    def _request_cancelled(self, event: events.RequestCancelled) -> None:
        dropped = self._endings.cancel(event.request)
        if dropped is None:
            self._ignore(event)
        self._out += dropped or ()

    def _preparing(self, event: Event, request: RequestId) -> LiveRequest | None:
        live = self._ledger.live.get(request)
        if live is None or live.stage is not Stage.PREPARING:
            self._ignore(event)
            return None
        return live

    # Batches

    def _requests_unanswered(self, event: events.RequestsUnanswered) -> None:
        if not self._runs(event):
            return
        if event.reason is DropReason.OVERLOAD:
            self._ledger.rests(event.executor, self._now_ns + event.rests_ns)
            if not self._stopping:
                again = self._dispatch.run_again(event.executor, self._now_ns, event.requests)
                self._out += again
        members = self._ledger.unanswered(event.executor, event.requests, event.reason)
        self._out += self._endings.members(members, event.batch, self._now_ns)

    def _batch_completed(self, event: events.BatchCompleted) -> None:
        if not self._runs(event):
            self._out += self._endings.too_late(event.spawned)
            return
        batch = self._ledger.running[event.executor]
        members = self._ledger.finish(event.executor, Cause.COMPLETED, event.spawned)
        apps = [live.request.app for live in members]
        self._trials.ran(event.batch, event.took_ns)
        isolated_ns, drifts = self._times.batch_completed(batch, apps, event.took_ns, self._now_ns)
        if self._times.calibrate(event.executor):
            self._adaptation.slowed()
        if drifts:
            self._out += drifts
            self._out += self._adaptation.resources_changed(self._now_ns)
        if not batch.unanswered:
            self._dispatch.completed(batch.infer, isolated_ns, self._now_ns)
        if self._sampling.wanted and not self._stopping and not batch.unanswered:
            self._out += self._sampling.ran(batch.infer, members, event.took_ns, self._now_ns)
        self._out += self._endings.members(members, event.batch, self._now_ns)
        self._adaptation.finished(batch, members, self._now_ns)
        departed = self._endings.departed(members)
        self._change_profiles()
        for crop in event.spawned:
            self._crop_arrived(crop, departed)
        if event.spawned:
            self._dispatch.spawned(event.took_ns, self._now_ns)

    def _crops_spawned(self, event: events.CropsSpawned) -> None:
        if not self._ledger.joins.cut(event.frame, event.spawned):
            self._ignore(event)
            self._out += self._endings.too_late(event.spawned)
            return
        for crop in event.spawned:
            self._crop_arrived(crop)

    def _batch_failed(self, event: events.BatchFailed) -> None:
        if self._runs(event):
            self._out += self._executors.batch_failed(event.executor, self._now_ns)

    def _learning_restored(self, event: events.LearningRestored) -> None:
        self._times.restore(event.learned, self._now_ns)
        self._out += self._adaptation.resources_changed(self._now_ns)

    def _sample_ended(self, event: events.SampleCompleted | events.SampleFailed) -> None:
        took_ns = None
        if isinstance(event, events.SampleCompleted) and not event.refused:
            took_ns = event.took_ns
        ended = self._sampling.ended(event.executor, event.batch, took_ns, self._now_ns)
        if ended is None:
            self._ignore(event)
        else:
            self._times.sample_ended(ended, took_ns, self._now_ns)

    def _runs(
        self, event: events.RequestsUnanswered | events.BatchCompleted | events.BatchFailed
    ) -> bool:
        running = self._ledger.running.get(event.executor)
        runs = running is not None and running.infer.batch == event.batch
        if not runs:
            self._ignore(event)
        return runs

    # Cameras and plans

    def _camera_connected(self, event: events.CameraConnected) -> None:
        if event.camera.id in self._adaptation.cameras:
            self._disconnect(event.camera.id)
        self._out += self._adaptation.open(event.camera, self._now_ns)
        self._sampling.cameras_changed(self._adaptation.tightest_slo_ns)

    def _camera_changed(self, event: events.CameraChanged) -> None:
        before = self._adaptation.cameras.get(event.camera.id)
        if before is None:
            self._ignore(event)
            return
        if before.camera.pipeline != event.camera.pipeline:
            self._endings.pipeline_changed(event.camera.id)
        self._out.extend(self._adaptation.change(event.camera, self._now_ns))
        self._sampling.cameras_changed(self._adaptation.tightest_slo_ns)

    def _camera_disconnected(self, event: events.CameraDisconnected) -> None:
        if not self._disconnect(event.camera):
            self._ignore(event)

    def _link_measured(self, event: events.LinkMeasured) -> None:
        if event.camera not in self._adaptation.cameras:
            self._ignore(event)
            return
        self._adaptation.link_measured(event.camera, event.link)

    def _disconnect(self, camera: CameraId) -> bool:
        """Forget a camera; say whether there was one."""
        # The camera of one-shot requests never connects, but its client can disconnect.
        dropped, cancelled = self._endings.depart(camera)
        self._out += dropped
        if connected := camera in self._adaptation.cameras:
            self._adaptation.close(camera)
            self._sampling.cameras_changed(self._adaptation.tightest_slo_ns)
        return connected or cancelled

    def _plan_computed(self, event: events.PlanComputed) -> None:
        planned = self._adaptation.planned(event.plan, self._now_ns)
        if not self._stopping:
            self._out += self._executors.planned(self._now_ns)
        self._out += self._adaptation.put_in_force(planned, self._now_ns)

    # Resources

    def _executor_started(self, event: events.ExecutorStarted) -> None:
        self._out += self._executors.started(event, self._now_ns)

    def _profiles_changed(self, event: events.ProfilesChanged) -> None:
        if event.executor in self._executors.in_service:
            self._executors.changes[event.executor] = event
        else:
            self._ignore(event)

    def _executor_stopped(self, event: events.ExecutorStopped) -> None:
        self._out += self._executors.stopped(event.executor, self._now_ns)

    def _variants_available(self, event: events.VariantsAvailable) -> None:
        new = self._ladders.offer(event.variants)
        self._supervision.forget(new)
        self._out += self._executors.variants_available(event, new, self._now_ns)

    def _memory_limited(self, event: events.MemoryLimited) -> None:
        self._out += self._executors.memory_limited(event, self._now_ns)

    def _load_ended(self, event: events.WeightsLoaded | events.LoadFailed) -> None:
        self._out += self._executors.load_ended(event, self._now_ns, stopping=self._stopping)

    def _shutdown_requested(self, event: events.ShutdownRequested) -> None:
        self._stopping = True
        self._out += self._endings.drop_all(self._ledger.all_waiting(), Cause.SHUTDOWN)
        self._out += self._sampling.release_all()

    # After every event

    def _supervise(self) -> None:
        for lost in self._supervision.lost(self._now_ns):
            run_again = lost.cause is LossCause.GONE and not self._stopping
            self._out += self._executors.stopped(lost.executor, self._now_ns, run_again=run_again)
            self._out.append(lost)
        if not self._stopping:
            self._out += self._supervision.orders(self._now_ns)

    def _change_profiles(self) -> None:
        """Let executors that run nothing have the profiles that came while they did."""
        for changed in self._executors.changes_due():
            self._out += self._executors.changed(changed, self._now_ns)
            self._supervision.changed(changed)

    def _plan(self) -> None:
        due_ns = self._adaptation.next_plan_ns()
        if due_ns is not None and due_ns <= self._now_ns and not self._stopping:
            self._out.append(self._adaptation.compute_plan(self._now_ns))


_HANDLERS: dict[type[object], Callable[[Scheduler, Any], None]] = {
    events.RequestArrived: Scheduler._request_arrived,
    events.FrameDetected: Scheduler._frame_detected,
    events.RequestPrepared: Scheduler._request_prepared,
    events.CropsPrepared: Scheduler._crops_prepared,
    events.PartialAnswered: lambda scheduler, event: scheduler._endings.partial_answered(event),
    events.RequestRejected: Scheduler._request_rejected,
    events.RequestCancelled: Scheduler._request_cancelled,
    events.RequestsUnanswered: Scheduler._requests_unanswered,
    events.BatchCompleted: Scheduler._batch_completed,
    events.BatchFailed: Scheduler._batch_failed,
    events.CropsSpawned: Scheduler._crops_spawned,
    events.RequestSampled: lambda scheduler, event: scheduler._times.sampled(
        event.executor, event.variant, event.app, event.took_ns, scheduler._now_ns
    ),
    events.LearningRestored: Scheduler._learning_restored,
    events.SampleCompleted: Scheduler._sample_ended,
    events.SampleFailed: Scheduler._sample_ended,
    events.LinkMeasured: Scheduler._link_measured,
    events.CascadeMeasured: lambda scheduler, event: scheduler._adaptation.cascade_measured(event),
    events.CameraConnected: Scheduler._camera_connected,
    events.CameraChanged: Scheduler._camera_changed,
    events.CameraDisconnected: Scheduler._camera_disconnected,
    events.PlanComputed: Scheduler._plan_computed,
    events.PlanFailed: lambda scheduler, event: scheduler._adaptation.plan_failed(),
    events.ExecutorStarted: Scheduler._executor_started,
    events.ProfilesChanged: Scheduler._profiles_changed,
    events.ExecutorStopped: Scheduler._executor_stopped,
    **dict.fromkeys(OBSERVED_ONLY, lambda scheduler, event: None),
    events.VariantsAvailable: Scheduler._variants_available,
    events.MemoryLimited: Scheduler._memory_limited,
    events.WeightsLoaded: Scheduler._load_ended,
    events.LoadFailed: Scheduler._load_ended,
    events.ShutdownRequested: Scheduler._shutdown_requested,
}
