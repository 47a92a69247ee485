"""Decides the next batch from distributions of execution time, per application.

Pure, without randomness. Of all candidate batches of one variant (`batch_candidates`) the best is
the one with the most expected answers on time per unit of its expected time. Of the variants' best
batches, the one that costs the other variants the fewest expected answers is dispatched. A request
is dropped only when it has expired: it would miss its deadline even in a batch of its own, now. An
answer that misses some of a request's deadlines, but not the last, counts with its utility.

Source: Orloj (arXiv 2209.00159), from which it takes empirical distributions per application, the
maximum of a batch, and the exponential urgency. It differs in scoring batches instead of requests,
in grouping by application, so that a long request does not hold up short ones, in dropping only
the hopeless, and in never waiting for a batch to fill.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling.batch_candidates import (
    BatchCost,
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
        found = None if alone else propose(waiters, table, pricing)
        if found is None:
            single = likeliest(waiters, table, pricing)
            if single is None and times.is_stale(now_ns):
                # By the pace of batches long ago nobody is in time, by the profile somebody may be.
                single = int(np.argmax(slack_ns)), 0.0
            return (
                None if single is None else _Best(variant, [single[0]], times.sizes[0], single[1])
            )
        at = int(np.argmax(found.score))
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
