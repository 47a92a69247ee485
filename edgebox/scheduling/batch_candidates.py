"""Decides which of the ready requests of one variant form the best batch, over all candidates.

Pure. A candidate is a choice of (class, size, membership quantile, order). Applications are ranked
by their mean work, and the class is the highest rank that may take part. The members are the first
`size` requests that are on time with the quantile's probability, ordered by deadline, or with those
of the class itself first. A candidate's score is its expected number of answers on time per unit of
its expected time.

Source: Orloj (arXiv 2209.00159) for the distributions and the score per request. Scoring whole
batches, grouping by application and membership by quantile are edgebox's own. Cost: a few dozen
array operations over at most J x S x Q x 2 candidates with at most about 16 members each.

If requests have several deadlines, the candidates are formed once with the first remaining deadline
of each request, once with the second (or the last, for requests with fewer) and so on. A batch may
thus aim at full utility, or settle for less utility of more requests. Candidates are also formed
from the requests with the greatest remaining utility only, because the others would precede them by
deadline. All candidates are then scored together. A request's part of the score is the sum over its
single deadlines of gain times probability, and likewise its urgency (Orloj, appendix B). Cost:
about twice as much with two deadlines.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from edgebox.scheduling.deadline_utility import Steps
from edgebox.scheduling.distributions import Floats, Indices
from edgebox.scheduling.work import MEMBERSHIP, Floats32, WorkTable

CLASSES_MAX = 8
"""With more applications than this, this many classes are tried."""

_TRIED_MAX = 256
"""Requests with the latest deadlines that are considered if none is likely to be on time."""


@dataclass(frozen=True, slots=True)
class BatchCost:
    """The expected time of batches, and the weight of urgency."""

    fixed_ns: float
    slope_ns: Floats
    """(sizes,): time per unit of work."""
    sizes: tuple[int, ...]
    urgency: float
    """Weight of members that would probably miss their deadline if they were left waiting."""
    urgency_slos: float
    """How fast urgency decays with the spare time, as a fraction of the SLO."""


@dataclass(frozen=True, slots=True)
class WaitingRequests:
    """The N ready requests of one variant, by rising deadline."""

    slack_ns: Floats
    """(N,): time to each deadline."""
    slo_ns: Floats
    """(N,): the SLO of each deadline."""
    rank: Indices
    """(N,): the rank of the request's application in the work table."""
    steps: Steps | None = None
    """All remaining deadlines; None if every request has only one."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """C candidate batches with at most n members each."""

    members: Indices
    """(C, n): indices into the queue; undefined where not `present`."""
    present: npt.NDArray[np.bool_]
    """(C, n)"""
    size: Indices
    """(C,): index of the padded size."""
    score: Floats
    """(C,): expected answers on time per ns, late ones by their utility."""
    expected_ns: Floats
    """(C,)"""

    def batch(self, at: int) -> list[int]:
        """Return the indices of one candidate's members."""
        return [int(place) for place in self.members[at][self.present[at]]]


def propose(waiting: WaitingRequests, table: WorkTable, cost: BatchCost) -> Candidates | None:
    """Form and score every candidate; None: no request is on time with any of the quantiles."""
    class_ranks = _class_ranks(waiting.rank)
    sizes = _useful_sizes(len(waiting.rank), cost.sizes)
    # A ns of grace: finishing exactly at the deadline counts.
    work = table.thresholds(cost.sizes)[class_ranks, :sizes]  # (classes, sizes, quantiles)
    need_ns = cost.fixed_ns + cost.slope_ns[:sizes, None] * work - 1
    if waiting.steps is None:
        members, present = _members(
            waiting.slack_ns, waiting.rank, class_ranks, need_ns, cost.sizes[:sizes]
        )
    else:
        members, present = _members_by_step(
            waiting.steps, waiting.rank, class_ranks, need_ns, cost.sizes[:sizes]
        )
    if len(members) == 0:
        return None
    return _scored(members, present, waiting, table, cost)


def most_likely_on_time(
    waiting: WaitingRequests, table: WorkTable, cost: BatchCost
) -> tuple[int, float] | None:
    """Return index and score of the request that is most likely on time; None: there is none.

    Used when no request is likely to be on time, because the executor would be idle otherwise. With
    several deadlines: the request with the highest expected utility.
    """
    offset = max(0, len(waiting.rank) - _TRIED_MAX)
    cdfs = np.exp(table.log_cdf[waiting.rank[offset:]])

    def chance_of(slack_ns: Floats) -> Floats32:
        work = ((slack_ns[offset:] - cost.fixed_ns) / cost.slope_ns[0])[:, None]
        chances: Floats32 = table.chances(cdfs, work.astype(np.float32))[:, 0]
        return chances

    if waiting.steps is None:
        chance: Floats32 | Floats = chance_of(waiting.slack_ns)
    else:
        each = zip(waiting.steps.slack_ns, waiting.steps.gain, strict=True)
        chance = np.sum([gain[offset:] * chance_of(slack) for slack, gain in each], axis=0)
    at = int(np.argmax(chance))
    if chance[at] <= 0:
        return None
    return at + offset, float(chance[at]) / (cost.fixed_ns + float(cost.slope_ns[0]))


