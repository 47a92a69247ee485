"""Decides which executors are in service: which ones are lost, and when they are opened again.

Pure. The rules:

- Every order to an executor has a time limit. For a batch or a sample it is `LIMIT_FACTOR` times
  its high expectation (the profile's, or what was learned of its applications if that is more), and
  at least a second, after which it is derived; it is longer for loading weights and for opening an
  executor. Work that exceeds its limit hangs, and the executor is lost.
- A limit that was exceeded doubles, until the variant comes back within it. If the limit was wrong,
  a few losses correct it (as TCP backs off its retransmission timer, RFC 6298, section 5.5).
- A variant that hangs `HANGS_MAX` times in a row, while others run well in between, is excluded:
  the executor comes back without it, until it is stopped and started on purpose. Otherwise one bad
  model would take all others out again and again.
- An executor is also lost after `FAILURES_MAX` failed batches in a row, unless it has recently run
  another variant successfully: then a model or its input is the cause, and not the executor.
- It is lost at once when what runs its batches, a process or a node elsewhere, has ended.
- A lost executor is opened again: at once, then after 1 s, 2 s, 4 s, up to `BACK_OFF_MAX_NS`. A
  loss is forgotten once the executor has been up for that long.
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

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import BatchId
from edgebox.scheduling.events import (
    Abandon,
    Action,
    BatchCompleted,
    BatchFailed,
    Event,
    ExecutorGone,
    ExecutorHung,
    ExecutorStarted,
    ExecutorStopped,
    ExitProcess,
    Infer,
    Load,
    LoadFailed,
    LoadReturned,
    Open,
    OpenFailed,
    Sample,
    SampleCompleted,
    SampleFailed,
    WeightsLoaded,
)
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.ledger import Ledger
from edgebox.scheduling.sampling import Sampling

LIMIT_FACTOR = 10
"""Batches within a few times their P99 are slow: a hot chip, another program, an application with
longer inputs than were profiled. A batch of ten times its P99 has none of these causes, and all
deadlines of its frames have passed. Larger factors only find hangs later."""

LIMIT_DOUBLINGS_MAX = 6
"""Maximum number of doublings: a factor of 64."""

HANGS_MAX = 2
"""The second time it had twice as long: 20 times its high expectation."""

LOAD_LIMIT_NS = 60_000_000_000
"""For loading weights: reading a file of gigabytes from a slow disk takes tens of seconds."""

OPEN_LIMIT_NS = 60_000_000_000
OPEN_FACTOR = 10
"""Opening may take `OPEN_LIMIT_NS`, or this many times as long as the last time."""

FAILURES_MAX = 3
EXCUSED_NS = 10_000_000_000
"""A successful batch protects an executor that fails with another variant for this long."""

BACK_OFF_NS = 1_000_000_000
BACK_OFF_MAX_NS = 60_000_000_000
ABANDONED_MAX = 3
OPENINGS_MAX = 5
"""With back-off that is a quarter of a minute; a driver that restarts is back by then."""

LATE_NS = 1_000_000_000
LATE_FROM_NS = 100_000_000
"""Delay from which the event loop does not explain a late wake-up."""


class ExecutorState(StrEnum):
    """The state of an executor."""

    UP = "up"
    OPENING = "opening"
    """It was lost and is being opened again."""
    WAITING = "waiting"
    """It was lost and will be opened again."""
    WEDGED = "wedged"
    """It was lost, and opening it again would hang as well."""


Ended = BatchCompleted | BatchFailed | SampleCompleted | SampleFailed


@dataclass(slots=True)
class _Limit:
    """The current work of an executor and its time limit."""

    began_ns: int
    at_ns: int
    order: Infer | Sample | None = None
    """None: it is being opened, or it loads weights."""
    derived: bool = True
    """False: `at_ns` is the earliest possible, and the limit itself is still to be derived. Most
    batches end before."""
    extended: bool = False

    @property
    def batch(self) -> BatchId | None:
        """The batch; None: see `order`."""
        return None if self.order is None else self.order.batch

    @property
    def variant(self) -> VariantName | None:
        """What runs; None: see `order`."""
        return None if self.order is None else self.order.variant


@dataclass(slots=True)
class Supervised:
    """The supervision state of one executor."""

    state: ExecutorState = ExecutorState.UP
    variants: frozenset[VariantName] = frozenset()
    """The variants it can run while it is up."""
    without: frozenset[VariantName] = frozenset()
    """The variants it ran at first, but not since it came back."""
    since_ns: int = 0
    """When it entered this state."""
    limit: _Limit | None = None
    """The limit of its batch or sample, or of its opening."""
    load: _Limit | None = None
    """The limit of the weights that it loads."""
    hangs: bool = False
    """Whether an `ExecutorHung` was reported."""
    gone: bool = False
    """Whether an `ExecutorGone` was reported."""
    losses: Counter[LossCause] = field(default_factory=Counter)
    restarts: int = 0
    """How often it came back after a loss."""
    retry_ns: int | None = None
    """When it is opened again, in state `WAITING`."""
    abandoned: dict[BatchId, None] = field(default_factory=dict)
    """Batches and samples that have not come back."""
    loads_abandoned: int = 0
    """Number of loads that have not come back."""
    opening_abandoned: bool = False
    """Whether its last opening has not come back."""
    recent_losses: int = 0
    """Losses that are not forgotten yet; they determine the back-off."""
    openings_failed: int = 0
    """In a row."""
    open_limit_ns: int = OPEN_LIMIT_NS
    failed: list[VariantName] = field(default_factory=list)
    """The variants of the batches that failed since the last success."""
    failing: bool = False
    """Whether these are too many."""
    last_success: tuple[VariantName, int] | None = None
    """The variant of the last successful batch, and when."""
    doublings: dict[VariantName, int] = field(default_factory=dict)
    """How often each variant hung since it last came back."""
    excluded: frozenset[VariantName] = frozenset()
    """The variants that are not run here any more, because they hang."""

    def enter(self, state: ExecutorState, now_ns: int) -> None:
        """Change the state."""
        self.state, self.since_ns = state, now_ns
        self.limit = self.load = self.retry_ns = None

    @property
    def threads_abandoned(self) -> int:
        """The number of threads that have not come back."""
        return len(self.abandoned) + self.loads_abandoned + self.opening_abandoned

    @property
    def would_hang(self) -> bool:
        """Whether opening it would cost another thread that hangs."""
        return self.opening_abandoned or self.threads_abandoned >= ABANDONED_MAX

    @property
    def unrecoverable(self) -> bool:
        """Whether opening it again has not helped, or cannot help."""
        return self.state is ExecutorState.WEDGED or (
            self.state is not ExecutorState.UP and self.openings_failed >= OPENINGS_MAX
        )


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
        self._exit_ordered = False

    def is_lost(self, variant: VariantName) -> bool:
        """Say whether a variant cannot run now because its executors are lost or came back without
        it."""
        has = [of for of in self.executors.values() if variant in of.variants]
        had = any(variant in of.without for of in self.executors.values())
        return (bool(has) or had) and all(of.state is not ExecutorState.UP for of in has)

    def limit_ns(
        self,
        executor: ExecutorId,
        variant: VariantName,
        apps: Sequence[str],
        batch_size: int,
        threads: int = 0,
    ) -> int:
        """Return the time limit of a batch.

        The learned time counts if it is longer than the profile: an application known to take many
        times as long does not hang. If it is shorter, the profile counts, because the requests may
        become longer. The executor's slowdown counts for the profile only: what made an application
        look long may be the same batches that showed the slowdown.

        Args:
            executor: where it runs.
            variant: what it runs.
            apps: the application of each member.
            batch_size: a profiled size.
            threads: CPU threads that it computes with; 0: all.
        """
        row = self._latencies.row(executor, variant)
        high_ns = 0 if row is None else row.high_ns[row.sizes.index(batch_size)]
        q = self._latencies.parameters.high_quantile
        learned_ns = self._expectations.batch_ns(executor, variant, apps, batch_size, q) or 0
        high_ns = max(high_ns, round(learned_ns / self._latencies.slowdown(executor)))
        known = self._latencies.known(executor).get(variant)
        if known is not None:
            high_ns = round(high_ns * known.core_factor(batch_size, threads))
        doublings = self.executors[executor].doublings.get(variant, 0)
        return max(self._limit_min_ns, LIMIT_FACTOR * high_ns) << doublings

    def apps_of(self, order: Infer | Sample) -> list[str]:
        """Return the application of each member of an order."""
        if isinstance(order, Infer):
            return [self._ledger.live[member].request.app for member in order.requests]
        assert self._sampling.running is not None
        return [self._sampling.running.app]

    # -- Events and orders

    def admitted(self, event: Event) -> Event:
        """Return an event without the profiles of variants that are excluded from its executor."""
        of = self.executors.get(event.executor) if isinstance(event, ExecutorStarted) else None
        if of is None or not of.excluded:
            return event
        assert isinstance(event, ExecutorStarted)
        profiles = tuple(each for each in event.profiles if each.variant not in of.excluded)
        return replace(event, profiles=profiles)

    def observe(self, event: Event, now_ns: int) -> None:
        """Process an event."""
        if isinstance(event, ExecutorStarted):
            self._started(event, now_ns)
            return
        executor = getattr(event, "executor", None)
        of = None if executor is None else self.executors.get(executor)
        if of is None:
            return
        match event:
            case ExecutorStopped():
                del self.executors[event.executor]
            case BatchCompleted() | SampleCompleted():
                self._ended(of, event, now_ns, well=True)
            case BatchFailed() | SampleFailed():
                self._ended(of, event, now_ns, well=False)
            case WeightsLoaded() | LoadFailed():
                if of.load is None:
                    _returned(of, None, now_ns)
                of.load = None
            case LoadReturned():
                _returned(of, None, now_ns)
            case ExecutorHung() if of.state is ExecutorState.UP:
                of.hangs = True
            case ExecutorGone() if of.state is ExecutorState.UP:
                of.gone = True
            case OpenFailed() if of.state is ExecutorState.OPENING or of.opening_abandoned:
                of.openings_failed += 1
                of.opening_abandoned = False
                _schedule_opening(of, now_ns)

    def set_limits(self, actions: Iterable[Action], now_ns: int) -> None:
        """Set the time limits of new orders."""
        for order in actions:
            match order:
                case Infer() | Sample():
                    of = self.executors[order.executor]
                    earliest_ns = self._limit_min_ns << of.doublings.get(order.variant, 0)
                    of.limit = _Limit(now_ns, now_ns + earliest_ns, order, derived=False)
                case Load() if self.executors[order.executor].state is ExecutorState.UP:
                    self.executors[order.executor].load = _Limit(now_ns, now_ns + LOAD_LIMIT_NS)

    def _started(self, event: ExecutorStarted, now_ns: int) -> None:
        of = self.executors.setdefault(event.executor, Supervised(since_ns=now_ns))
        if of.state is not ExecutorState.UP:
            of.restarts += 1
            of.enter(ExecutorState.UP, now_ns)
        ran = of.variants | of.without
        of.variants = frozenset(profile.variant for profile in event.profiles)
        of.without = ran - of.variants
        if event.opened_ns:
            of.open_limit_ns = max(OPEN_LIMIT_NS, OPEN_FACTOR * event.opened_ns)
        of.limit, of.openings_failed, of.opening_abandoned = None, 0, False

    def _ended(self, of: Supervised, event: Ended, now_ns: int, *, well: bool) -> None:
        limit = of.limit
        order = None if limit is None else limit.order
        sample = isinstance(event, SampleCompleted | SampleFailed)
        if order is None or order.batch != event.batch or isinstance(order, Sample) is not sample:
            _returned(of, event.batch, now_ns)
            return
        of.limit = None
        if well:
            of.last_success = order.variant, now_ns
            of.doublings.pop(order.variant, None)
            of.failed.clear()
        else:
            of.failed.append(order.variant)
            of.failing = len(of.failed) >= FAILURES_MAX and not _excused(of, now_ns)

    # -- Consequences

    def lost(self, now_ns: int) -> list[Abandon]:
        """Return the executors that are lost now, and change their state."""
        out = []
        for executor, of in self.executors.items():
            if of.state is ExecutorState.UP:
                if of.gone:
                    out.append(_lose(executor, of, LossCause.GONE, now_ns))
                elif of.hangs or self._batch_passed(of.limit, now_ns):
                    out.append(_lose(executor, of, LossCause.HUNG, now_ns))
                elif _passed(of.load, now_ns):
                    out.append(_lose(executor, of, LossCause.LOADING, now_ns))
                elif of.failing:
                    out.append(_lose(executor, of, LossCause.FAILING, now_ns))
        return out

    def _batch_passed(self, limit: _Limit | None, now_ns: int) -> bool:
        """Say whether a batch's limit was exceeded, which is derived once it matters."""
        if limit is None or limit.at_ns > now_ns:
            return False
        if not limit.derived and (order := limit.order) is not None:
            limit.derived = True
            threads = order.threads if isinstance(order, Infer) else 0
            limit.at_ns = limit.began_ns + self.limit_ns(
                order.executor, order.variant, self.apps_of(order), order.batch_size, threads
            )
        return _passed(limit, now_ns)

    def orders(self, now_ns: int) -> list[Action]:
        """Return the other orders that are due: executors to open, or the end of the process."""
        out: list[Action] = []
        for executor, of in self.executors.items():
            if of.state is ExecutorState.OPENING and _passed(of.limit, now_ns):
                out.append(_lose(executor, of, LossCause.OPENING, now_ns))
            elif of.retry_ns is not None and of.retry_ns <= now_ns:
                of.enter(ExecutorState.OPENING, now_ns)
                of.limit = _Limit(now_ns, now_ns + of.open_limit_ns)
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


