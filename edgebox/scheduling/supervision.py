"""Decides which executors are trusted with work: who is lost, who is opened anew, and when.

Pure. The rules:

- Everything that an executor is ordered to do has a limit in time: for a batch or a sample
  `LIMIT_FACTOR` times its high expectation (the profile's, or what was learned of its applications
  if that is more) and at least a second, more for loading weights and for opening an executor. What
  passes it hangs, and the executor is lost.
- A limit that was passed doubles, until the variant comes back within it: if it was the limit that
  was wrong, that is found out after a few losses (as TCP backs off its retransmission timer,
  RFC 6298, section 5.5).
- An executor is also lost after `FAILURES_MAX` batches in a row that failed, unless it has lately
  run another variant well: then a model or its input is to blame, and not the executor.
- What is lost is opened anew: at once, then after 1 s, 2 s, 4 s, up to `BACK_OFF_MAX_NS`. A loss
  is forgotten once the executor has been up for so long.
- Weights are loaded in a thread of their own, beside batches. A load that hangs costs its executor
  too, but says nothing against the batch that runs meanwhile.
- A thread that hangs cannot be ended, so it is abandoned, and with it what it holds. An executor
  with `ABANDONED_MAX` threads that have not come back, or whose opening hangs, is wedged: another
  thread would hang as well. It is not opened anew, unless one of them comes back.
- Once nobody is up and everybody is wedged, or could not be opened `OPENINGS_MAX` times in a row,
  only another process can help: the device, or what this process has of it, is broken.

A wake-up that comes late says that the whole machine stood still (a paused container, a laptop's
lid), and with it what runs: that gets `LATE_NS` more, once.

All operations cost O(executors) at most.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import BatchId
from edgebox.scheduling.events import (
    Abandon,
    Action,
    BatchCompleted,
    BatchFailed,
    Event,
    ExecutorHung,
    ExecutorStarted,
    ExecutorStopped,
    GiveUp,
    Infer,
    Load,
    LoadFailed,
    LoadReturned,
    LossCause,
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
longer inputs than were profiled. One that takes ten times as long as one in a hundred does is none
of these, and all deadlines of its frames have passed. Larger factors only find hangs later."""

LIMIT_DOUBLINGS_MAX = 6
"""Of a limit that was passed: 64 times."""

LOAD_LIMIT_NS = 60_000_000_000
"""For loading weights: reading a file of gigabytes from a slow disk takes tens of seconds."""

OPEN_LIMIT_NS = 60_000_000_000
OPEN_FACTOR = 10
"""Opening may take a minute, or so many times as long as it took the last time."""

FAILURES_MAX = 3
EXCUSED_NS = 10_000_000_000
"""So long does a batch that went well speak for an executor that fails with another variant."""

BACK_OFF_NS = 1_000_000_000
BACK_OFF_MAX_NS = 60_000_000_000
ABANDONED_MAX = 3
OPENINGS_MAX = 5
"""With back-off that is a quarter of a minute: a driver that is being restarted is back by then."""

LATE_NS = 1_000_000_000
LATE_FROM_NS = 100_000_000
"""How late a wake-up is no longer the loop's doing."""


class ExecutorState(StrEnum):
    """What an executor is good for."""

    UP = "up"
    OPENING = "opening"
    """It was lost, and is being opened anew."""
    WAITING = "waiting"
    """It was lost, and will be opened anew."""
    WEDGED = "wedged"
    """It was lost, and opening it anew would hang as well."""


Ended = BatchCompleted | BatchFailed | SampleCompleted | SampleFailed


@dataclass(slots=True)
class _Limit:
    """What an executor does, and until when."""

    began_ns: int
    at_ns: int
    batch: BatchId | None = None
    """None: it is being opened, or loads."""
    variant: VariantName | None = None
    sample: bool = False
    extended: bool = False