def _class_ranks(rank: Indices) -> Indices:
    class_ranks = np.flatnonzero(np.bincount(rank))
    if len(class_ranks) > CLASSES_MAX:
        class_ranks = class_ranks[np.linspace(0, len(class_ranks) - 1, CLASSES_MAX).astype(np.intp)]
    return class_ranks


def _useful_sizes(waiting: int, sizes: tuple[int, ...]) -> int:
    for at, size in enumerate(sizes):
        if size >= waiting:
            return at + 1
    return len(sizes)


@lru_cache(maxsize=64)
def _plan(class_ranks: int, sizes: tuple[int, ...]) -> tuple[Indices, Indices, Indices]:
    """Return the arrays that depend only on the number of classes and on the sizes.

    Returns:
        For each candidate of one order, the class's number and the most members, (C, 1); and the
        columns, (n,).
    """
    each = len(sizes) * len(MEMBERSHIP)
    top = np.repeat(np.arange(class_ranks), each)[:, None]
    limit = np.tile(np.repeat(np.array(sizes), len(MEMBERSHIP)), class_ranks)[:, None]
    return top, limit, np.arange(sizes[-1])


def _members_by_step(
    steps: Steps, rank: Indices, class_ranks: Indices, need_ns: Floats, sizes: tuple[int, ...]
) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the members of the candidates that aim at the first, second... deadlines.

    Candidates with only the requests of greater utility are included: in order of deadline,
    requests that have lost some utility would precede them.
    """
    orders = [(slack_ns, np.argsort(slack_ns, kind="stable")) for slack_ns in steps.slack_ns]
    orders += [(steps.slack_ns[0], indices) for indices in steps.tiers()]
    found = []
    for slack_ns, order in orders:
        members, present = _members(slack_ns[order], rank[order], class_ranks, need_ns, sizes)
        found.append((order[members], present))
    return (
        np.concatenate([members for members, _ in found]),
        np.concatenate([present for _, present in found]),
    )


def _members(
    slack_ns: Floats, rank: Indices, class_ranks: Indices, need_ns: Floats, sizes: tuple[int, ...]
) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the members of the candidates, by deadline and with the class itself first.

    There is one sorted list per class and type (all up to the class; the class itself). The lists
    are concatenated in one array, so that one binary search answers for all thresholds.
    """
    top, limit, column = _plan(len(class_ranks), sizes)
    lists = [(rank <= each).nonzero()[0] for each in class_ranks[:-1]]
    lists.append(np.arange(len(rank)))
    lists += [(rank == each).nonzero()[0] for each in class_ranks[1:]]
    place = np.concatenate(lists) if len(lists) > 1 else lists[0]
    ends = np.array([len(each) for each in lists]).cumsum()
    spacing_ns = 2 * (float(slack_ns[-1]) + float(need_ns.max()) + 1e9)
    keys = slack_ns[place]
    for number in range(1, len(lists)):
        keys[ends[number - 1] : ends[number]] += number * spacing_ns
    needs = need_ns.reshape(-1, 1)

    start = keys.searchsorted(needs + top * spacing_ns)
    count = np.minimum(ends[top] - start, limit)
    at = start + column
    present = column < count
    if len(class_ranks) > 1:
        # There is no class below the lowest, so its two orders are the same.
        later = slice(need_ns[0].size, None)
        top, limit, needs = top[later], limit[later], needs[later]
        own_list = top + (len(class_ranks) - 1)
        own = keys.searchsorted(needs + own_list * spacing_ns)
        low = keys.searchsorted(needs + (top - 1) * spacing_ns)
        of_own = np.minimum(ends[own_list] - own, limit)
        total = np.minimum(of_own + ends[top - 1] - low, limit)
        second = np.where(column < of_own, own + column, low - of_own + column)
        at = np.concatenate([at, second])
        present = np.concatenate([present, column < total])
    chosen = present[:, 0].nonzero()[0]
    at, present = at[chosen], present[chosen]
    return place[at * present], present


