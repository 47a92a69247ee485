"""Decides between the best candidate batches by playing out sampled futures of each.

Pure: chance comes from the generator passed in. All candidates are tried on the same futures:
arrivals at the recent rate, applications and execution times as sampled. After the candidate
itself a cheap greedy policy plays on to the horizon, in all plays side by side; what counts is how
many requests end on time, and of those with several deadlines what their answers are worth.
Waiting for the next arrival is a candidate too.

Cost: some thirty array operations over plays x requests for each batch until the horizon.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgebox.domain.requests import UtilityStep
from edgebox.scheduling.batch_candidates import BatchCost, WaitingRequests
from edgebox.scheduling.deadline_utility import spread
from edgebox.scheduling.distributions import Floats, Places
from edgebox.scheduling.work import WorkTable

FUTURES = 24
RECENT = 128
"""Arrivals from which rate, applications and deadlines of the next ones are taken."""

KNOWN_MIN = 16
"""With fewer arrivals seen there is no rate to speak of."""

WAITING_MAX = 96
"""With more requests waiting than this, what comes next matters little."""

BETTER = 1.01
"""Another candidate must be this much better than the greedy one: futures are only samples."""

ERRORS = 2.0
"""And by so many standard errors."""

WAIT = -1
HORIZON_BATCHES = 5
"""Plays end at the longest deadline, or after so many batches like the greedy choice."""

_STEP_NS = 400_000
"""What one batch of all plays is taken to cost on a slow core; measured, with some to spare."""

_COMING_MAX = 64
_CLASSES_MAX = 3
"""Of more applications than this, the plays try as many as the largest of a batch."""

_STEPS_MAX = 40
_QUANTILE = 0
"""The membership quantile that the plays use: the median."""


@dataclass(frozen=True, slots=True)
class PlayedSteps:
    """The single deadlines of some requests, K of each: gain 0 where there are fewer."""

    slack_ns: Floats
    """(K, ...): deadlines, from now or from the arrival."""
    gain: Floats
    """(K, ...)"""

    def widened(self, most: int) -> "PlayedSteps":
        """Return the same with more that gain nothing."""
        missing = most - len(self.gain)
        return PlayedSteps(
            np.concatenate([self.slack_ns, np.repeat(self.slack_ns[-1:], missing, axis=0)]),
            np.concatenate([self.gain, np.zeros((missing, *self.gain.shape[1:]))]),
        )


class RecentArrivals:
    """The last arrivals of one variant."""

    def __init__(self, replaced: int = 0) -> None:
        self.replaced = replaced
        """`Learning.replaced`: an index is that of the same application while it stays."""
        self._seen: deque[tuple[int, int, int]] = deque(maxlen=RECENT)
        self._singles: deque[tuple[UtilityStep, ...]] = deque(maxlen=RECENT)

    def add(
        self, now_ns: int, app: int, slo_ns: int, singles: tuple[UtilityStep, ...] = ()
    ) -> None:
        """Take an arrival in; `singles` are its deadlines if there are several, from now."""
        self._seen.append((now_ns, app, slo_ns))
        self._singles.append(singles)

    def __len__(self) -> int:
        return len(self._seen)

    def interval_ns(self, now_ns: int) -> float:
        """Return the mean time between arrivals."""
        return max(1.0, (now_ns - self._seen[0][0]) / len(self._seen))

    def sample(
        self, count: int, rng: np.random.Generator
    ) -> tuple[Places, Floats, PlayedSteps | None]:
        """Return applications and deadlines, (count,) each, of arrivals like the recent ones.

        And all deadlines, (K, count), where any of the recent ones had several.
        """
        picked = rng.integers(0, len(self._seen), count)
        seen = np.array(self._seen, dtype=np.int64)
        steps = None
        if any(self._singles):
            slo_ns, gain = spread(seen[:, 2].tolist(), self._singles)
            steps = PlayedSteps(slo_ns[:, picked].astype(np.float64), gain[:, picked])
        seen = seen[picked]
        return seen[:, 1].astype(np.intp), seen[:, 2].astype(np.float64), steps


@dataclass(slots=True)
class _Plays:
    """P plays of R requests each, by rising deadline; the first requests of all are the waiting."""

    arrival_ns: Floats
    """(P, R), from now; 0 for who waits."""
    slack_ns: Floats
    """(P, R): deadlines, from now."""
    rank: Places
    """(P, R)"""
    work: Floats
    """(P, R)"""
    alive: npt.NDArray[np.bool_]
    """(P, R)"""
    time_ns: Floats
    """(P,): when the executor is free."""
    worth: Floats
    """(P,): of the answers so far."""
    steps: PlayedSteps | None
    """(K, P, R): all deadlines, where anybody has several."""

    def aims(self, alone_ns: Floats) -> tuple[Floats, Floats | None]:
        """Return the first deadline that each would usually make if it ran alone next.

        Args:
            alone_ns: (applications,), by rank.

        Returns:
            (P, R), and what an answer by it is worth, (P, R); None: 1 each.
        """
        steps = self.steps
        if steps is None:
            return self.slack_ns, None
        done_ns = self.time_ns[:, None] + alone_ns[self.rank]
        aims_ns, worth = steps.slack_ns[-1], steps.gain[-1]
        total = worth
        for slack_ns, gain in zip(steps.slack_ns[-2::-1], steps.gain[-2::-1], strict=True):
            total = total + gain
            made = slack_ns >= done_ns
            aims_ns, worth = np.where(made, slack_ns, aims_ns), np.where(made, total, worth)
        return aims_ns, worth


def choose(
    batches: Sequence[Sequence[int]],
    waiters: WaitingRequests,
    table: WorkTable,
    pricing: BatchCost,
    *,
    recent: RecentArrivals,
    now_ns: int,
    horizon_ns: float,
    rng: np.random.Generator,
) -> int:
    """Return which batch does best, or `WAIT`.

    Args:
        batches: places in the queue, the greedy choice first.
        waiters: the queue.
        table: the work of the applications.
        pricing: what batches cost.
        recent: what has arrived lately.
        now_ns: the instant.
        horizon_ns: how far the plays go.
        rng: all chance.
    """
    coming = _coming(table, recent, now_ns=now_ns, horizon_ns=horizon_ns, rng=rng)
    plays = _set_up(len(batches) + 1, waiters, table, coming, rng)
    _first_moves(plays, batches, waiters, pricing)
    needs_ns = pricing.fixed_ns + pricing.slope_ns * table.thresholds(pricing.sizes)[..., _QUANTILE]
    for _ in range(_STEPS_MAX):
        if not _step(plays, needs_ns, pricing, horizon_ns):
            break
    found = plays.worth.reshape(len(batches) + 1, FUTURES)
    gains = found - found[0]
    best = int(np.argmax(gains.mean(axis=1)))
    gain = float(gains[best].mean())
    error = float(gains[best].std()) / math.sqrt(FUTURES)
    if gain <= (BETTER - 1) * found[0].mean() or gain <= ERRORS * error:
        return 0
    return WAIT if best == len(batches) else best


def horizon_ns(waiters: WaitingRequests, expected_ns: float) -> float:
    """Return how far it is worth looking from a decision whose batch is expected to take this."""
    slo_ns = waiters.slo_ns if waiters.steps is None else waiters.steps.slo_ns
    return min(float(slo_ns.max()), HORIZON_BATCHES * expected_ns)


def cost_ns(waiters: WaitingRequests, expected_ns: float) -> float:
    """Return about what looking ahead costs: the core has no clock to measure it with."""
    steps = 2 + horizon_ns(waiters, expected_ns) / expected_ns
    deadlines = 0 if waiters.steps is None else len(waiters.steps.gain)
    return _STEP_NS * steps * (1 + len(waiters.rank) / WAITING_MAX) * (1 + deadlines / 2)


@dataclass(frozen=True, slots=True)
class _Coming:
    """Sampled arrivals, (futures, arrivals) each."""

    arrival_ns: Floats
    slo_ns: Floats
    rank: Places
    steps: PlayedSteps | None
    """(K, futures, arrivals), from now."""


def _coming(
    table: WorkTable,
    recent: RecentArrivals,
    *,
    now_ns: int,
    horizon_ns: float,
    rng: np.random.Generator,
) -> _Coming:
    interval_ns = recent.interval_ns(now_ns)
    shape = (FUTURES, int(min(_COMING_MAX, 1 + 1.5 * horizon_ns / interval_ns)))
    app, slo_ns, steps = recent.sample(shape[0] * shape[1], rng)
    arrival_ns = rng.exponential(interval_ns, shape).cumsum(axis=1)
    if steps is not None:
        each = (len(steps.gain), *shape)
        steps = PlayedSteps(steps.slack_ns.reshape(each) + arrival_ns, steps.gain.reshape(each))
    return _Coming(arrival_ns, slo_ns.reshape(shape), table.rank[app].reshape(shape), steps)


def _all_steps(waiters: WaitingRequests, coming: _Coming, choices: int) -> PlayedSteps | None:
    """Return the deadlines of who waits and who comes, for every play; None: one each."""
    known, next_ = waiters.steps, coming.steps
    if known is None and next_ is None:
        return None
    if known is None:
        waiting = PlayedSteps(waiters.slack_ns[None], np.ones((1, len(waiters.rank))))
    else:
        waiting = PlayedSteps(known.slack_ns, known.gain)
    if next_ is None:
        due_ns = coming.arrival_ns + coming.slo_ns
        next_ = PlayedSteps(due_ns[None], np.ones((1, *due_ns.shape)))
    most = max(len(waiting.gain), len(next_.gain))
    waiting, next_ = waiting.widened(most), next_.widened(most)

    def joined(of_waiting: Floats, of_coming: Floats) -> Floats:
        repeated = np.repeat(of_waiting[:, None], FUTURES, axis=1)
        return np.tile(np.concatenate([repeated, of_coming], axis=2), (1, choices, 1))

    return PlayedSteps(joined(waiting.slack_ns, next_.slack_ns), joined(waiting.gain, next_.gain))


def _set_up(
    choices: int,
    waiters: WaitingRequests,
    table: WorkTable,
    coming: _Coming,
    rng: np.random.Generator,
) -> _Plays:
    waiting = len(waiters.rank)
    arrival_ns = np.concatenate([np.zeros((FUTURES, waiting)), coming.arrival_ns], axis=1)
    rank = np.concatenate([np.tile(waiters.rank, (FUTURES, 1)), coming.rank], axis=1)
    slack_ns = np.concatenate(
        [np.tile(waiters.slack_ns, (FUTURES, 1)), coming.arrival_ns + coming.slo_ns], axis=1
    )
    work = np.empty(rank.shape)
    chance = rng.random(rank.shape)
    for each, distribution in enumerate(table.ranked):
        here = rank == each
        values = distribution.values
        work[here] = values[(chance[here] * len(values)).astype(np.intp)]
    plays = FUTURES * choices
    return _Plays(
        arrival_ns=np.tile(arrival_ns, (choices, 1)),
        slack_ns=np.tile(slack_ns, (choices, 1)),
        rank=np.tile(rank, (choices, 1)),
        work=np.tile(work, (choices, 1)),
        alive=np.ones((plays, rank.shape[1]), dtype=np.bool_),
        time_ns=np.zeros(plays),
        worth=np.zeros(plays),
        steps=_all_steps(waiters, coming, choices),
    )


def _first_moves(
    plays: _Plays, batches: Sequence[Sequence[int]], waiters: WaitingRequests, pricing: BatchCost
) -> None:
    chosen = np.zeros_like(plays.alive)
    size = np.zeros(len(chosen), dtype=np.intp)
    for number, places in enumerate(batches):
        rows = slice(number * FUTURES, (number + 1) * FUTURES)
        chosen[rows, list(places)] = True
        size[rows] = np.searchsorted(pricing.sizes, len(places))
    _run(plays, chosen, size, pricing)
    # Those that wait do so until the next arrival.
    waiting = slice(len(batches) * FUTURES, None)
    plays.time_ns[waiting] = plays.arrival_ns[waiting, len(waiters.rank)]


def _run(plays: _Plays, chosen: npt.NDArray[np.bool_], size: Places, pricing: BatchCost) -> None:
    """Run a batch in every play that has chosen one."""
    some = chosen.any(axis=1)
    longest = (plays.work * chosen).max(axis=1)
    takes_ns = pricing.fixed_ns + pricing.slope_ns[size] * longest
    plays.time_ns += np.where(some, takes_ns, 0.0)
    if plays.steps is None:
        in_time = chosen & (plays.slack_ns >= plays.time_ns[:, None])
        plays.worth += in_time.sum(axis=1)
    else:
        in_time = chosen & (plays.steps.slack_ns >= plays.time_ns[:, None])
        plays.worth += (in_time * plays.steps.gain).sum(axis=(0, 2))
    plays.alive &= ~chosen


def _step(plays: _Plays, needs_ns: Floats, pricing: BatchCost, horizon_ns: float) -> bool:
    """Let every play take its next batch; False: all have come to the horizon."""
    running = plays.time_ns < horizon_ns
    if not running.any():
        return False
    time_ns = plays.time_ns[:, None]
    here = plays.alive & (plays.arrival_ns <= time_ns) & running[:, None]
    aims_ns, worth = plays.aims(needs_ns[:, 0])
    left_ns = aims_ns - time_ns
    best = np.zeros(len(here))
    limit, need_ns = np.zeros(len(here)), np.zeros(len(here))
    top, size = np.zeros(len(here), dtype=np.intp), np.zeros(len(here), dtype=np.intp)
    for each in _classes(len(needs_ns)):
        of_class = here & (plays.rank <= each)
        for at, most in enumerate(pricing.sizes):
            fits = of_class & (left_ns >= needs_ns[each, at])
            fit = np.count_nonzero(fits, axis=1)
            score = np.minimum(fit, most) / needs_ns[each, at]
            if worth is not None:
                score *= (fits * worth).sum(axis=1) / np.maximum(fit, 1)
            better = score > best
            best[better] = score[better]
            limit[better], need_ns[better] = most, needs_ns[each, at]
            top[better], size[better] = each, at
    fit = here & (plays.rank <= top[:, None]) & (left_ns >= need_ns[:, None])
    order = np.argsort(np.where(fit, aims_ns, np.inf), axis=1, kind="stable")
    chosen = np.zeros_like(fit)
    first = order[:, : pricing.sizes[-1]]
    rows = np.arange(len(fit))[:, None]
    chosen[rows, first] = fit[rows, first] & (np.arange(first.shape[1]) < limit[:, None])
    idle = best == 0
    _run(plays, chosen, size, pricing)
    coming = np.where(plays.alive & (plays.arrival_ns > time_ns), plays.arrival_ns, np.inf)
    plays.time_ns = np.where(idle & running, coming.min(axis=1), plays.time_ns)
    return True


def _classes(count: int) -> list[int]:
    picked = np.linspace(0, count - 1, min(count, _CLASSES_MAX))
    return [int(each) for each in picked.round()]
