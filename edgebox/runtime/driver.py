"""Feeds facts into the Scheduler and carries its orders out: the only place where the two meet.

Everything here runs on the event loop. Decoding (a small pool), inference (a thread per executor)
and planning (one thread) report back with `call_soon_threadsafe`. The driver decides nothing.
"""

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId, Variant, VariantName
from edgebox.domain.plans import Plan
from edgebox.domain.requests import DropReason, FrameId, Outcome, Request, RequestId
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor import Executor
from edgebox.inference.executor_thread import BatchResult
from edgebox.runtime.availability import dropped_because
from edgebox.runtime.batch_runner import BatchRunner
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.cascade_decisions import CascadeDecisions
from edgebox.runtime.conditions import Conditions
from edgebox.runtime.crops import CropCutter, Labels
from edgebox.runtime.decision_recorder import DecisionRecorder
from edgebox.runtime.decoded_ahead import DecodedAhead
from edgebox.runtime.decoding_demand import DecodingDemand
from edgebox.runtime.frame_decoder import FrameDecoder
from edgebox.runtime.frames import FrameResult, PendingFrame, Refusal
from edgebox.runtime.journal import Journal
from edgebox.runtime.loading import Loader, Loads
from edgebox.runtime.loop_calls import LoopCalls
from edgebox.runtime.measurements import Measurements
from edgebox.runtime.pending_frames import PendingFrames, report_end
from edgebox.runtime.planning_thread import PlanFunction, PlanningThread
from edgebox.runtime.preparation import CanvasPool, batch_inputs
from edgebox.runtime.sample_runs import Samples
from edgebox.runtime.supervisor import Opener, Supervisor
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
    ReportDrift,
    Retain,
    Sample,
    SpawnCrops,
    Unload,
)
from edgebox.scheduling.events import (
    CropsPrepared,
    CropsSpawned,
    Event,
    FrameDetected,
    PartialAnswered,
    PlanComputed,
    PlanFailed,
    RequestArrived,
    RequestCancelled,
    RequestPrepared,
    RequestRejected,
    SampleCompleted,
    SampleFailed,
    ShutdownRequested,
)
from edgebox.scheduling.scheduler import Scheduler

_log = logging.getLogger(__name__)