@dataclass(slots=True)
class Supervised:
    """One executor."""

    state: ExecutorState = ExecutorState.UP
    variants: frozenset[VariantName] = frozenset()
    """What it can run while it is up."""
    without: frozenset[VariantName] = frozenset()
    """What it ran at first, and has come back without."""
    since_ns: int = 0
    """When it came into this state."""
    limit: _Limit | None = None
    """Of the batch or sample that it runs, or of its opening."""
    load: _Limit | None = None
    """Of the weights that it loads."""
    hangs: bool = False
    """Somebody says so."""
    losses: Counter[LossCause] = field(default_factory=Counter)
    restarts: int = 0
    """How often it came back after a loss."""
    retry_ns: int | None = None
    """When it is opened anew, while it waits for that."""
    abandoned: dict[BatchId, None] = field(default_factory=dict)
    """What hangs, or hung and has not come back."""
    loads_abandoned: int = 0
    """Loads of which the same is true."""
    lately: int = 0
    """Losses that are not forgotten yet: they decide the back-off."""
    openings_failed: int = 0
    """In a row."""
    open_limit_ns: int = OPEN_LIMIT_NS
    failed: list[VariantName] = field(default_factory=list)
    """Of the batches that failed since the last that did not."""
    failing: bool = False
    """These are too many."""
    went_well: tuple[VariantName, int] | None = None
    """The last batch that did not fail, and when."""
    doublings: dict[VariantName, int] = field(default_factory=dict)

    def enter(self, state: ExecutorState, now_ns: int) -> None:
        """Change the state."""
        self.state, self.since_ns = state, now_ns
        self.limit = self.load = self.retry_ns = None

    @property
    def threads_abandoned(self) -> int:
        """How many threads hang, or hung and have not come back."""
        return len(self.abandoned) + self.loads_abandoned

    @property
    def hopeless(self) -> bool:
        """Say whether opening it anew has not helped, or cannot."""
        return self.state is ExecutorState.WEDGED or (
            self.state is not ExecutorState.UP and self.openings_failed >= OPENINGS_MAX
        )


class Supervision:
    """All executors that were ever started, but for those stopped in order."""

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
        self._given_up = False

    def is_lost(self, variant: VariantName) -> bool:
        """Say whether a variant cannot run now: who has it is lost, or came back without it."""
        has = [of for of in self.executors.values() if variant in of.variants]
        had = any(variant in of.without for of in self.executors.values())
        return (bool(has) or had) and all(of.state is not ExecutorState.UP for of in has)

    def limit_ns(
        self, executor: ExecutorId, variant: VariantName, apps: Sequence[str], batch_size: int
    ) -> int:
        """Return how long a batch may take: here the expectation comes in, and nowhere else.

        What was learned counts where it is more: an application known to be many times as long as
        the profile does not hang. Where it is less the profile counts: it may become longer.

        Args:
            executor: where.
            variant: what.
            apps: the application of each member.
            batch_size: a profiled size.
        """
        row = self._latencies.row(executor, variant)
        high_ns = 0 if row is None else row.high_ns[row.sizes.index(batch_size)]
        q = self._latencies.parameters.high_quantile
        learned_ns = self._expectations.batch_ns(executor, variant, apps, batch_size, q)
        high_ns = max(high_ns, learned_ns or 0)
        doublings = self.executors[executor].doublings.get(variant, 0)
        return max(self._limit_min_ns, LIMIT_FACTOR * high_ns) << doublings

    def _apps(self, order: Infer | Sample) -> list[str]:
        """Return the application of each member of what has just been ordered."""
        if isinstance(order, Infer):
            return [self._ledger.live[member].request.app for member in order.requests]
        assert self._sampling.running is not None
        return [self._sampling.running.app]

    # -- what is told and ordered -----------------------------------------------------------

    def heard(self, event: Event, now_ns: int) -> None:
        """Take in a fact."""
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
            case OpenFailed() if of.state is ExecutorState.OPENING:
                of.openings_failed += 1
                _wait(of, now_ns)

    def ordered(self, actions: Iterable[Action], now_ns: int) -> None:
        """Limit what executors were just ordered to do."""
        for order in actions:
            match order:
                case Infer() | Sample():
                    limit_ns = self.limit_ns(
                        order.executor, order.variant, self._apps(order), order.batch_size
                    )
                    self.executors[order.executor].limit = _Limit(
                        now_ns,
                        now_ns + limit_ns,
                        order.batch,
                        order.variant,
                        isinstance(order, Sample),
                    )
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
        of.limit, of.openings_failed = None, 0

    def _ended(self, of: Supervised, event: Ended, now_ns: int, *, well: bool) -> None:
        limit = of.limit
        sample = isinstance(event, SampleCompleted | SampleFailed)
        if limit is None or (limit.batch, limit.sample) != (event.batch, sample):
            _returned(of, event.batch, now_ns)
            return
        assert limit.variant is not None
        of.limit = None
        if well:
            of.went_well = limit.variant, now_ns
            of.doublings.pop(limit.variant, None)
            of.failed.clear()
        else:
            of.failed.append(limit.variant)
            of.failing = len(of.failed) >= FAILURES_MAX and not _excused(of, now_ns)

    # -- what follows -----------------------------------------------------------------------

    def lost(self, now_ns: int) -> list[Abandon]:
        """Return who is up and cannot be trusted any more; from now on they are not up."""
        out = []
        for executor, of in self.executors.items():
            if of.state is ExecutorState.UP:
                if of.hangs or _passed(of.limit, now_ns):
                    out.append(_lose(executor, of, LossCause.HUNG, now_ns))
                elif _passed(of.load, now_ns):
                    out.append(_lose(executor, of, LossCause.LOADING, now_ns))
                elif of.failing:
                    out.append(_lose(executor, of, LossCause.FAILING, now_ns))
        return out

    def orders(self, now_ns: int) -> list[Action]:
        """Return what else is due: executors to open, or the end of all hope."""
        out: list[Action] = []
        for executor, of in self.executors.items():
            if of.state is ExecutorState.OPENING and _passed(of.limit, now_ns):
                out.append(_lose(executor, of, LossCause.OPENING, now_ns))
            elif of.retry_ns is not None and of.retry_ns <= now_ns:
                of.enter(ExecutorState.OPENING, now_ns)
                of.limit = _Limit(now_ns, now_ns + of.open_limit_ns)
                out.append(Open(executor))
        hopeless = bool(self.executors) and all(of.hopeless for of in self.executors.values())
        if hopeless and not self._given_up:
            out.append(GiveUp())
        self._given_up = hopeless
        return out

    def due_ns(self, stopping: bool) -> int | None:
        """Return when something is due next; a box that stops only waits for what runs."""
        due: list[int | None] = []
        for of in self.executors.values():
            if of.limit is not None and not (stopping and of.state is ExecutorState.OPENING):
                due.append(of.limit.at_ns)
            if not stopping:
                due += [None if of.load is None else of.load.at_ns, of.retry_ns]
        return min((at for at in due if at is not None), default=None)


