"""Decides the next batch from distributions of execution time, per application.

Pure; randomness, for the look-ahead, comes from the generator passed in. Of all candidate batches
(`candidates`) of one variant the one that is expected to answer most requests on time per time it
takes is best; of the variants' best, the one whose running first costs the others least is
dispatched. Nobody is dropped before it is hopeless. An answer that is late by some of a request's
deadlines but not by the last counts for what it is still worth.

Source: Orloj (arXiv 2209.00159), from which it takes empirical distributions per application, the
maximum of a batch, and the exponential urgency. It differs in scoring batches instead of requests,
in grouping by application, so that a long request does not hold up short ones, in dropping only
the hopeless, and in never waiting for a batch to fill.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request, UtilityStep, single_deadlines
from edgebox.scheduling import lookahead
from edgebox.scheduling.batch_candidates import (
    BatchCost,
    Candidates,
    WaitingRequests,
    answered_after,
    likeliest,
    propose,
)
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.distributions import Floats
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues
from edgebox.scheduling.work import WorkTable

URGENCY = 0.3
"""Weight of the members' urgency against their chances, where there are several applications."""

URGENCY_SLOS = 0.3
"""Share of its deadline over which a member's urgency fades by a factor e."""

LOOK_AHEAD_FACTOR = 20
"""A batch must be expected to take so many times as long as looking ahead."""

_TRIED = 4
"""Candidates that are played out, besides waiting."""


@dataclass(frozen=True, slots=True)
class _Best:
    """The best batch of one variant."""

    variant: VariantName
    places: list[int]
    batch_size: int
    score: float
    """Of the kind of `Candidates.score`."""
    expected_ns: float = 0.0
    first_ns: float = 0.0
    """Time to the earliest deadline of its members."""
    answered_after: Callable[[Floats], Floats] | None = None
    """What it is expected to answer if it runs so much later; None: hardly anything even now."""