def _lose(executor: ExecutorId, of: Supervised, cause: LossCause, now_ns: int) -> Abandon:
    """Take an executor out of service, and choose its next state."""
    limit = of.limit
    variant, waited_ns, excluded = None, 0, False
    if cause is LossCause.FAILING:
        variant = of.failed[-1]
    elif cause is LossCause.LOADING:
        assert of.load is not None
        waited_ns = now_ns - of.load.began_ns
    elif limit is not None and cause is not LossCause.GONE and not of.hangs:
        variant, waited_ns = limit.variant, now_ns - limit.began_ns
        if variant is not None:
            doublings = of.doublings.get(variant, 0) + 1
            of.doublings[variant] = min(doublings, LIMIT_DOUBLINGS_MAX)
            # Its own success would have cleared the count: it was another variant's.
            others_run = of.last_success is not None and of.last_success[1] >= of.since_ns
            excluded = doublings >= HANGS_MAX and others_run
            of.excluded |= {variant} if excluded else frozenset()
    if limit is not None and limit.batch is not None:
        of.abandoned[limit.batch] = None
    of.loads_abandoned += of.load is not None
    if of.state is ExecutorState.UP and now_ns - of.since_ns >= BACK_OFF_MAX_NS:
        of.recent_losses = 0
    of.losses[cause] += 1
    of.failed.clear()
    of.hangs = of.gone = of.failing = False
    of.opening_abandoned = cause is LossCause.OPENING
    _schedule_opening(of, now_ns)
    wedged = of.state is ExecutorState.WEDGED
    return Abandon(executor, cause, variant, waited_ns, wedged, excluded)


