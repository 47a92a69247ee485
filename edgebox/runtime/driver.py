"""Feeds facts into the Scheduler and carries its orders out: the only place where the two meet.

Everything here runs on the event loop, except decoding (a small pool), inference (one thread per
executor) and planning (one thread), which report back with `call_soon_threadsafe`. The driver
decides nothing.
"""

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId, Variant, VariantName
from edgebox.domain.plans import Plan
from edgebox.domain.requests import DropReason, Outcome, RequestId
from edgebox.inference.executor import BatchResult, Executor
from edgebox.runtime.app_latency import Applications
from edgebox.runtime.availability import dropped_because
from edgebox.runtime.batch_latency import Observed
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.decode_queue import DECODE_LIMIT_NS, decode_pool
from edgebox.runtime.frames import (
    Answer,
    FrameResult,
    PendingFrame,
    Refusal,
    Timing,
)
from edgebox.runtime.journal import Journal
from edgebox.runtime.loading import Loader, Loads
from edgebox.runtime.meters import ExecutorMeter
from edgebox.runtime.planning_thread import Planner, PlanningThread
from edgebox.runtime.preparation import CanvasPool, prepare
from edgebox.runtime.repeat_limiter import FailedBatches
from edgebox.runtime.running import RunningBatches
from edgebox.runtime.sample_runs import Samples
from edgebox.runtime.supervisor import Opener, Supervisor
from edgebox.runtime.threads import Patience
from edgebox.runtime.timeline_recorder import Timeline
from edgebox.scheduling.events import (
    Abandon,
    Action,
    Advise,
    BatchCompleted,
    BatchFailed,
    ComputePlan,
    Drop,
    Event,
    ExitProcess,
    Finish,
    Infer,
    Load,
    Open,
    PlanComputed,
    PlanFailed,
    Prepare,
    Release,
    ReportDrift,
    RequestArrived,
    RequestPrepared,
    RequestRejected,
    Retain,
    Sample,
    SampleCompleted,
    SampleFailed,
    ShutdownRequested,
    Unload,
)
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.scheduler import Scheduler

_log = logging.getLogger(__name__)

