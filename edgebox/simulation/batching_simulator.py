"""Runs the Scheduler of the box over a workload of requests with known execution times.

A discrete-event loop. At one instant completions come first, then arrivals, then decisions. A batch
is padded to the smallest supported size; finishing exactly at the deadline counts as on time.
Workers of one device may slow each other (`shared_device`), which their profiles say. Also
modelled: timers that fire early and, on request, the time of decisions. Cameras, links, decoding
and planning are not modelled (`simulator` has them).

Pure: the generator of randomness and the clock that measures decisions are arguments.
"""

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import numpy as np

from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.requests import CameraId, Outcome, Request, RequestId, UtilityStep
from edgebox.scheduling.actions import Action, Drop, Finish, Infer, Sample
from edgebox.scheduling.events import (
    BatchCompleted,
    Event,
    ExecutorStarted,
    RequestArrived,
    RequestPrepared,
    RequestSampled,
    SampleCompleted,
    VariantsAvailable,
)
from edgebox.scheduling.policy import BatchingPolicy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.simulation.shared_device import SharedDevice
from edgebox.simulation.workload import Job, Workload

MODEL = VariantName("model")
MS = 1_000_000

PARAMETERS = SchedulerParameters(
    box_pending_max=1_000_000,
    low_quantile=0.0,
    prepare_initial_ns=0,
    # Executors are exactly as fast as their profiles: a sequence of long requests is no slowdown.
    slowdown_quantile=1.0,
    # Policies learn from the history only, so that they are compared on equal terms.
    sample_share=0.0,
    # The policy alone decides what is not answered.
    refuses_from=math.inf,
    # No executor hangs here, however much longer than its history a request is.
    batch_limit_min_ns=1 << 60,
)


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of the policy."""

    timer_early_ns: int = 0
    """Maximum time by which a timer fires early."""
    clock_ns: Callable[[], int] | None = None
    """A clock to measure decisions with; None: they are not measured."""
    charge_decisions: bool = False
    """Let a batch start only after its decision's measured time."""
    slower: Callable[[int], float] = lambda now_ns: 1.0
    """The factor of all times that begin at an instant."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of one request."""

    job: Job
    outcome: Outcome
    utility: float
    """1 on time, less by a later deadline, else 0."""
    at_ns: int
    batch: int | None
    """The batch it ran in; None if it never did."""
    batch_size: int | None


@dataclass(slots=True)
class BatchingReport:
    """The result of a run."""

    ends: list[JobEnd] = field(default_factory=list)
    batch_members: list[int] = field(default_factory=list)
    """The number of requests in every batch."""
    samples_ns: list[int] = field(default_factory=list)
    """The time of every sample."""
    decisions_ns: list[int] = field(default_factory=list)
    """The time of each call of the Scheduler that formed a batch, its bookkeeping included."""

    def counts(self) -> Counter[Outcome]:
        """Count requests by outcome."""
        return Counter(end.outcome for end in self.ends)

    @property
    def finish_rate(self) -> float:
        """The share of all requests that finished on time; 1 if there were none."""
        return self.finish_rate_from(0)

    def finish_rate_from(self, first: int) -> float:
        """Return the share on time of the requests from id `first` on; 1 if there are none."""
        on_time = [end.outcome is Outcome.ON_TIME for end in self.ends if end.job.id >= first]
        return sum(on_time) / len(on_time) if on_time else 1.0

    @property
    def utility(self) -> float:
        """The mean utility of all requests; 1 if there were none."""
        return sum(end.utility for end in self.ends) / len(self.ends) if self.ends else 1.0


