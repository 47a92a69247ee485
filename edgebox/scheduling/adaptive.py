"""Decides the next batch from distributions of execution time, per application.

Pure, without randomness. Of all candidate batches of one variant (`batch_candidates`) the best is
the one with the most expected answers on time per unit of its expected time. Of the variants' best
batches, the one that costs the other variants the fewest expected answers is dispatched. A request
is dropped only when it has expired: it would miss its deadline even in a batch of its own, now. An
answer that misses some of a request's deadlines, but not the last, counts with its utility.

Source: Orloj (arXiv 2209.00159), from which it takes empirical distributions per application, the
maximum of a batch, and the exponential urgency. It differs in scoring batches instead of requests,
in grouping by application, so that a long request does not hold up short ones, in dropping only
what cannot be in time, and in never waiting for a batch to fill.
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
    most_likely_on_time,
    propose,
)
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.distributions import Floats
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues
from edgebox.scheduling.work import WorkTable

URGENCY = 0.3
"""Weight of the members' urgency relative to their probability of being on time. It is used only
where a variant has several applications."""

URGENCY_SLOS = 0.3
"""Fraction of a request's SLO over which its urgency decays by a factor e."""


@dataclass(frozen=True, slots=True)
class _VariantBatch:
    """The best batch of one variant."""

    variant: VariantName
    indices: list[int]
    batch_size: int
    score: float
    """In the unit of `Candidates.score`."""
    expected_ns: float = 0.0
    first_ns: float = 0.0
    """Time until the earliest deadline of its members."""
    answered_after: Callable[[Floats], Floats] | None = None
    """Expected number of answers on time as a function of a delay; None: it is close to 0 even
    without a delay."""


class DistributionAware(QueueingPolicy):
    """Batching by the expected utility of answers per unit of time (`batching = "adaptive"`)."""

    wants_samples = True

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Take the best batch out of its queue; None: no request waits for this executor."""
        if len(queues) == 1 and len(queues[0][1]) == 1 and not queues[0][1].singles:
            return self._only_request(executor, queues, now_ns)
        return self._search(executor, queues, now_ns)

    def _search(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        batches: list[_VariantBatch] = []
        for number, (variant, _, _) in enumerate(queues):
            times = self._learning.times_now(executor, variant, now_ns)
            found = None if times is None else self._best_batch(executor, variant, times, now_ns)
            if found is not None:
                batches.append(found)
            if (
                number == 0
                and batches
                and self._delays_no_other(batches[0], queues[1:], executor, now_ns)
            ):
                break
        if not batches:
            return None
        best = _least_costly(batches, self._latencies.batches_at_once)
        members = self._waiting.take(best.variant, best.indices)
        ids = tuple(member.id for member in members)
        return Batch(best.variant, ids, best.batch_size)

    def _only_request(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Take the only request that waits, unless it cannot be on time: nothing is to be chosen.

        By a stale pace no request may be on time, and by the profile it may be.
        """
        [(variant, queue, _)] = queues
        times = self._learning.times_now(executor, variant, now_ns)
        if times is None:
            return None
        least = self._learning.table(variant).least_of[queue.apps[0]]
        earliest_ns = self._latencies.slowed(executor, variant) * times.batch_ns(0, least)
        earliest_ns += self._latencies.overhead_ns(executor)
        if queue.deadlines[0] - now_ns < earliest_ns and not times.is_stale(now_ns):
            return None
        [member] = self._waiting.take(variant, (0,))
        return Batch(variant, (member.id,), times.sizes[0])

    def _delays_no_other(
        self,
        best: _VariantBatch,
        others: Queues,
        executor: ExecutorId,
        now_ns: int,
    ) -> bool:
        """Say whether the batch with the earliest deadline leaves enough time for every other
        variant.

        In that case `_least_costly` would choose it, so the batches of the other variants are not
        formed.
        """
        if best.answered_after is None or 0 not in best.indices:
            return False
        over_ns = now_ns + best.expected_ns / self._latencies.batches_at_once
        for variant, queue, _ in others:
            times = self._learning.times_now(executor, variant, now_ns)
            if times is None:
                continue
            if queue.singles:
                return False
            table = self._learning.table(variant)
            cost = self._batch_cost(executor, variant, times, table)
            at = min(bisect_left(times.sizes, len(queue)), len(times.sizes) - 1)
            longest_ns = cost.fixed_ns + float(cost.slope_ns[at]) * table.greatest
            if queue.deadlines[0] < over_ns + longest_ns:
                return False
        return True

    def _best_batch(
        self,
        executor: ExecutorId,
        variant: VariantName,
        times: BatchTimes,
        now_ns: int,
    ) -> _VariantBatch | None:
        """Return the best batch of a variant; None: no request is likely to be on time."""
        columns = self._waiting.queues[variant].columns
        table = self._learning.table(variant)
        slack_ns = (columns.deadline_ns - now_ns).astype(np.float64)
        steps = None if columns.steps is None else columns.steps.left(now_ns)
        waiting = WaitingRequests(slack_ns, columns.slo_ns, table.rank[columns.app], steps)
        cost = self._batch_cost(executor, variant, times, table)
        found = propose(waiting, table, cost)
        if found is None:
            single = most_likely_on_time(waiting, table, cost)
            if single is None and times.is_stale(now_ns):
                # By the stale pace no request is on time; by the profile one may be.
                single = int(np.argmax(slack_ns)), 0.0
            return (
                None
                if single is None
                else _VariantBatch(variant, [single[0]], times.sizes[0], single[1])
            )
        at = int(np.argmax(found.score))
        size = times.sizes[int(found.size[at])]
        indices = found.batch(at)
        return _VariantBatch(
            variant,
            indices,
            size,
            float(found.score[at]),
            float(found.expected_ns[at]),
            float(slack_ns[indices].min()),
            partial(answered_after, found, at, waiting=waiting, table=table, cost=cost),
        )

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        return self._learning.quickest_ns(variant, app)

    def _batch_cost(
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


def _least_costly(batches: Sequence[_VariantBatch], executors: int) -> _VariantBatch:
    """Return the batch that costs the other variants' batches least if it runs first.

    The cost of a batch is the number of expected answers that the other batches lose by running
    after it. With several executors the delay is divided by their number. Ties are broken by the
    earliest deadline, which is the right order as long as there is time for all. Maximising answers
    per unit of time instead would let fast variants starve slow ones.
    """
    likely = [best for best in batches if best.answered_after is not None]
    if len(likely) <= 1:
        return likely[0] if likely else max(batches, key=lambda best: best.score)
    delays_ns = np.array([0.0, *(best.expected_ns / executors for best in likely)])
    lost = np.zeros(len(likely))
    for at, best in enumerate(likely):
        assert best.answered_after is not None
        answered = best.answered_after(delays_ns)
        answered[at + 1] = answered[0]
        lost += answered[0] - answered[1:]
    # A difference below a tenth of an answer does not override the order of the deadlines.
    return min(zip(lost.round(1), likely, strict=True), key=lambda of: (of[0], of[1].first_ns))[1]