def _lose(executor: ExecutorId, of: Supervised, cause: LossCause, now_ns: int) -> Abandon:
    """Take an executor out of service; decide what becomes of it."""
    limit = of.limit
    variant, waited_ns = None, 0
    if cause is LossCause.FAILING:
        variant = of.failed[-1]
    elif cause is LossCause.LOADING:
        assert of.load is not None
        waited_ns = now_ns - of.load.began_ns
    elif limit is not None and not of.hangs:
        variant, waited_ns = limit.variant, now_ns - limit.began_ns
        if variant is not None:
            doublings = of.doublings.get(variant, 0) + 1
            of.doublings[variant] = min(doublings, LIMIT_DOUBLINGS_MAX)
    if limit is not None and limit.batch is not None:
        of.abandoned[limit.batch] = None
    of.loads_abandoned += of.load is not None
    if of.state is ExecutorState.UP and now_ns - of.since_ns >= BACK_OFF_MAX_NS:
        of.lately = 0
    of.losses[cause] += 1
    of.failed.clear()
    of.hangs = of.failing = False
    if cause is LossCause.OPENING or of.threads_abandoned >= ABANDONED_MAX:
        of.enter(ExecutorState.WEDGED, now_ns)
    else:
        _wait(of, now_ns)
    return Abandon(executor, cause, variant, waited_ns, of.state is ExecutorState.WEDGED)


def _wait(of: Supervised, now_ns: int) -> None:
    """Have an executor opened anew, the later the more often that was done lately."""
    wait_ns = BACK_OFF_NS << min(of.lately - 1, 16) if of.lately else 0
    of.enter(ExecutorState.WAITING, now_ns)
    of.retry_ns = now_ns + min(wait_ns, BACK_OFF_MAX_NS)
    of.lately += 1


def _returned(of: Supervised, batch: BatchId | None, now_ns: int) -> None:
    """Take in that what was abandoned has come back: a batch or sample, or (None) a load."""
    was_wedged = of.threads_abandoned >= ABANDONED_MAX
    if batch is None:
        of.loads_abandoned = max(0, of.loads_abandoned - 1)
    else:
        of.abandoned.pop(batch, None)
    if was_wedged and of.state is ExecutorState.WEDGED and of.threads_abandoned < ABANDONED_MAX:
        _wait(of, now_ns)


def _passed(limit: _Limit | None, now_ns: int) -> bool:
    """Say whether a limit has been passed; one that is looked at too late is extended, once."""
    if limit is None or limit.at_ns > now_ns:
        return False
    if now_ns - limit.at_ns > LATE_FROM_NS and not limit.extended:
        limit.extended = True
        limit.at_ns = now_ns + LATE_NS
        return False
    return True


def _excused(of: Supervised, now_ns: int) -> bool:
    if of.went_well is None:
        return False
    variant, at_ns = of.went_well
    return variant not in of.failed and now_ns - at_ns <= EXCUSED_NS