class Driver:
    """One Scheduler, its executors, and the frames it decides about."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        executors: Iterable[Executor],
        variants: Mapping[VariantName, Variant],
        canvases: CanvasPool,
        decode_threads: int,
        planner: PlanFunction,
        callbacks: Callbacks,
        opener: Opener | None = None,
        loaders: Mapping[ExecutorId, Loader] | None = None,
        labels: Labels | None = None,
        journal: Journal | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Wire the parts; `start` begins.

        Args:
            scheduler: the core, fresh.
            executors: where batches run; each must already be warm.
            variants: all that the executors serve.
            canvases: the pool of decoded pictures.
            decode_threads: threads for JPEG work.
            planner: the pure planning function; runs in a thread of its own.
            callbacks: called with what others must know.
            opener: opens a lost executor again; None: lost executors stay lost.
            loaders: load weights, for each executor whose memory is limited.
            labels: class names of families, for stages that take some classes only.
            journal: records every call of the core; a new one of a minute if not given.
            clock_ns: the box's monotonic clock.
        """
        self.scheduler = scheduler
        self.clock_ns = clock_ns
        self.failure: InvariantViolation | None = None
        """Why the core is not called any more; None: it works."""
        self._callbacks = callbacks
        self.variants, self._canvases = variants, canvases
        self._executors: dict[ExecutorId, Executor] = {e.id: e for e in executors}
        self._frames = PendingFrames()
        self._inbox, self._draining = deque[Event | None](), False
        self._conditions = Conditions()
        self.until = self._conditions.until
        """Waits until a condition on the core holds."""
        self._request_ids = itertools.count(1)
        self.cascades = CascadeDecisions(scheduler, lambda: len(self._frames) == 1, self.feed)
        self._crops = CropCutter(labels or {}, self.next_request_id, self.cascades.decide)
        self._to_cut: list[tuple[PendingFrame, Variant]] = []
        self._loop = LoopCalls(lambda: self.feed(None), clock_ns)
        self.from_thread = self._loop.from_thread
        """Calls a function on the loop, before the next event. May be used in any thread."""
        self.decisions = DecisionRecorder(scheduler, journal or Journal(), clock_ns)
        self.measurements = Measurements(self._executors, self.decisions, clock_ns)
        self._ahead = DecodedAhead()
        self._demand = DecodingDemand(scheduler, self._executors, self._ahead)
        self.decoder = self._decode_in(decode_threads)
        self.planning = PlanningThread(
            planner, self.from_thread, clock_ns, self._planned, callbacks.notify
        )
        self._samples = Samples(self._executors, canvases, self._loop.ended, self._sampled)
        self.loads = Loads(loaders or {}, self.from_thread, self.feed, clock_ns)
        self._batches = BatchRunner(
            self._executors,
            self._loop.ended,
            later=self._loop.later,
            feed=self.feed,
            on_unanswered=self._unanswered,
            on_result=self._measured,
            on_error=self._batch_failed,
        )
        self.supervisor = self._supervise(opener)

    def _supervise(self, opener: Opener | None) -> Supervisor:
        return Supervisor(
            self._executors,
            self.loads,
            self.from_thread,
            opener=opener,
            feed=self.feed,
            on_abandon=self._batches.abandon,
            callbacks=self._callbacks,
            clock_ns=self.clock_ns,
        )

    def _decode_in(self, threads: int) -> FrameDecoder:
        return FrameDecoder(
            self._canvases,
            threads,
            self.from_thread,
            runs_encoded=self._demand.runs_encoded,
            on_decoded=self._decoded,
            on_cut=self._cut,
            callbacks=self._callbacks,
            clock_ns=self.clock_ns,
        )

    # -- from the outside -------------------------------------------------------------------

    def start(self) -> None:
        """Bind to the running loop."""
        self._loop.bind()

    def next_request_id(self) -> RequestId:
        """Return a number no other request of this process has."""
        return RequestId(next(self._request_ids))

    @property
    def executors(self) -> list[Executor]:
        """Where batches run."""
        return list(self._executors.values())

    def add(self, executor: Executor, loader: Loader | None) -> None:
        """Add an executor that is warm; the caller informs the core afterwards."""
        self._executors[executor.id] = executor
        self.measurements.add_executor(executor.id)
        if loader is not None:
            self.loads.use(executor.id, loader)

    @property
    def frames_pending(self) -> int:
        """Frames that have arrived and not ended."""
        return self._frames.frames

    def submit(self, frame: PendingFrame) -> None:
        """Hand over a frame that has just arrived; `frame.on_end` is called exactly once."""
        self._frames.add((frame,))
        self.feed(RequestArrived(frame.request))

    def submit_detected(self, frame: PendingFrame) -> None:
        """Hand over a frame whose first stage its camera has run (`camera_placement`)."""
        self._frames.add((frame, *frame.crops))
        self.feed(FrameDetected(frame.request, tuple(crop.request for crop in frame.crops)))

    def cancel(self, request: RequestId) -> None:
        """Drop a request that nobody waits for; harmless if it has ended. A batch goes on."""
        if request in self._frames:
            self.feed(RequestCancelled(request))

    def feed(self, event: Event | None) -> None:
        """Inform the core of a fact (None: a wake-up) and carry out its orders.

        What threads have reported already comes first. Facts that occur while orders are carried
        out are queued, so calls of the core never nest.
        """
        if not self._draining:
            self._loop.catch_up()
        self._take(event)

    def _take(self, event: Event | None) -> None:
        self._inbox.append(event)
        if self._draining:
            return
        self._draining = True
        try:
            while self._inbox:
                self._handle(self._inbox.popleft())
        finally:
            self._draining = False
        self._conditions.look()
        self.decoder.hold(self._demand.is_met())
        if self.failure is None:
            self._loop.wake_at(self.scheduler.next_wakeup_ns())

    def forget(self, variants: Collection[VariantName]) -> None:
        """Forget variants that are offered no more: measurements of them, and their canvases."""
        self.measurements.forget(variants)
        self._canvases.keep_only(self.variants.values())

    def end_minute(self) -> None:
        """Log what was held back in the minute that ends."""
        self._batches.end_minute()
        self.planning.check()

    async def stop(self, patience_s: float) -> None:
        """Drop what waits, let what runs finish, and end the threads."""
        self.feed(ShutdownRequested())
        try:
            async with asyncio.timeout(patience_s):
                await self._frames.until_empty()
        except TimeoutError:
            _log.warning("%d frames did not end within %s s", len(self._frames), patience_s)
        self._loop.stop()
        self.decoder.stop()
        self.planning.stop()
        self.loads.stop()

    # -- one call of the core ---------------------------------------------------------------

    def _handle(self, event: Event | None) -> None:
        if self.failure is not None:
            self._drop_everything()
            return
        now_ns = self.clock_ns()
        try:
            actions = self.scheduler.handle(event, now_ns)
        except Exception as error:
            _log.exception("the scheduler failed on %r", event)
            self.decisions.record_raised(now_ns, event, error)
            self._fail(f"the scheduler failed ({type(error).__name__}: {error})")
            return
        took_ns = self.clock_ns() - now_ns
        failed = ""
        try:
            self._carry_out_all(actions, now_ns)
        except Exception as error:  # the core believes that all of them are carried out
            _log.exception("an order of the scheduler failed after %r", event)
            failed = f"an order of the scheduler failed ({type(error).__name__}: {error})"
        # Last, so that threads work meanwhile.
        self.decisions.record(now_ns, took_ns, event, actions)
        try:
            self.decisions.audit(now_ns)
        except Exception as error:
            what = str(error) if isinstance(error, InvariantViolation) else repr(error)
            failed = failed or f"the scheduler's state contradicts itself ({what})"
        if failed:
            self._fail(failed)

    def _fail(self, what: str) -> None:
        """Stop deciding: the orders of a core that contradicts itself cannot be trusted."""
        self.failure = self.decisions.violation(what)
        _log.critical("%s; its last calls:\n%s", what, "\n".join(self.failure.tail))
        self._loop.cancel_wakeup()
        self._drop_everything()
        self._callbacks.on_failure(self.failure)

    def _drop_everything(self) -> None:
        for request in self._frames:
            self._drop(request, DropReason.SHUTDOWN)

    def _carry_out_all(self, actions: list[Action], now_ns: int) -> None:
        for action in actions:
            self._carry_out(action, now_ns)
        if self._to_cut:
            crops, self._to_cut = self._to_cut, []
            self.decoder.cut(crops)

    def _carry_out(self, action: Action, now_ns: int) -> None:  # noqa: PLR0912 - one case a kind
        match action:
            case Prepare(request, variant):
                self._prepare(self._frames[request], self.variants[variant])
            case Infer():
                self._infer(action)
            case Retain(request):
                self._samples.retain(self._frames[request])
            case Release() | Sample():
                self._samples.carry_out(action)
            case Collect(request):
                self._collect(self._frames[request], action, now_ns)
            case SpawnCrops(request):
                self._spawn_crops(self._frames[request], now_ns)
            case Finish():
                self._finish(action, now_ns)
            case Drop(request, reason):
                self._drop(request, reason)
            case Advise():
                self._callbacks.on_advice(action)
            case ComputePlan(snapshot):
                self.planning.compute(snapshot)
            case Load() | Unload():
                self.loads.carry_out(action)
            case ReportDrift():
                self._callbacks.on_drift(action)
            case Abandon() | Open() | ExitProcess():
                self.supervisor.carry_out(action)

    # -- reports from threads, on the loop -----------------------------------------------------

    def _prepare(self, frame: PendingFrame, variant: Variant) -> None:
        if frame.features:  # the first part of the network has prepared them
            self.feed(CropsPrepared((frame.request.id,)))
        elif frame.parent is None:
            self.decoder.decode(frame, variant)
        else:
            self._to_cut.append((frame, variant))

    def _cut(self, crops: list[PendingFrame], took_ns: int) -> None:
        for crop in crops:
            if crop.invalid_because:
                self.feed(RequestRejected(crop.request.id))
        if ready := tuple(crop.request.id for crop in crops if not crop.invalid_because):
            self.feed(CropsPrepared(ready, took_ns))

    def _decoded(self, frame: PendingFrame, took_ns: int) -> None:
        if frame.invalid_because:
            self.feed(RequestRejected(frame.request.id))
        else:
            if frame.canvas is not None:
                self._ahead.decoded(frame.request.id)
            self.feed(RequestPrepared(frame.request.id, took_ns))

    def _infer(self, order: Infer) -> None:
        frames = [self._frames[request] for request in order.requests]
        for frame in frames:
            frame.batched = True
        self._ahead.taken(order.requests)
        inputs = batch_inputs(
            frames,
            self.variants[order.variant],
            self._canvases,
            encoded=self._executors[order.executor].takes_encoded,
        )
        # The batch is answered as a whole: it is worth something as long as one of them is.
        self._batches.run(order, inputs, max(frame.request.last_deadline_ns for frame in frames))

    def _unanswered(self, request: RequestId, refused: Refused) -> None:
        """Note why a batch has no answer to a request."""
        for frame in self._frames.of((request,)):
            if refused.reason is DropReason.INVALID:
                frame.invalid_because = refused.text
            elif refused.reason is not DropReason.OVERLOAD:  # others may run it
                frame.failed_because = refused.text

    def _measured(self, order: Infer, result: BatchResult) -> tuple[Request, ...]:
        """Note a batch's result; return the crops that later stages take."""
        answered = result.answered(order.requests)
        frames = self._frames.of(answered)
        self.measurements.add_batch(
            order,
            result,
            (frame.request.app for frame in frames),
            core_factor=self.scheduler.times.latencies.core_factor(order),
        )
        if answered and all(frame.parent is None for frame in frames):
            self._ahead.ran(len(order.requests), result.took_ns)
        now_ns = self.clock_ns()
        for frame in frames:
            if frame.stages_after and frame.parent is None:
                frame.features = result.features_of(order.requests.index(frame.request.id))
        crops = [
            crop
            for frame in frames
            if frame.stages_after
            for crop in self._crops.cut(
                frame, frame.detections(order, result), order.variant, now_ns
            )
        ]
        self._frames.add(crops)
        return tuple(crop.request for crop in crops)

    def _spawn_crops(self, frame: PendingFrame, now_ns: int) -> None:
        crops = self._crops.cut_own(frame, now_ns)
        self._frames.add(crops)
        spawned = tuple(crop.request for crop in crops)
        self.feed(CropsSpawned(FrameId(frame.request.id), spawned))

    def _batch_failed(self, executor: ExecutorId, text: str) -> None:
        self.supervisor.failed(executor, text)

    def _sampled(self, order: Sample, app: str, result: BatchResult | None) -> None:
        refused = {} if result is None else result.refused
        overloaded = any(of.reason is DropReason.OVERLOAD for of in refused.values())
        if result is None or (refused and not overloaded):
            self.feed(SampleFailed(order.executor, order.batch))
            return
        if not refused:
            self.measurements.add_sample(order, result, app)
        self.feed(SampleCompleted(order.executor, order.batch, result.took_ns, overloaded))

    def _planned(self, plan: Plan | None, took_ns: int) -> None:
        if plan is None:
            self.feed(PlanFailed())
            return
        self._ahead.deadline(self.scheduler.tightest_slo_ns)
        self.feed(PlanComputed(plan))
        self._callbacks.on_plan(plan, took_ns)

    # -- endings ----------------------------------------------------------------------------

    def _collect(self, frame: PendingFrame, order: Collect, now_ns: int) -> None:
        """Keep an answer until its frame ends; the frame itself waits for its crops."""
        batch, result = self._batches.result_of(order.batch)
        frame.collected = frame.answer(batch, result, Outcome.ON_TIME, now_ns)
        self._canvases.give_back(frame)
        if frame.parent is not None:
            self._end(frame.request.id)

    def _finish(self, order: Finish, now_ns: int) -> None:
        if order.missing:
            due_ns = now_ns - self._loop.overdue_ns(now_ns)
            # The connection's writer is among what the loop does before.
            self._loop.soon(lambda: self.feed(PartialAnswered(self.clock_ns() - due_ns)))
        missing = self._crops.lacking(self._frames[order.request], order.missing)
        frame = self._end(order.request)
        answer: FrameResult
        if frame.collected is None:
            assert order.batch is not None  # a frame that its camera detected has its answer
            batch, result = self._batches.result_of(order.batch)
            answer = frame.answer(batch, result, order.outcome, now_ns)
        else:
            answer = frame.joined(frame.collected, order.outcome, missing, now_ns)
            self.cascades.answered(frame, frame.collected, answer, now_ns)
        self._canvases.give_back(frame)
        report_end(frame, answer)

    def _drop(self, request_id: RequestId, reason: DropReason) -> None:
        frame = self._end(request_id)
        runs_on = self._batches.executor_of(request_id)
        # A canvas that a thread may still write or read does not go back to the pool.
        if not frame.preparing and runs_on is None:
            self._canvases.give_back(frame)
        because = dropped_because(
            frame,
            reason,
            runs_on,
            executors=self.scheduler.supervised,
            offered=self.variants.values(),
            now_ns=self.clock_ns(),
        )
        report_end(frame, Refusal(reason, because))
        frame.jpeg = b""  # the frame may still wait for a thread; its megabytes need not

    def _end(self, request: RequestId) -> PendingFrame:
        self._ahead.taken((request,))
        return self._frames.end(request)