def _schedule_opening(of: Supervised, now_ns: int) -> None:
    """Schedule the next opening, later after each recent loss; none if it would hang."""
    if of.would_hang:
        of.enter(ExecutorState.WEDGED, now_ns)
        return
    wait_ns = BACK_OFF_NS << min(of.recent_losses - 1, 16) if of.recent_losses else 0
    of.enter(ExecutorState.WAITING, now_ns)
    of.retry_ns = now_ns + min(wait_ns, BACK_OFF_MAX_NS)
    of.recent_losses += 1


def _returned(of: Supervised, batch: BatchId | None, now_ns: int) -> None:
    """Note that abandoned work has come back: a batch or sample, or (None) a load."""
    if batch is None:
        of.loads_abandoned = max(0, of.loads_abandoned - 1)
    else:
        of.abandoned.pop(batch, None)
    if of.state is ExecutorState.WEDGED and not of.would_hang:
        _schedule_opening(of, now_ns)


def _passed(limit: _Limit | None, now_ns: int) -> bool:
    """Say whether a limit was exceeded; if the check comes too late, extend the limit once."""
    if limit is None or limit.at_ns > now_ns:
        return False
    if now_ns - limit.at_ns > LATE_FROM_NS and not limit.extended:
        limit.extended = True
        limit.at_ns = now_ns + LATE_NS
        return False
    return True


def _excused(of: Supervised, now_ns: int) -> bool:
    if of.last_success is None:
        return False
    variant, at_ns = of.last_success
    return variant not in of.failed and now_ns - at_ns <= EXCUSED_NS
