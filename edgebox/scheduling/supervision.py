"""Decides which executors are in service: which ones are lost, and when they are opened again.

Pure. The rules:

- Every order to an executor has a time limit. For a batch or a sample it is `LIMIT_FACTOR` times
  its high expectation (the profile's, or what was learned of its applications if that is more), and
  at least a second, after which it is derived, and at most `LIMIT_MAX_NS`; it is longer for loading
  weights and for opening an executor. Work that exceeds its limit hangs, and the executor is lost.
- A batch that was ordered while a measurement runs waits for it, `LIMIT_MAX_NS` at most. Its limit
  counts from then on.
- A limit that was exceeded doubles, until the variant comes back within it. If the limit was wrong,
  a few losses correct it (as TCP backs off its retransmission timer, RFC 6298, section 5.5).
- A variant that hangs `HANGS_MAX` times in a row, while others run well in between, is excluded:
  the executor comes back without it, until it is stopped and started on purpose, or the variant is
  withdrawn and offered again. Otherwise one bad model would take all others out again and again.
- An executor is also lost after `FAILURES_MAX` failed batches in a row, unless it has recently run
  another variant successfully: then a model or its input is the cause, and not the executor.
  That excuses no batches that failed because the connection to what runs them broke.
- It is lost at once when what runs its batches, a process or a node elsewhere, has ended. Others
  run the members of its batch that they can still answer in time.
- It is lost after `REFUSALS_MAX` batches in a row that its server refused for too much to do, if
  others are up that run all its variants: a refusal costs time. The last one stays.
- A batch that came back without an answer to some members is no work that can hang. Its executor
  rests where a server has too much to do.
- A batch that came back without an answer to any member shows neither that its executor works nor
  that it does not: the pictures may be the cause.
- A lost executor is opened again: at once, then after 1 s, 2 s, 4 s, up to `BACK_OFF_MAX_NS`, or
  `BACK_OFF_AWAY_MAX_NS` where what ran its batches had ended and is not back yet. A loss is
  forgotten once the executor has been up for `BACK_OFF_MAX_NS`.
- Weights are loaded in a thread of their own, beside batches. A load that hangs costs its executor
  too, but does not count against the batch that runs meanwhile.
- A thread that hangs cannot be ended, so it is abandoned with all that it holds. An executor with
  `ABANDONED_MAX` threads that have not returned, or whose opening hangs, is wedged: another thread
  would hang as well. It is not opened again unless one of them returns.
- Once no executor is up, and each one is wedged or could not be opened `OPENINGS_MAX` times in a
  row, only another process can help: the device, or this process's handle of it, is broken.

A wake-up that comes late means that the whole machine stood still (a paused container, a closed
laptop), and the running work with it: that work gets `LATE_NS` more, once.

All operations cost O(executors) at most.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling.actions import Abandon, Action, ExitProcess, Infer, Load, Open, Sample
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    Event,
    ExecutorGone,
    ExecutorHung,
    ExecutorLent,
    ExecutorStarted,
    ExecutorStopped,
    LoadFailed,
    LoadReturned,
    OpenFailed,
    ProfilesChanged,
    RequestsUnanswered,
    SampleCompleted,
    SampleFailed,
    WeightsLoaded,
)
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.ledger import Ledger
from edgebox.scheduling.sampling import Sampling
from edgebox.scheduling.supervised import (
    OPEN_LIMIT_NS,
    ExecutorState,
    Limit,
    Supervised,
    excused,
    lose,
    passed,
    returned,
    schedule_opening,
)

LIMIT_FACTOR = 10
"""Batches within a few times their P99 are slow: a hot chip, another program, an application with
longer inputs than were profiled. A batch of ten times its P99 has none of these causes, and all
deadlines of its frames have passed. Larger factors only find hangs later."""

LIMIT_MAX_NS = 60_000_000_000
"""The longest deadline that a picture may have. What is learned can be far longer than any batch
took: where a busy machine keeps a batch of 2 ms waiting for 0.4 s, its application has 200 times
the usual work, and the largest batch of the slowest executor is expected to take 200 times as long.
"""

LOAD_LIMIT_NS = 60_000_000_000
"""For loading weights: reading a file of gigabytes from a slow disk takes tens of seconds."""

OPEN_FACTOR = 10
"""Opening may take `OPEN_LIMIT_NS`, or this many times as long as the last time."""

FAILURES_MAX = 3
REFUSALS_MAX = 5
"""Each takes a rest of a fifth of a second at least, so a load that passes costs no executor."""

Ended = BatchCompleted | BatchFailed | SampleCompleted | SampleFailed
OBSERVED_ONLY = ExecutorHung, ExecutorLent, ExecutorGone, OpenFailed, LoadReturned
"""Events that nothing but supervision uses, which observes every event."""


class Supervision:
    """All executors that were ever started, except those stopped on purpose."""

    def __init__(
        self,
        latencies: Latencies,
        expectations: Expectations,
        ledger: Ledger,
        sampling: Sampling,
    ) -> None:
        self._latencies = latencies
        self._expectations = expectations
        self._ledger = ledger
        self._sampling = sampling
        self._limit_min_ns = latencies.parameters.batch_limit_min_ns
        self.executors: dict[ExecutorId, Supervised] = {}
        self.unsettled = False
        """Whether an event of an executor came after the consequences were last drawn."""
        self._exit_ordered = False

    def is_lost(self, variant: VariantName) -> bool:
        """Say whether a variant cannot run now because its executors are lost or came back without
        it."""
        has = [of for of in self.executors.values() if variant in of.variants]
        had = any(variant in of.without for of in self.executors.values())
        return (bool(has) or had) and all(of.state is not ExecutorState.UP for of in has)

    def limit_ns(self, order: Infer | Sample) -> int:
        """Return the time limit of a running batch or sample.

        The learned time counts if it is longer than the profile: an application known to take many
        times as long does not hang. If it is shorter, the profile counts, because the requests may
        become longer. The executor's slowdown counts for the profile only: what made an application
        look long may be the same batches that showed the slowdown.
        """
        executor, variant, batch_size = order.executor, order.variant, order.batch_size
        apps, threads = self.apps_of(order), order.threads if isinstance(order, Infer) else 0
        row = self._latencies.row(executor, variant)
        high_ns = 0 if row is None else row.high_ns[row.sizes.index(batch_size)]
        q = self._latencies.parameters.high_quantile
        learned_ns = self._expectations.batch_ns(executor, variant, apps, batch_size, q) or 0
        high_ns = max(high_ns, round(learned_ns / self._latencies.slowdown(executor)))
        known = self._latencies.known(executor).get(variant)
        if known is not None:
            high_ns = round(high_ns * known.core_factor(batch_size, threads))
        doublings = self.executors[executor].doublings.get(variant, 0)
        longest_ns = min(LIMIT_FACTOR * high_ns, LIMIT_MAX_NS)
        return max(self._limit_min_ns, longest_ns) << doublings

    def apps_of(self, order: Infer | Sample) -> list[str]:
        """Return the application of each member of an order."""
        if isinstance(order, Infer):
            return [self._ledger.live[member].request.app for member in order.requests]
        assert self._sampling.running is not None
        return [self._sampling.running.app]

    # -- Events and orders

    def admitted(self, event: Event) -> Event:
        """Return an event without the profiles of variants that are excluded from its executor."""
        if not isinstance(event, ExecutorStarted | ProfilesChanged):
            return event
        of = self.executors.get(event.executor)
        if of is None or not of.excluded:
            return event
        profiles = tuple(each for each in event.profiles if each.variant not in of.excluded)
        return replace(event, profiles=profiles)

    def forget(self, variants: Collection[VariantName]) -> None:
        """Forget how often some variants hung, so that none is excluded."""
        for of in self.executors.values():
            of.excluded -= frozenset(variants)
            of.doublings = {each: n for each, n in of.doublings.items() if each not in variants}

    def observe(self, event: Event, now_ns: int) -> None:
        """Process an event."""
        executor = getattr(event, "executor", None)
        if executor is None:
            return
        self.unsettled = True
        if isinstance(event, ExecutorStarted):
            self._started(event, now_ns)
            return
        of = self.executors.get(executor)
        if of is None:
            return
        match event:
            case ExecutorStopped():
                del self.executors[event.executor]
            case BatchCompleted() | SampleCompleted() | BatchFailed() | SampleFailed():
                self._ended(of, event, now_ns)
            case RequestsUnanswered() if of.limit is not None and of.limit.batch == event.batch:
                of.limit.came_back(event, now_ns + LIMIT_MAX_NS)
            case WeightsLoaded() | LoadFailed():
                if of.load is None:
                    returned(of, None, now_ns)
                of.load = None
            case LoadReturned():
                returned(of, None, now_ns)
            case ExecutorLent() if of.state is ExecutorState.UP:
                self._lent(of, event, now_ns)
            case ExecutorHung() | ExecutorGone() if of.state is ExecutorState.UP:
                of.hangs |= isinstance(event, ExecutorHung)
                of.gone |= isinstance(event, ExecutorGone)
            case OpenFailed() if of.state is ExecutorState.OPENING or of.opening_abandoned:
                of.openings_failed += 1
                of.opening_abandoned = False
                schedule_opening(of, now_ns)

    def set_limits(self, actions: Iterable[Action], now_ns: int) -> None:
        """Set the time limits of new orders."""
        for order in actions:
            match order:
                case Infer() | Sample():
                    self._limit(self.executors[order.executor], order, now_ns)
                case Load() if self.executors[order.executor].state is ExecutorState.UP:
                    self.executors[order.executor].load = Limit(now_ns, now_ns + LOAD_LIMIT_NS)

    def _limit(self, of: Supervised, order: Infer | Sample, now_ns: int) -> None:
        if of.lent_ns is not None:
            of.limit = Limit(now_ns, now_ns + LIMIT_MAX_NS, order)
            return
        earliest_ns = self._limit_min_ns << of.doublings.get(order.variant, 0)
        of.limit = Limit(now_ns, now_ns + earliest_ns, order, derived=False)

    def _lent(self, of: Supervised, event: ExecutorLent, now_ns: int) -> None:
        delayed = of.delayed
        of.lent_ns = now_ns if event.lent else None
        if delayed is not None and not event.lent:
            self._limit(of, delayed, now_ns)

    def _started(self, event: ExecutorStarted, now_ns: int) -> None:
        of = self.executors.setdefault(event.executor, Supervised(since_ns=now_ns))
        if of.state is not ExecutorState.UP:
            of.restarts += 1
            of.enter(ExecutorState.UP, now_ns)
        self.changed(event)
        if event.opened_ns:
            of.open_limit_ns = max(OPEN_LIMIT_NS, OPEN_FACTOR * event.opened_ns)
        of.limit, of.openings_failed, of.opening_abandoned = None, 0, False

    def changed(self, event: ExecutorStarted | ProfilesChanged) -> None:
        """Note what an executor runs from now on."""
        of = self.executors[event.executor]
        ran = of.variants | of.without
        of.variants = frozenset(profile.variant for profile in event.profiles)
        of.without = ran - of.variants

    def _ended(self, of: Supervised, event: Ended, now_ns: int) -> None:
        sample = isinstance(event, SampleCompleted | SampleFailed)
        limit = of.limit
        if limit is None or limit.batch != event.batch or isinstance(limit.order, Sample) != sample:
            returned(of, event.batch, now_ns)
            return
        order, of.limit = limit.order, None
        assert order is not None
        if isinstance(event, BatchFailed | SampleFailed):
            of.failed.append(order.variant)
            of.disconnections += isinstance(event, BatchFailed) and event.disconnected
            of.failing = of.disconnections >= FAILURES_MAX or (
                len(of.failed) >= FAILURES_MAX and not excused(of, now_ns)
            )
        elif limit.answered if isinstance(event, BatchCompleted) else not event.refused:
            of.last_success = order.variant, now_ns
            of.refusals, of.disconnections = 0, 0
            of.doublings.pop(order.variant, None)
            of.failed.clear()
        elif isinstance(event, SampleCompleted) or limit.overloaded:
            of.refusals += 1
            of.refused = order.variant

    # -- Consequences

    def lost(self, now_ns: int) -> list[Abandon]:
        """Return the executors that are lost now, and change their state."""
        out = []
        for executor, of in self.executors.items():
            if of.state is ExecutorState.UP:
                if of.gone:
                    out.append(lose(executor, of, LossCause.GONE, now_ns))
                elif of.hangs or self._batch_passed(of.limit, now_ns):
                    of.hangs = of.hangs or of.delayed is not None  # the batch has not begun
                    out.append(lose(executor, of, LossCause.HUNG, now_ns))
                elif passed(of.load, now_ns):
                    out.append(lose(executor, of, LossCause.LOADING, now_ns))
                elif of.failing:
                    out.append(lose(executor, of, LossCause.FAILING, now_ns))
                elif of.refusals >= REFUSALS_MAX and self._spares(executor):
                    out.append(lose(executor, of, LossCause.REFUSING, now_ns))
        return out

    def _batch_passed(self, limit: Limit | None, now_ns: int) -> bool:
        """Say whether a batch's limit was exceeded, which is derived once it matters."""
        if limit is None or limit.at_ns > now_ns:
            return False
        if not limit.derived and (order := limit.order) is not None:
            limit.derived = True
            limit.at_ns = limit.began_ns + self.limit_ns(order)
        return passed(limit, now_ns)

    def _spares(self, executor: ExecutorId) -> bool:
        """Return whether others that are up run all variants of an executor."""
        others = (
            of.variants
            for other, of in self.executors.items()
            if other != executor and of.state is ExecutorState.UP
        )
        return self.executors[executor].variants <= frozenset().union(*others)

    def orders(self, now_ns: int) -> list[Action]:
        """Return the other orders that are due: executors to open, or the end of the process."""
        self.unsettled = False
        out: list[Action] = []
        for executor, of in self.executors.items():
            if of.state is ExecutorState.OPENING and passed(of.limit, now_ns):
                out.append(lose(executor, of, LossCause.OPENING, now_ns))
            elif of.retry_ns is not None and of.retry_ns <= now_ns:
                of.enter(ExecutorState.OPENING, now_ns)
                of.limit = Limit(now_ns, now_ns + of.open_limit_ns)
                out.append(Open(executor))
        unrecoverable = bool(self.executors)
        for of in self.executors.values():
            if of.state is ExecutorState.UP or not of.unrecoverable:
                unrecoverable = False
                break
        if unrecoverable and not self._exit_ordered:
            out.append(ExitProcess())
        self._exit_ordered = unrecoverable
        return out

    def due_ns(self, stopping: bool) -> int | None:
        """Return when something is due next; a stopping box waits only for running work."""
        due: list[int] = []
        for of in self.executors.values():
            if of.limit is not None and not (stopping and of.state is ExecutorState.OPENING):
                due.append(of.limit.at_ns)
            if of.load is not None and not stopping:
                due.append(of.load.at_ns)
            if of.retry_ns is not None and not stopping:
                due.append(of.retry_ns)
        return min(due) if due else None