def answered_after(
    found: Candidates,
    at: int,
    delays_ns: Floats,
    *,
    waiting: WaitingRequests,
    table: WorkTable,
    cost: BatchCost,
) -> Floats:
    """Return the expected number of answers of one candidate as a function of a delay.

    Args:
        found: the candidates that `propose` made of these requests, table and cost.
        at: index of the candidate.
        delays_ns: (D,).
        waiting: the requests given to `propose`.
        table: the table given to `propose`.
        cost: the cost given to `propose`.

    Returns:
        (D,): answers, late ones by their utility.
    """
    present = found.present[at : at + 1]
    members = found.members[at : at + 1]
    counts = _counts(members, present, waiting, table)
    cdfs = np.exp(counts @ table.log_cdf).repeat(len(delays_ns), axis=0)
    members = members.repeat(len(delays_ns), axis=0)
    slope_ns = np.full(len(delays_ns), cost.slope_ns[found.size[at]])
    utility = _expected_utility(
        members,
        cdfs,
        slope_ns,
        waiting=waiting,
        table=table,
        fixed_ns=cost.fixed_ns,
        delays_ns=delays_ns,
    )
    answered: Floats = (utility * present).sum(axis=1)
    return answered


def _counts(
    members: Indices, present: npt.NDArray[np.bool_], waiting: WaitingRequests, table: WorkTable
) -> Floats32:
    """Return the number of members of each application in each candidate, (C, J)."""
    applications = len(table.log_cdf)
    if applications == 1:
        filled: Floats32 = present.sum(axis=1)[:, None].astype(np.float32)
        return filled
    column = np.where(present, waiting.rank[members], applications)
    column += (np.arange(len(members)) * (applications + 1))[:, None]
    counted = np.bincount(column.ravel(), minlength=len(members) * (applications + 1))
    per_row: Floats32 = counted.reshape(len(members), -1)[:, :-1].astype(np.float32)
    return per_row


def _expected_utility(
    members: Indices,
    cdfs: Floats32,
    slope_ns: Floats,
    *,
    waiting: WaitingRequests,
    table: WorkTable,
    fixed_ns: float,
    delays_ns: Floats | None = None,
) -> Floats32 | Floats:
    """Return the expected utility of each member's answer, (C, n)."""

    def chances(slack_ns: Floats) -> Floats32:
        left_ns = slack_ns[members]
        if delays_ns is not None:
            left_ns = left_ns - delays_ns[:, None]
        work = (left_ns - fixed_ns) / slope_ns[:, None]
        made: Floats32 = table.chances(cdfs, work.astype(np.float32))
        return made

    if waiting.steps is None:
        return chances(waiting.slack_ns)
    each = zip(waiting.steps.slack_ns, waiting.steps.gain, strict=True)
    return _summed(chances(slack_ns) * gain[members] for slack_ns, gain in each)


def _urgency(
    members: Indices, expected_ns: Floats, waiting: WaitingRequests, cost: BatchCost
) -> Floats32 | Floats:
    """Return the expected utility that would be lost if each member were left waiting, (C, n)."""

    def urgencies(slack_ns: Floats, slo_ns: Floats) -> Floats32:
        spare_ns = slack_ns[members] - expected_ns[:, None]
        fade = -spare_ns / (slo_ns * cost.urgency_slos)[members]
        faded: Floats32 = np.exp(np.minimum(fade, 0).astype(np.float32)) * (fade <= 0)
        return faded * np.float32(cost.urgency)

    if waiting.steps is None:
        return urgencies(waiting.slack_ns, waiting.slo_ns)
    steps = zip(waiting.steps.slack_ns, waiting.steps.slo_ns, waiting.steps.gain, strict=True)
    return _summed(urgencies(slack, slo) * gain[members] for slack, slo, gain in steps)


def _summed(terms: Iterable[Floats]) -> Floats:
    total: Floats = np.stack(tuple(terms)).sum(axis=0)
    return total


def _scored(
    members: Indices,
    present: npt.NDArray[np.bool_],
    waiting: WaitingRequests,
    table: WorkTable,
    cost: BatchCost,
) -> Candidates:
    size = np.array(cost.sizes).searchsorted(present.sum(axis=1))
    slope_ns = cost.slope_ns[size]
    cdfs = np.exp(_counts(members, present, waiting, table) @ table.log_cdf)
    expected_ns = cost.fixed_ns + slope_ns * (table.greatest - cdfs @ table.weights)
    utility = _expected_utility(
        members, cdfs, slope_ns, waiting=waiting, table=table, fixed_ns=cost.fixed_ns
    )
    if cost.urgency > 0:
        utility = utility + _urgency(members, expected_ns, waiting, cost)
    score = (utility * present).sum(axis=1) / expected_ns
    return Candidates(members, present, size, score, expected_ns)
