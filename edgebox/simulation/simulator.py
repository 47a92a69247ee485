"""Runs the Scheduler and planner of the box under virtual time.

A discrete-event loop: the earliest event happens next, and models of the driver's parts carry out
the Scheduler's orders. Modelled: batch times (drawn from the profiles, multiplied by the work of
the longest picture and a true slowdown), decoding times, links, timers that fire early, and the
time of planning. Not modelled: contention between decoding and inference, packet loss, errors of
clocks that are exchanged.

Pure: the generator of randomness is an argument; the same seed gives the same run.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId, LatencyProfile, Variant, VariantName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import (
    BatchId,
    CameraId,
    DropReason,
    FrameId,
    Outcome,
    Request,
    RequestId,
)
from edgebox.link.bandwidth import BandwidthEstimate
from edgebox.link.sender import Decision, Send
from edgebox.link.shaping import ShapedLink
from edgebox.link.site_estimates import SiteEstimates
from edgebox.link.transit import FrameArrival
from edgebox.planning.planner import Planner
from edgebox.scheduling.actions import (
    Abandon,
    Action,
    Advise,
    Collect,
    ComputePlan,
    Drop,
    Finish,
    Infer,
    Load,
    Open,
    Prepare,
    Sample,
    SpawnCrops,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    CropsPrepared,
    CropsSpawned,
    Event,
    ExecutorStarted,
    LinkMeasured,
    MemoryLimited,
    PlanComputed,
    RequestArrived,
    RequestPrepared,
    SampleCompleted,
    VariantsAvailable,
    WeightsLoaded,
)
from edgebox.scheduling.scheduler import Scheduler
from edgebox.simulation.actual_times import ActualTimes
from edgebox.simulation.report import DEPARTED, UNDELIVERED, Ended, Report, SchedulerCall, Unsent
from edgebox.simulation.senders import knowing
from edgebox.simulation.shared_links import FairLink, Queueing, SimulatedSite
from edgebox.simulation.simulated_cameras import (
    CameraEnd,
    Sending,
    SimulatedCamera,
    Uplink,
)
from edgebox.simulation.simulated_pipelines import SimulatedPipelines
from edgebox.simulation.simulation_parameters import SimulationParameters

PLANNING_NS = 2_000_000, 400_000
"""The time of a plan, and per camera: `python -m benchmarks.planning`, rounded up."""
RETRY_REFUSED_NS = 15_000_000_000
"""Time after which a refused camera tries again: the longest wait of the camera daemon."""


class Simulator:
    """One run; build a new one for the next."""

    def __init__(
        self,
        scheduler: Scheduler,
        planner: Planner,
        *,
        variants: Sequence[Variant],
        profiles: Mapping[ExecutorId, Sequence[LatencyProfile]],
        cameras: Sequence[SimulatedCamera],
        rng: random.Random,
        parameters: SimulationParameters,
        taken: Mapping[ExecutorId, Sequence[LatencyProfile]] | None = None,
        memory: Sequence[MemoryLimited] = (),
        check: Callable[[Scheduler], None] | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            scheduler: a new one.
            planner: answers each ComputePlan.
            variants: all variants of the box.
            profiles: of each executor; those of the Scheduler.
            cameras: names must differ, or their times of connection.
            rng: the generator of randomness.
            parameters: the costs of the model.
            taken: the actual profiles, where they differ.
            memory: of executors that do not hold everything.
            check: called after every step, for tests.
        """
        self.report = Report()
        self._scheduler = scheduler
        self._links: dict[CameraId, ShapedLink] = {}
        self._sites = SiteEstimates(BandwidthEstimate)
        self._uplinks = {
            spec.site: _shared_uplink(spec.site) for spec in cameras if spec.site is not None
        }
        ahead_ns = parameters.known_ahead_ns
        self._planner = knowing(planner, self._links, ahead_ns) if ahead_ns else planner
        runs_by = {**profiles, **(taken or {})}
        self._believed = {executor: tuple(on) for executor, on in profiles.items()}
        actual = {e: {p.variant: p for p in on} for e, on in runs_by.items()}
        self._times = ActualTimes(actual, rng, parameters.slowdown, parameters.throttling)
        self._rng = rng
        self._parameters = parameters
        self._check = check
        self._now_ns = 0
        self._sampled_ns = 0  # the end of the last sample
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._request_ids = count(1)
        self._frames = count(1)
        self._due_ns: int | None = None
        self._wakeup_ns: int | None = None
        self._ends: dict[CameraId, CameraEnd] = {}
        self._pipelines = SimulatedPipelines(
            cameras,
            lambda: RequestId(next(self._request_ids)),
            self._scheduler.cascade_share,
            variants,
        )
        self.report.spent = self._pipelines.spent
        self._alive: dict[RequestId, tuple[Request, int]] = {}
        """With their true capture times."""
        self._ran: dict[RequestId, tuple[VariantName, int]] = {}
        self._running: dict[ExecutorId, tuple[BatchId, int]] = {}
        """The batch that each executor runs, and since when; none that hangs and was abandoned."""
        self._advised: dict[CameraId, VariantName] = {}
        self._start(variants, memory, cameras)

    def _start(
        self,
        variants: Sequence[Variant],
        memory: Sequence[MemoryLimited],
        cameras: Sequence[SimulatedCamera],
    ) -> None:
        """Give the Scheduler its variants and executors, and enter when each camera connects."""
        self._handle(VariantsAvailable(tuple(variants)))
        for executor, on in self._believed.items():
            self._handle(ExecutorStarted(executor, on))
        for limited in memory:
            self._handle(limited)
        for spec in cameras:
            self._at(spec.opens_ns, lambda spec=spec: self._open(spec))  # type: ignore[misc]

    def run(self, until_ns: int) -> Report:
        """Process all events up to this instant."""
        while self._heap and self._heap[0][0] <= until_ns:
            self._now_ns, _, happen = heappop(self._heap)
            happen()
        self._now_ns = until_ns
        return self.report

    def close(self) -> None:
        """Record the frames that neither reached the box nor were skipped, and what still runs."""
        for executor in list(self._running):
            self._is_free(executor)
        for end in self._ends.values():
            if end.connected:
                self._lose(end, UNDELIVERED)

    def _at(self, at_ns: int, happen: Callable[[], None]) -> None:
        heappush(self._heap, (at_ns, next(self._order), happen))

    def _handle(self, event: Event | None) -> None:
        actions = self._scheduler.handle(event, self._now_ns)
        if self._parameters.keep_journal:
            self.report.journal.append(SchedulerCall(self._now_ns, event, tuple(actions)))
        if self._check is not None:
            self._check(self._scheduler)
        crops: dict[FrameId, list[RequestId]] = {}
        for action in actions:
            crop = self._pipelines.crop(action.request) if isinstance(action, Prepare) else None
            if crop is None or crop.frame is None:
                self._carry_out(action)
            else:
                crops.setdefault(crop.frame, []).append(crop.id)
        for of_frame in crops.values():
            took_ns = self._rng.randint(*self._parameters.crops_ns)
            self._handle_at(self._now_ns + took_ns, CropsPrepared(tuple(of_frame), took_ns))
        self._arm_timer()

    def _handle_at(self, at_ns: int, event: Event) -> None:
        self._at(at_ns, lambda: self._handle(event))

    def _arm_timer(self) -> None:
        due_ns = self._scheduler.next_wakeup_ns()
        if due_ns is not None and due_ns == self._due_ns:
            return
        self._due_ns = due_ns
        if due_ns is None:
            self._wakeup_ns = None
            return
        if due_ns <= self._now_ns:
            raise InvariantViolation(f"a wake-up at {due_ns} was due before {self._now_ns}")
        early_ns = self._parameters.timer_early_ns
        at_ns = due_ns
        if due_ns - self._now_ns > early_ns:
            at_ns -= self._rng.randint(0, early_ns)
        self._wakeup_ns = at_ns
        self._at(at_ns, lambda: self._wake(at_ns))

    def _wake(self, at_ns: int) -> None:
        if self._wakeup_ns == at_ns:
            self._due_ns = self._wakeup_ns = None
            self._handle(None)

    # Actions of the Scheduler

    def _carry_out(self, action: Action) -> None:
        match action:
            case Prepare():
                took_ns = self._rng.randint(*self._parameters.prepare_ns)
                prepared = RequestPrepared(action.request, took_ns)
                self._handle_at(self._now_ns + took_ns, prepared)
            case Infer():
                self._infer(action)
            case Sample():
                took_ns = self._times.draw_ns(action, (action.request,), self._now_ns)
                # It starts only if nothing else runs, but batches may start while it runs.
                self._sampled_ns = done_ns = self._now_ns + took_ns + self._parameters.overhead_ns
                self._handle_at(done_ns, SampleCompleted(action.executor, action.batch, took_ns))
            case Abandon(executor):
                self._is_free(executor)
            case Open(executor):
                started = ExecutorStarted(executor, self._believed[executor])
                self._handle_at(self._now_ns + self._parameters.open_ns, started)
            case Load(executor, weights):
                loaded = WeightsLoaded(executor, weights)
                self._handle_at(self._now_ns + self._parameters.load_ns, loaded)
            case Collect() | Finish() | Drop():
                self._ended(action)
            case SpawnCrops(request):
                crops = self._pipelines.cut_own(self._alive[request][0], self._now_ns)
                self._handle_at(self._now_ns, CropsSpawned(FrameId(request), tuple(crops)))
            case Advise():
                self._advise(action)
            case ComputePlan():
                self._plan(action.snapshot)

    def _plan(self, snapshot: PlanningSnapshot) -> None:
        parameters = self._parameters
        clock_ns, took_ns = parameters.planning_clock_ns, parameters.planning_ns
        if took_ns is None:
            took_ns = PLANNING_NS[0] + PLANNING_NS[1] * len(snapshot.cameras)
        began_ns = clock_ns() if clock_ns is not None else 0
        plan = self._planner(snapshot, parameters.iterations_max)
        if clock_ns is not None:
            took_ns = clock_ns() - began_ns
        self.report.plans += 1
        self._handle_at(self._now_ns + max(1, took_ns), PlanComputed(plan))

    def _infer(self, infer: Infer) -> None:
        # The executors that run at its start approximate those that run meanwhile.
        others = len(self._scheduler.running) - 1 + (self._now_ns < self._sampled_ns)
        took_ns = self._times.draw_ns(infer, infer.requests, self._now_ns, others)
        for request in infer.requests:
            self._ran[request] = infer.variant, self._now_ns
        self._running[infer.executor] = infer.batch, self._now_ns
        if self._parameters.hangs is not None and self._parameters.hangs(infer, self._now_ns):
            return
        busy_ns = took_ns + self._parameters.overhead_ns
        self._at(self._now_ns + busy_ns, lambda: self._completed(infer, took_ns))

    def _is_free(self, executor: ExecutorId) -> None:
        """Note that an executor runs nothing any more, or is not waited for."""
        running = self._running.pop(executor, None)
        if running is not None:
            self.report.busy.setdefault(executor, []).append((running[1], self._now_ns))

    def _completed(self, infer: Infer, took_ns: int) -> None:
        running = self._running.get(infer.executor)
        if running is not None and running[0] == infer.batch:
            self._is_free(infer.executor)
        spawned: list[Request] = []
        for member in infer.requests:
            request, share_ns = self._living(member), took_ns / len(infer.requests)
            if request is None:
                self._pipelines.spent.wasted_ns += share_ns
            else:
                spawned += self._pipelines.ran(request, infer.variant, share_ns, self._now_ns)
        self._handle(BatchCompleted(infer.executor, infer.batch, took_ns, tuple(spawned)))

    def _living(self, request: RequestId) -> Request | None:
        """Return a frame or a crop; None: it has ended, because its executor was lost."""
        alive = self._alive.get(request)
        return self._pipelines.crop(request) if alive is None else alive[0]

    def _advise(self, advise: Advise) -> None:
        camera, advice = advise.camera, advise.advice
        if self._advised.setdefault(camera, advice.variant) != advice.variant:
            self._advised[camera] = advice.variant
            self.report.changes[camera] += 1
        end = self._ends[camera]
        self._at(self._now_ns + end.spec.rtt_ns // 2, lambda: end.advised(advice))

    def _ended(self, action: Collect | Finish | Drop) -> None:
        if self._pipelines.crop(action.request) is not None:
            self._pipelines.crop_ended(action.request, answered=isinstance(action, Collect))
        elif isinstance(action, Finish):
            self._end(action.request, action.outcome, None)
        elif isinstance(action, Drop):
            self._end(action.request, Outcome.DROPPED, action.reason)

    def _end(self, request: RequestId, outcome: Outcome, reason: DropReason | None) -> None:
        alive = self._alive.pop(request, None)
        if alive is None:
            raise InvariantViolation(f"request {request} ended twice or never began")
        known, captured_ns = alive
        end = self._ends.get(known.camera)
        if end is not None and reason is None:
            # The box uses its estimate of the capture time; the camera knows the true one.
            took_ns = self._now_ns + end.spec.rtt_ns // 2 - captured_ns
            outcome = Outcome.ON_TIME if took_ns <= end.spec.camera.slo_ns else Outcome.LATE
        variant, started_ns = self._ran.pop(request, (None, None))
        work = self._pipelines.frame_ended(request, on_time=outcome is Outcome.ON_TIME)
        self.report.ended.append(
            Ended(known, variant, outcome, reason, self._now_ns, started_ns, captured_ns, work)
        )
        if end is not None and reason is None:
            took_ns = self._now_ns - known.arrival_ns
            at_ns = self._now_ns + end.spec.rtt_ns // 2
            self._at(at_ns, lambda: end.sender.answered(took_ns))

    # Cameras

    def _open(self, spec: SimulatedCamera) -> None:
        parameters = self._parameters
        if parameters.admission is not None:
            snapshot = self._scheduler.snapshot(self._now_ns)
            if parameters.admission(snapshot, spec.camera) is not None:
                self._refuse(spec)
                return
        end = self._ends[spec.camera.id] = CameraEnd(
            spec,
            random.Random(self._rng.random()),
            parameters.sender,
            parameters.estimate,
            parameters.transit,
            uplink=None if spec.site is None else self._uplinks[spec.site],
            sites=self._sites,
        )
        self._links[spec.camera.id] = end.link
        self._handle(CameraConnected(spec.camera))
        if spec.closes_ns is not None:
            self._at(spec.closes_ns, lambda: self._close(end))
        # The welcome, with the first advice, arrives before the first picture is captured.
        first_ns = self._now_ns + spec.rtt_ns + spec.phase_ns
        self._at(first_ns, lambda: self._capture(end))

    def _refuse(self, spec: SimulatedCamera) -> None:
        self.report.refused[spec.camera.id] += 1
        again_ns = self._now_ns + RETRY_REFUSED_NS
        if spec.closes_ns is None or again_ns < spec.closes_ns:
            self._at(again_ns, lambda: self._open(spec))

    def _close(self, end: CameraEnd) -> None:
        self._lose(end, DEPARTED)
        end.connected = False
        self._sites.leave(end.spec.camera.id)
        self._handle(CameraDisconnected(end.spec.camera.id))

    def _lose(self, end: CameraEnd, reason: str) -> None:
        flying = (sending.captured_ns for sending in end.flying.values())
        camera = end.spec.camera.id
        for captured_ns in (*flying, *end.kept):
            self.report.lost.append(Unsent(camera, captured_ns, reason))

    def _capture(self, end: CameraEnd) -> None:
        until_ns = self._parameters.captures_until_ns
        if not end.connected or (until_ns is not None and self._now_ns >= until_ns):
            return
        camera = end.spec.camera
        self.report.captured[camera.id] += 1
        self.report.unsent[camera.id] += 1
        self._obey(end, end.capture(next(self._frames), self._now_ns))
        self._at(self._now_ns + round(1e9 / camera.rate_hz), lambda: self._capture(end))

    def _obey(self, end: CameraEnd, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if not isinstance(decision, Send):
                captured_ns = end.skip(decision.frame)
                camera = end.spec.camera.id
                self.report.lost.append(Unsent(camera, captured_ns, decision.reason))
                continue
            at_ns = end.encoded_at(self._now_ns)
            if at_ns > self._now_ns:
                self._at(at_ns, lambda send=decision: self._send(end, send))  # type: ignore[misc]
            else:
                self._send(end, decision)

    def _send(self, end: CameraEnd, send: Send) -> None:
        if end.connected:
            sending = end.send(send, RequestId(next(self._request_ids)), self._now_ns)
            if sending.arrival is not None:
                self._arrive_at(end, sending, sending.arrival)
            elif end.uplink.fair is not None:
                self._watch(end.uplink.fair)

    def _watch(self, link: FairLink) -> None:
        """Schedule the next departure from a fairly shared link, by its present state."""
        at_ns = link.next_ns()
        if at_ns is not None:
            self._at(at_ns, lambda: self._left(link))

    def _left(self, link: FairLink) -> None:
        # A frame handed over since delays the next departure, which is scheduled as well.
        left = link.left(self._now_ns)
        for camera, frame, left_ns in left:
            end = self._ends[camera]
            if frame in end.flying:
                self._arrive_at(end, *end.left(frame, left_ns))
        if left:
            self._watch(link)

    def _arrive_at(self, end: CameraEnd, sending: Sending, arrival: FrameArrival) -> None:
        self._at(arrival.arrival_ns, lambda: self._arrive(end, sending, arrival))

    def _arrive(self, end: CameraEnd, sending: Sending, arrival: FrameArrival) -> None:
        if not end.connected:
            return
        rtt_ns = end.spec.rtt_ns
        self.report.unsent[end.spec.camera.id] -= 1
        request, link = end.arrived(sending, arrival)
        for camera, site, uplink in self._sites.take_updates():
            other = self._ends[camera]
            other.set_estimate(uplink)
            self.report.sites.append((self._now_ns, camera, site))
            self._handle(CameraChanged(replace(other.spec.camera, site=site)))
        self._alive[request.id] = request, sending.captured_ns
        self._pipelines.arrived(request, sending.captured_ns)
        if end.spec.work:
            self._times.work[request.id] = end.draw_work()
        self._at(
            self._now_ns + rtt_ns // 2,
            lambda: self._acknowledged(end, sending.frame, rtt_ns),
        )
        if link is not None:
            self._handle(LinkMeasured(request.camera, link))
        self._handle(RequestArrived(request))

    def _acknowledged(self, end: CameraEnd, frame: int, rtt_ns: int) -> None:
        if end.connected:
            self._obey(end, end.sender.acknowledged(frame, self._now_ns, rtt_ns))


def _shared_uplink(site: SimulatedSite) -> Uplink:
    link = ShapedLink(site.trace, -site.trace_start_ns)
    return Uplink(link, FairLink(link) if site.queueing is Queueing.FAIR else None)
