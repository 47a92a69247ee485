"""Owns the supervision state of one executor, which changes by the rules of `supervision`. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import BatchId, DropReason
from edgebox.scheduling.actions import Abandon, Infer, Sample
from edgebox.scheduling.events import RequestsUnanswered

LIMIT_DOUBLINGS_MAX = 6
"""Maximum number of doublings: a factor of 64."""

HANGS_MAX = 2
"""The second time it had twice as long: 20 times its high expectation."""

OPEN_LIMIT_NS = 60_000_000_000

EXCUSED_NS = 10_000_000_000
"""A successful batch protects an executor that fails with another variant for this long."""

BACK_OFF_NS = 1_000_000_000
BACK_OFF_MAX_NS = 60_000_000_000
BACK_OFF_AWAY_MAX_NS = 8_000_000_000
"""Between looks whether what had ended elsewhere is back: each costs a connection."""
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


@dataclass(slots=True)
class Limit:
    """The current work of an executor and its time limit."""

    began_ns: int
    at_ns: int
    order: Infer | Sample | None = None
    """None: it is being opened, or it loads weights."""
    derived: bool = True
    """False: `at_ns` is the earliest possible, and the limit itself is still to be derived. Most
    batches end before."""
    extended: bool = False
    unanswered: int = 0
    """How many members of the batch it came back without an answer to."""
    overloaded: bool = False
    """Whether a server had too much to do for some."""

    def came_back(self, event: RequestsUnanswered, rested_ns: int) -> None:
        """Note that a batch has no answer to some members: it runs no more, its executor may rest.

        Args:
            event: about these members.
            rested_ns: when the executor is in service again at the latest.
        """
        self.at_ns, self.derived = rested_ns, True
        self.unanswered += len(event.requests)
        self.overloaded |= event.reason is DropReason.OVERLOAD

    @property
    def answered(self) -> bool:
        """Whether the batch has an answer to any member."""
        return not isinstance(self.order, Infer) or self.unanswered < len(self.order.requests)

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
    limit: Limit | None = None
    """The limit of its batch or sample, or of its opening."""
    load: Limit | None = None
    """The limit of the weights that it loads."""
    lent_ns: int | None = None
    """Since when it does work that was not ordered; None: it does none."""
    hangs: bool = False
    """Whether an `ExecutorHung` was reported."""
    gone: bool = False
    """Whether an `ExecutorGone` was reported."""
    away: bool = False
    """Whether what ran its batches had ended when it was last lost."""
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
    disconnections: int = 0
    """Of these, the batches that failed because the connection to what runs them broke."""
    failing: bool = False
    """Whether these are too many."""
    refusals: int = 0
    """Batches in a row that were refused for too much to do."""
    refused: VariantName | None = None
    """The variant of the last one of them."""
    last_success: tuple[VariantName, int] | None = None
    """The variant of the last successful batch, and when."""
    doublings: dict[VariantName, int] = field(default_factory=dict)
    """How often each variant hung since it last came back."""
    excluded: frozenset[VariantName] = frozenset()
    """The variants that are not run here any more, because they hang."""

    def enter(self, state: ExecutorState, now_ns: int) -> None:
        """Change the state."""
        self.state, self.since_ns = state, now_ns
        self.limit = self.load = self.retry_ns = self.lent_ns = None

    @property
    def delayed(self) -> Infer | Sample | None:
        """The order that waits for work that was not ordered; None: none does."""
        limit, lent_ns = self.limit, self.lent_ns
        if limit is None or limit.unanswered or lent_ns is None or limit.began_ns < lent_ns:
            return None
        return limit.order

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


def lose(executor: ExecutorId, of: Supervised, cause: LossCause, now_ns: int) -> Abandon:
    """Take an executor out of service, and choose its next state."""
    limit = of.limit
    variant, waited_ns, excluded = None, 0, False
    if cause is LossCause.FAILING:
        variant = of.failed[-1]
    elif cause is LossCause.REFUSING:
        variant = of.refused
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
    of.away = cause is LossCause.GONE
    of.failed.clear()
    of.disconnections = of.refusals = 0
    of.hangs = of.gone = of.failing = False
    of.opening_abandoned = cause is LossCause.OPENING
    schedule_opening(of, now_ns)
    wedged = of.state is ExecutorState.WEDGED
    return Abandon(executor, cause, variant, waited_ns, wedged, excluded)


def schedule_opening(of: Supervised, now_ns: int) -> None:
    """Schedule the next opening, later after each recent loss; none if it would hang."""
    if of.would_hang:
        of.enter(ExecutorState.WEDGED, now_ns)
        return
    wait_ns = BACK_OFF_NS << min(of.recent_losses - 1, 16) if of.recent_losses else 0
    of.enter(ExecutorState.WAITING, now_ns)
    absent = of.away and of.openings_failed
    of.retry_ns = now_ns + min(wait_ns, BACK_OFF_AWAY_MAX_NS if absent else BACK_OFF_MAX_NS)
    of.recent_losses += 1


def returned(of: Supervised, batch: BatchId | None, now_ns: int) -> None:
    """Note that abandoned work has come back: a batch or sample, or (None) a load."""
    if batch is None:
        of.loads_abandoned = max(0, of.loads_abandoned - 1)
    else:
        of.abandoned.pop(batch, None)
    if of.state is ExecutorState.WEDGED and not of.would_hang:
        schedule_opening(of, now_ns)


def passed(limit: Limit | None, now_ns: int) -> bool:
    """Say whether a limit was exceeded; if the check comes too late, extend the limit once."""
    if limit is None or limit.at_ns > now_ns:
        return False
    if now_ns - limit.at_ns > LATE_FROM_NS and not limit.extended:
        limit.extended = True
        limit.at_ns = now_ns + LATE_NS
        return False
    return True


def excused(of: Supervised, now_ns: int) -> bool:
    """Say whether its failures are a variant's rather than its own: another one has run well."""
    if of.last_success is None:
        return False
    variant, at_ns = of.last_success
    return variant not in of.failed and now_ns - at_ns <= EXCUSED_NS