_DECISION_SAMPLES = 4_096


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
        planner: Planner,
        planner_seed: int = 0,
        tell: Callbacks,
        opener: Opener | None = None,
        loaders: Mapping[ExecutorId, Loader] | None = None,
        journal: Journal | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Wire the parts; `start` begins.

        Args:
            scheduler: the core, fresh.
            executors: where batches run; each must already be warm.
            variants: all that the executors serve.
            canvases: decodes pictures to a variant's input.
            decode_threads: threads for JPEG work.
            planner: the pure planning function; runs in a thread of its own.
            planner_seed: seeds the planner's randomness.
            tell: whom it tells what.
            opener: opens an executor anew; None: those that are lost stay so.
            loaders: of the executors whose memory is limited.
            journal: records every call of the core; a fresh one of a minute if not given.
            clock_ns: the box's monotonic clock.
        """
        self.scheduler = scheduler
        self.journal = journal or Journal()
        self.journal.attach(scheduler, clock_ns)
        self.timeline = Timeline(scheduler.times.expectations.usual_batch_ns)
        self.clock_ns = clock_ns
        self.failure: InvariantViolation | None = None
        """Why the core is asked no more; None: it works."""
        self.applications = Applications()
        self.decisions_ns: deque[int] = deque(maxlen=_DECISION_SAMPLES)
        self._executors: dict[ExecutorId, Executor] = {e.id: e for e in executors}
        self.meters = {executor: ExecutorMeter(clock_ns()) for executor in self._executors}
        self._variants, self._canvases = variants, canvases
        self._decoders = decode_pool(
            decode_threads,
            Patience(DECODE_LIMIT_NS, lambda text: tell.told("error", text), tell.decoding_hangs),
            clock_ns,
        )
        self._planning = PlanningThread(
            planner, planner_seed, self._from_thread, clock_ns, self._planned
        )
        self._tell = tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._frames: dict[RequestId, PendingFrame] = {}
        self._running = RunningBatches()
        self._samples = Samples(self._executors, canvases, self._from_thread, self._sampled)
        self.loads = Loads(loaders or {}, self._from_thread, self.feed, clock_ns)
        self.supervisor = Supervisor(
            self._executors,
            self.loads,
            self._from_thread,
            opener=opener,
            feed=self.feed,
            left_behind=self._running.end,
            give_up=tell.give_up,
            not_opened=tell.not_opened,
            told=tell.told,
            clock_ns=clock_ns,
        )
        self.observed = Observed()
        self.failed_batches = FailedBatches(_log)
        self._inbox: deque[Event | None] = deque()
        self._draining = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns: int | None = None
        self._request_ids = itertools.count(1)
        self._idle = asyncio.Event()
        self._idle.set()

    # -- from the outside -------------------------------------------------------------------

    def start(self) -> None:
        """Bind to the running loop."""
        self._loop = asyncio.get_running_loop()

    def next_request_id(self) -> RequestId:
        """Return a number no other request of this process has."""
        return RequestId(next(self._request_ids))

    @property
    def executors(self) -> list[Executor]:
        """Where batches run."""
        return list(self._executors.values())

    def add(self, executor: Executor, loader: Loader | None) -> None:
        """Take one more executor in, warm; the core is told of it afterwards."""
        self._executors[executor.id] = executor
        self.meters[executor.id] = ExecutorMeter(self.clock_ns())
        if loader is not None:
            self.loads.use(executor.id, loader)

    def serves(self, variant: VariantName) -> bool:
        """Say whether requests may run on a variant."""
        return variant in self._variants

    @property
    def frames_pending(self) -> int:
        """Frames that have arrived and not ended."""
        return len(self._frames)

    def submit(self, frame: PendingFrame) -> None:
        """Hand over a frame that has just arrived; `frame.on_end` is called exactly once."""
        self._frames[frame.request.id] = frame
        self._idle.clear()
        self.feed(RequestArrived(frame.request))

    def feed(self, event: Event | None) -> None:
        """Tell the core a fact (None: a wake-up) and carry out what it orders.

        Facts that come up while orders are being carried out wait their turn, so the core never
        sees a call within a call.
        """
        self._inbox.append(event)
        if self._draining:
            return
        self._draining = True
        try:
            while self._inbox:
                self._handle(self._inbox.popleft())
        finally:
            self._draining = False
        if self.failure is None:
            self._rearm()

    async def stop(self, patience_s: float) -> None:
        """Drop what waits, let what runs finish, and end the threads."""
        self.feed(ShutdownRequested())
        try:
            async with asyncio.timeout(patience_s):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("%d frames did not end within %s s", len(self._frames), patience_s)
        if self._timer is not None:
            self._timer.cancel()
        self._loop = None
        self._decoders.stop()
        self._planning.stop()
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
            self.journal.record_raised(now_ns, event, f"{type(error).__name__}: {error}")
            self._fail(f"the scheduler failed ({type(error).__name__}: {error})")
            return
        self.decisions_ns.append(self.clock_ns() - now_ns)
        self.journal.record(now_ns, event, actions)
        self.timeline.see(now_ns, event, actions)
        for action in actions:
            self._carry_out(action, now_ns)
        if now_ns >= self.journal.due_ns:
            self._audit(now_ns)

    def _audit(self, now_ns: int) -> None:
        """Check the core's books where the journal begins a new segment."""
        try:
            check_invariants(self.scheduler)
        except InvariantViolation as violation:
            self._fail(f"the scheduler's state contradicts itself ({violation})")
        else:
            self.journal.checkpoint(now_ns)

    def _fail(self, what: str) -> None:
        """Stop deciding: a core that contradicts itself cannot be trusted with anyone's frames."""
        self.failure = InvariantViolation(what, self.journal.tail())
        _log.critical("%s; it was told last:\n%s", what, "\n".join(self.failure.tail))
        if self._timer is not None:
            self._timer.cancel()
        self._drop_everything()
        self._tell.failure(self.failure)

    def _drop_everything(self) -> None:
        for request in list(self._frames):
            self._drop(request, DropReason.SHUTDOWN)

    def _carry_out(self, action: Action, now_ns: int) -> None:
        match action:
            case Prepare():
                self._prepare(action)
            case Infer():
                self._infer(action)
            case Retain(request):
                self._samples.retain(self._frames[request])
            case Release(request):
                self._samples.release(request)
            case Sample():
                self._samples.run(action)
            case Finish(request, outcome):
                self._finish(request, outcome, now_ns)
            case Drop(request, reason):
                self._drop(request, reason)
            case Advise():
                self._tell.advice(action)
            case ComputePlan(snapshot):
                self._planning.compute(snapshot)
            case Load() | Unload():
                self.loads.carry_out(action)
            case ReportDrift():
                self._tell.drift(action)
            case Abandon() | Open() | ExitProcess():
                self.supervisor.carry_out(action)

    def _rearm(self) -> None:
        wakeup_ns = self.scheduler.next_wakeup_ns()
        if wakeup_ns == self._timer_ns or self._loop is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_ns = None, wakeup_ns
        if wakeup_ns is not None:
            delay_s = max(0, wakeup_ns - self.clock_ns()) / 1e9
            self._timer = self._loop.call_later(delay_s, self._wake)

    def _wake(self) -> None:
        self._timer = self._timer_ns = None
        self.feed(None)

    def _from_thread(self, report: Callable[[], None]) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(report)
        except RuntimeError:  # the loop closed while a thread was finishing
            _log.debug("a report came after the loop had closed")

    # -- decoding ---------------------------------------------------------------------------

    def _prepare(self, order: Prepare) -> None:
        frame = self._frames[order.request]
        if not self._canvases.needs_pixels:
            self.feed(RequestPrepared(order.request, 0))
            return
        variant = self._variants[order.variant]
        frame.preparing = True
        ordered_ns = self.clock_ns()

        def work() -> None:
            # What was dropped while it waited for a thread is not decoded any more.
            if not frame.ended:
                prepare(frame, variant, self._canvases)
            # The wait for a thread counts: it is part of what a frame costs beside inference.
            took_ns = self.clock_ns() - ordered_ns
            self._from_thread(lambda: self._prepared(frame, took_ns))

        self._decoders.submit(work, frame.request.camera)

    def _prepared(self, frame: PendingFrame, took_ns: int) -> None:
        frame.preparing = False
        if frame.ended:
            self._canvases.give_back(frame)
        elif frame.invalid_because:
            self.feed(RequestRejected(frame.request.id))
        else:
            self.feed(RequestPrepared(frame.request.id, took_ns))

    # -- inference --------------------------------------------------------------------------

    def _infer(self, order: Infer) -> None:
        self._running.begin(order)
        canvases = []
        for frame in map(self._frames.__getitem__, order.requests):
            frame.batched = True
            if frame.canvas is not None:
                canvases.append(frame.canvas)
        future = self._executors[order.executor].submit(order.variant, canvases, order.batch_size)
        future.add_done_callback(
            lambda done: self._from_thread(lambda: self._batch_done(order, done))
        )

    def _batch_done(self, order: Infer, done: "Future[BatchResult]") -> None:
        # Of an executor that was lost it comes too late: the core only notes that it came.
        late = not self._running.is_running(order)
        error = done.exception()
        if error is not None:
            if not late:
                self._running.end(order.executor)
            self._batch_failed(order, error, late=late)
            self.feed(BatchFailed(order.executor, order.batch))
        else:
            result = done.result()
            if not late:
                self._running.came_back(order, result)
                self._measured(order, result)
            self.feed(BatchCompleted(order.executor, order.batch, result.took_ns))
            if self._running.is_running(order):
                self._running.end(order.executor)

    def _batch_failed(self, order: Infer, error: BaseException, *, late: bool) -> None:
        if late:
            _log.info("what hung on %s has ended: %s", order.executor, error)
        else:
            self.failed_batches.tell(f"{order.variant} on {order.executor}", error)
            self.supervisor.failed(order.executor, str(error))

    def _measured(self, order: Infer, result: BatchResult) -> None:
        self.meters[order.executor].ran(result.started_ns, result.ended_ns, len(order.requests))
        self.timeline.ran(order.executor, order.batch, result.started_ns, result.ended_ns)
        ran = order.variant, order.executor, order.batch_size, result.took_ns
        self.observed.ran(*ran)
        for request in order.requests:
            if (frame := self._frames.get(request)) is not None:
                self.applications.ran(frame.request.app, *ran)

    def _sampled(self, order: Sample, app: str, result: BatchResult | None) -> None:
        if result is None:
            self.feed(SampleFailed(order.executor, order.batch))
            return
        self.meters[order.executor].sampled(result.started_ns, result.ended_ns)
        self.timeline.ran(order.executor, order.batch, result.started_ns, result.ended_ns)
        self.applications.ran(app, order.variant, order.executor, order.batch_size, result.took_ns)
        self.feed(SampleCompleted(order.executor, order.batch, result.took_ns))

    # -- planning ---------------------------------------------------------------------------

    def _planned(self, plan: Plan | None, took_ns: int) -> None:
        if plan is None:
            self.feed(PlanFailed())
            return
        self.feed(PlanComputed(plan))
        self._tell.plan(plan, took_ns)

    # -- endings ----------------------------------------------------------------------------

    def _finish(self, request_id: RequestId, outcome: Outcome, now_ns: int) -> None:
        order, result = self._running.result_of(request_id)
        frame = self._end(request_id)
        position = order.requests.index(request_id)
        request = frame.request
        detections = result.detections[position]
        if frame.placement is not None:
            detections = frame.placement.to_source(
                detections, frame.source_width_px, frame.source_height_px
            )
        timing = Timing(
            network_ns=max(0, request.arrival_ns - request.captured_ns),
            queue_ns=max(0, result.started_ns - request.arrival_ns),
            inference_ns=result.took_ns,
            return_ns=frame.return_ns,
            total_ns=max(0, now_ns - request.captured_ns) + frame.return_ns,
            batch_size=len(order.requests),
        )
        self._canvases.give_back(frame)
        worth = request.utility_at(now_ns)
        mismatched = request.advised is not None and request.advised != order.variant
        self._tell_ending(
            frame, Answer(outcome, order.variant, detections, timing, worth, mismatched)
        )

    def _drop(self, request_id: RequestId, reason: DropReason) -> None:
        frame = self._end(request_id)
        runs_on = self._running.executor_of(request_id)
        # A thread may still be writing or reading the canvas: then it goes its own way.
        if not frame.preparing and runs_on is None:
            self._canvases.give_back(frame)
        because = dropped_because(
            frame,
            reason,
            runs_on,
            executors=self.scheduler.supervised,
            offered=self._variants.values(),
            now_ns=self.clock_ns(),
        )
        self._tell_ending(frame, Refusal(reason, because))
        frame.jpeg = b""  # it may still wait for a thread, which need not keep megabytes

    def _tell_ending(self, frame: PendingFrame, ending: FrameResult) -> None:
        try:
            frame.on_end(frame, ending)
        except Exception:  # one listener's defect must not stop the others' frames
            _log.exception("telling the ending of request %d failed", frame.request.id)

    def _end(self, request_id: RequestId) -> PendingFrame:
        frame = self._frames.pop(request_id)
        frame.ended = True
        if not self._frames:
            self._idle.set()
        return frame