class BatchingSimulation:
    """One run of one policy over one workload."""

    def __init__(
        self,
        workload: Workload,
        policy: BatchingPolicy,
        *,
        rng: random.Random,
        environment: Environment = Environment(),
        sample_share: float = 0.0,
        parameters: SchedulerParameters = PARAMETERS,
        check: Callable[[Scheduler], None] | None = None,
    ) -> None:
        """Prepare a run: the policy gets the model's profile and the history.

        Args:
            workload: the requests.
            policy: a new one.
            rng: for the jitter of timers.
            environment: the environment.
            sample_share: share of the workers' time for running finished requests again.
            parameters: the tunables of the core.
            check: called after every step, for tests.
        """
        self._model = workload.model
        self.scheduler = Scheduler(replace(parameters, sample_share=sample_share), policy)
        """The scheduler of the run; read only."""
        self._rng = rng
        self._surroundings = environment
        self._check = check
        self._report = BatchingReport()
        self._jobs = {RequestId(job.id): job for job in workload.jobs}
        self._requests = {RequestId(job.id): _request(job) for job in workload.jobs}
        self._completions: list[tuple[int, int, BatchCompleted | SampleCompleted]] = []
        self._device = SharedDevice[tuple[Infer | Sample, int]](self._model.interference)
        """What runs, where workers slow each other; else completions are known at the start."""
        self._ran_in: dict[RequestId, tuple[int, int]] = {}
        self._now_ns = 0
        self._begin(workload)

    def _begin(self, workload: Workload) -> None:
        names = [ExecutorId(f"worker/{at}") for at in range(self._model.workers)]
        facts: list[Event] = [VariantsAvailable((Variant(MODEL, FamilyName("model"), 1, 1, 1.0),))]
        facts += [ExecutorStarted(name, (_profile(name, workload),)) for name in names]
        alone_ns = [
            RequestSampled(names[0], MODEL, app, round(self._model.batch_ms(1, exec_ms) * MS))
            for app, times in workload.history.items()
            for exec_ms in times
        ]
        self.scheduler.handle_together([*facts, *alone_ns], 0)

    def run(self) -> BatchingReport:
        """Run until every request has ended."""
        coming = iter([*self._requests.values(), None])
        request = next(coming)
        while True:
            at_ns = self._next_ns(request)
            if at_ns is None:
                return self._report
            self._now_ns = max(self._now_ns, at_ns)
            facts: list[Event] = []
            facts += map(_completed, self._device.ended(self._now_ns))
            while self._completions and self._completions[0][0] <= self._now_ns:
                facts.append(heappop(self._completions)[2])
            while request is not None and request.arrival_ns <= self._now_ns:
                facts += [RequestArrived(request), RequestPrepared(request.id, 0)]
                request = next(coming)
            self._step(facts)

    def _next_ns(self, request: Request | None) -> int | None:
        due = [] if request is None else [request.arrival_ns]
        if self._completions:
            due.append(self._completions[0][0])
        ended_ns = self._device.next_end_ns()
        if ended_ns is not None:
            due.append(ended_ns)
        wakeup_ns = self.scheduler.next_wakeup_ns()
        if wakeup_ns is not None:
            early_ns = self._surroundings.timer_early_ns
            if early_ns and wakeup_ns - self._now_ns > early_ns:
                wakeup_ns -= self._rng.randint(0, early_ns)
            due.append(wakeup_ns)
        return min(due, default=None)

    def _step(self, facts: list[Event]) -> None:
        clock_ns = self._surroundings.clock_ns
        began_ns = clock_ns() if clock_ns is not None else 0
        actions = self.scheduler.handle_together(facts, self._now_ns)
        spent_ns = clock_ns() - began_ns if clock_ns is not None else 0
        if self._check is not None:
            self._check(self.scheduler)
        if clock_ns is not None and any(isinstance(action, Infer) for action in actions):
            self._report.decisions_ns.append(spent_ns)
        delay_ns = spent_ns if self._surroundings.charge_decisions else 0
        for action in actions:
            self._carry_out(action, delay_ns)

    def _carry_out(self, action: Action, delay_ns: int) -> None:
        match action:
            case Infer():
                self._infer(action, delay_ns)
            case Sample():
                self._sample(action, delay_ns)
            case Finish():
                self._end(action.request, action.outcome)
            case Drop():
                self._end(action.request, Outcome.DROPPED)
            case _:
                pass

    def _infer(self, infer: Infer, delay_ns: int) -> None:
        size = next(size for size in self._model.batch_sizes if size >= len(infer.requests))
        longest_ms = max(self._jobs[request].exec_ms for request in infer.requests)
        took_ns = self._takes_ns(size, longest_ms)
        self._report.batch_members.append(len(infer.requests))
        for request in infer.requests:
            self._ran_in[request] = infer.batch, size
        if self._model.interference:
            self._device.start((infer, delay_ns), took_ns + delay_ns, self._now_ns)
            return
        completed = BatchCompleted(infer.executor, infer.batch, took_ns)
        heappush(self._completions, (self._now_ns + delay_ns + took_ns, infer.batch, completed))

    def _takes_ns(self, size: int, longest_ms: float) -> int:
        slower = self._surroundings.slower(self._now_ns)
        return round(slower * self._model.batch_ms(size, longest_ms) * MS)

    def _sample(self, order: Sample, delay_ns: int) -> None:
        exec_ms = self._jobs[order.request].exec_ms
        took_ns = self._takes_ns(order.batch_size, exec_ms)
        self._report.samples_ns.append(took_ns)
        if self._model.interference:
            self._device.start((order, delay_ns), took_ns + delay_ns, self._now_ns)
            return
        completed = SampleCompleted(order.executor, order.batch, took_ns)
        heappush(self._completions, (self._now_ns + delay_ns + took_ns, order.batch, completed))

    def _end(self, request: RequestId, outcome: Outcome) -> None:
        batch, size = self._ran_in.pop(request, (None, None))
        answered = outcome is not Outcome.DROPPED
        utility = self._requests[request].utility_at(self._now_ns) if answered else 0.0
        self._report.ends.append(
            JobEnd(self._jobs[request], outcome, utility, self._now_ns, batch, size)
        )


def _completed(ran: tuple[tuple[Infer | Sample, int], int]) -> BatchCompleted | SampleCompleted:
    (order, delay_ns), took_ns = ran
    kind = BatchCompleted if isinstance(order, Infer) else SampleCompleted
    return kind(order.executor, order.batch, max(1, took_ns - delay_ns))


def _request(job: Job) -> Request:
    arrival_ns = round(job.at_ms * MS)
    return Request(
        id=RequestId(job.id),
        camera=CameraId(job.app),
        app=job.app,
        captured_ns=arrival_ns,
        arrival_ns=arrival_ns,
        deadline_ns=arrival_ns + round(job.slo_ms * MS),
        width_px=1,
        height_px=1,
        size_bytes=0,
        variant=MODEL,
        steps=tuple(
            UtilityStep(arrival_ns + round(by_ms * MS), utility) for by_ms, utility in job.later
        ),
    )


def _profile(executor: ExecutorId, workload: Workload) -> LatencyProfile:
    """Return what a profiler would measure: batches of equal requests from the history."""
    model = workload.model
    past = [exec_ms for times in workload.history.values() for exec_ms in times] or [0.0]
    times_ms = np.quantile(past, QUANTILES)
    rows = {
        size: tuple(round(model.batch_ms(size, float(ms)) * MS) for ms in times_ms)
        for size in model.batch_sizes
    }
    return LatencyProfile(MODEL, executor, rows, model.interference)