class DistributionAware(QueueingPolicy):
    """The batch with the most worth of answers per time runs next (`batching = "adaptive"`)."""

    wants_samples = True

    def __init__(self, rng: random.Random, *, look_ahead: bool = True) -> None:
        super().__init__()
        self._looks_ahead = look_ahead
        self._rng = rng
        self._recent: dict[VariantName, lookahead.RecentArrivals] = {}

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Watch the deadline of a request that is being decoded."""
        app = self._learning.app(variant, request.app, now_ns)
        self._waiting.admit(request, variant, app)
        recent = self._recent.get(variant)
        replaced = self._learning.replaced(variant)
        if recent is None or recent.replaced != replaced:
            recent = self._recent[variant] = lookahead.RecentArrivals(replaced)
        recent.add(
            now_ns, app, max(1, request.deadline_ns - now_ns), _singles_after(request, now_ns)
        )

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Give away the batch with the best score; None: nobody waits for this executor."""
        alone = len(queues) == 1 and len(queues[0][1]) == 1
        bests: list[_Best] = []
        for number, (variant, _, _) in enumerate(queues):
            times = self._learning.times_now(executor, variant, now_ns)
            found = None if times is None else self._best(executor, variant, times, now_ns, alone)
            if found is not None:
                bests.append(found)
            if number == 0 and bests and self._costs_nobody(bests[0], queues[1:], executor, now_ns):
                break
        if not bests:
            return None
        best = _least_regretted(bests, len(self._latencies.slowdowns))
        members = self._waiting.take(best.variant, best.places)
        ids = tuple(member.id for member in members)
        return Batch(best.variant, ids, best.batch_size)

    def _costs_nobody(
        self,
        best: _Best,
        others: Queues,
        executor: ExecutorId,
        now_ns: int,
    ) -> bool:
        """Say whether the batch with the earliest deadline of all surely leaves time for the rest.

        Then it is the one that `_least_regretted` would choose, and the others' need not be formed.
        """
        if best.answered_after is None or 0 not in best.places:
            return False
        over_ns = now_ns + best.expected_ns / len(self._latencies.slowdowns)
        for variant, queue, _ in others:
            times = self._learning.times_now(executor, variant, now_ns)
            if times is None:
                continue
            if queue.singles:
                return False
            table = self._learning.table(variant)
            pricing = self._pricing(executor, variant, times, table)
            at = min(bisect_left(times.sizes, len(queue)), len(times.sizes) - 1)
            longest_ns = pricing.fixed_ns + float(pricing.slope_ns[at]) * table.greatest
            if queue.deadlines[0] < over_ns + longest_ns:
                return False
        return True

    def _best(
        self,
        executor: ExecutorId,
        variant: VariantName,
        times: BatchTimes,
        now_ns: int,
        alone: bool,
    ) -> _Best | None:
        """Return a variant's best batch; `alone`: nobody else waits, so there is no choice."""
        columns = self._waiting.queues[variant].columns
        table = self._learning.table(variant)
        slack_ns = (columns.deadline_ns - now_ns).astype(np.float64)
        steps = None if columns.steps is None else columns.steps.left(now_ns)
        waiters = WaitingRequests(slack_ns, columns.slo_ns, table.rank[columns.app], steps)
        pricing = self._pricing(executor, variant, times, table)
        alone = alone and len(table.rank) == 1  # with several applications waiting may be better
        found = None if alone else propose(waiters, table, pricing)
        if found is None:
            single = likeliest(waiters, table, pricing)
            if single is None and times.is_stale(now_ns):
                # By the pace of batches long ago nobody is in time, by the profile somebody may be.
                single = int(np.argmax(slack_ns)), 0.0
            return (
                None if single is None else _Best(variant, [single[0]], times.sizes[0], single[1])
            )
        at: int | None = int(np.argmax(found.score))
        if self._is_worth_looking_ahead(variant, waiters, float(found.expected_ns[at])):
            at = self._look_ahead(variant, found, waiters, pricing, now_ns)
        if at is None:
            return None
        size = times.sizes[int(found.size[at])]
        places = found.batch(at)
        return _Best(
            variant,
            places,
            size,
            float(found.score[at]),
            float(found.expected_ns[at]),
            float(slack_ns[places].min()),
            partial(answered_after, found, at, waiters=waiters, table=table, pricing=pricing),
        )

    def _is_worth_looking_ahead(
        self, variant: VariantName, waiters: WaitingRequests, expected_ns: float
    ) -> bool:
        """Say whether the decision would still be short against the batch.

        With one application there is little to choose from, and with several executors the plays
        would be of a box that is not this one.
        """
        return (
            self._looks_ahead
            and len(self._learning.distributions(variant)) > 1
            and len(waiters.rank) <= lookahead.WAITING_MAX
            and len(self._recent[variant]) >= lookahead.KNOWN_MIN
            and expected_ns >= LOOK_AHEAD_FACTOR * lookahead.cost_ns(waiters, expected_ns)
            and len(self._latencies.slowdowns) == 1
        )

    def _look_ahead(
        self,
        variant: VariantName,
        found: Candidates,
        waiters: WaitingRequests,
        pricing: BatchCost,
        now_ns: int,
    ) -> int | None:
        """Return the candidate that does best in sampled futures; None: wait."""
        table = self._learning.table(variant)
        tried = _best_distinct(found)
        choice = lookahead.choose(
            [found.batch(at) for at in tried],
            waiters,
            table,
            pricing,
            recent=self._recent[variant],
            now_ns=now_ns,
            horizon_ns=lookahead.horizon_ns(waiters, float(found.expected_ns[tried[0]])),
            # Made anew each time: of the two kinds only the plain one can be written down.
            rng=np.random.default_rng(self._rng.getrandbits(64)),
        )
        return None if choice == lookahead.WAIT else tried[choice]

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        return self._learning.quickest_ns(variant, app)

    def _pricing(
        self, executor: ExecutorId, variant: VariantName, times: BatchTimes, table: WorkTable
    ) -> BatchCost:
        slowed = self._latencies.slowed(executor, variant)
        return BatchCost(
            fixed_ns=slowed * times.fixed_ns + self._latencies.overhead_ns(executor),
            slope_ns=slowed * times.slope_ns,
            sizes=times.sizes,
            urgency=URGENCY if len(table.rank) > 1 else 0.0,
            urgency_slos=URGENCY_SLOS,
        )


def _least_regretted(bests: Sequence[_Best], executors: int) -> _Best:
    """Return the variant's batch that costs the other variants' least if it runs first.

    Its cost is what those are expected to answer less when they run after it, of several executors
    a share later. Of equals the earliest deadline comes first, which is what is right while there
    is time for all; answers per time would let quick variants starve slow ones.
    """
    likely = [best for best in bests if best.answered_after is not None]
    if len(likely) <= 1:
        return likely[0] if likely else max(bests, key=lambda best: best.score)
    delays_ns = np.array([0.0, *(best.expected_ns / executors for best in likely)])
    lost = np.zeros(len(likely))
    for at, best in enumerate(likely):
        assert best.answered_after is not None
        answered = best.answered_after(delays_ns)
        answered[at + 1] = answered[0]
        lost += answered[0] - answered[1:]
    # A tenth of an answer is no reason to leave the order of the deadlines.
    return min(zip(lost.round(1), likely, strict=True), key=lambda of: (of[0], of[1].first_ns))[1]


def _singles_after(request: Request, now_ns: int) -> tuple[UtilityStep, ...]:
    """Return the single deadlines of a request with several, counted from now."""
    if not request.steps:
        return ()
    every = single_deadlines((UtilityStep(request.deadline_ns, 1.0), *request.steps))
    return tuple(UtilityStep(step.by_ns - now_ns, step.worth) for step in every)


def _best_distinct(found: Candidates) -> list[int]:
    """Return the best candidates with different members, the best first."""
    tried: list[int] = []
    seen: set[tuple[int, ...]] = set()
    for at in np.argsort(-found.score, kind="stable"):
        members = tuple(found.batch(int(at)))
        if members not in seen:
            seen.add(members)
            tried.append(int(at))
            if len(tried) == _TRIED:
                break
    return tried
