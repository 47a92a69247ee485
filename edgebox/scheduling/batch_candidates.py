"""Decides which of the ready requests of one variant make the best batch: all candidates at once.

Pure. A candidate is a choice of (class, size, membership quantile, order): of the requests whose
application is at most the class, the first `size` that are in time with the quantile's
probability, either by deadline, or those of the class itself first. Its score is what it answers
on time per time it takes.

Source: Orloj (arXiv 2209.00159) has the distributions and the score per request; scoring whole
batches, grouping by application and membership by quantile are ours. Cost: a few dozen array
operations over at most J x S x Q x 2 candidates of at most 16 or so members.

Where requests have several deadlines the candidates are formed once with everybody's first
deadline that is left, once with the second (or the last, of those with fewer) and so on, so that
a batch may aim at full worth or settle for less of more requests; and once of those alone who can
still gain most, whom the others would precede by deadline. All are then scored together.
A request's part of the score is the sum over its single deadlines of gain times chance, its
urgency likewise (Orloj, appendix B). Cost: about twice as much with two deadlines.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from edgebox.scheduling.deadline_utility import Steps
from edgebox.scheduling.distributions import Floats, Places
from edgebox.scheduling.work import MEMBERSHIP, Singles, WorkTable

CLASSES_MAX = 8
"""Of more applications than this, as many are tried as the largest of a batch."""

_TRIED_MAX = 256
"""Of the unlikely requests, as many are looked at, those with the latest deadlines."""


@dataclass(frozen=True, slots=True)
class BatchCost:
    """What a batch costs and what leaving somebody waiting is worth."""

    fixed_ns: float
    slope_ns: Floats
    """(sizes,): time per unit of work."""
    sizes: tuple[int, ...]
    urgency: float
    """Weight of those who could be missed if they are left waiting."""
    urgency_slos: float
    """How fast urgency fades with the time to spare, in deadlines."""


@dataclass(frozen=True, slots=True)
class WaitingRequests:
    """The ready requests of one variant, N of them, by rising deadline."""

    slack_ns: Floats
    """(N,): time to each deadline."""
    slo_ns: Floats
    """(N,): the whole time each had."""
    rank: Places
    """(N,): the application's place in the table's order."""
    steps: Steps | None = None
    """All deadlines that are left; None where everybody has one."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate batches, C of them with at most n members."""

    members: Places
    """(C, n): places in the queue; where not `present`, anything."""
    present: npt.NDArray[np.bool_]
    """(C, n)"""
    size: Places
    """(C,): index of the padded size."""
    score: Floats
    """(C,): answers on time per ns, later ones by their worth."""
    expected_ns: Floats
    """(C,)"""

    def batch(self, at: int) -> list[int]:
        """Return the places of one candidate."""
        return [int(place) for place in self.members[at][self.present[at]]]


def propose(waiters: WaitingRequests, table: WorkTable, pricing: BatchCost) -> Candidates | None:
    """Form and score every candidate; None: nobody is in time with any quantile's probability."""
    tops = _tops(waiters.rank)
    sizes = _useful_sizes(len(waiters.rank), pricing.sizes)
    # A ns of grace: finishing exactly at the deadline counts.
    work = table.thresholds(pricing.sizes)[tops, :sizes]  # (tops, sizes, quantiles)
    need_ns = pricing.fixed_ns + pricing.slope_ns[:sizes, None] * work - 1
    if waiters.steps is None:
        members, present = _members(
            waiters.slack_ns, waiters.rank, tops, need_ns, pricing.sizes[:sizes]
        )
    else:
        members, present = _members_by_step(
            waiters.steps, waiters.rank, tops, need_ns, pricing.sizes[:sizes]
        )
    if len(members) == 0:
        return None
    return _scored(members, present, waiters, table, pricing)


def likeliest(
    waiters: WaitingRequests, table: WorkTable, pricing: BatchCost
) -> tuple[int, float] | None:
    """Return the place and score of the single request that most likely is in time; None: none.

    For when nobody is likely to be: an idle executor has nothing better to do. With several
    deadlines: the one whose answer is expected to be worth most.
    """
    offset = max(0, len(waiters.rank) - _TRIED_MAX)
    cdfs = np.exp(table.log_cdf[waiters.rank[offset:]])

    def chance_of(slack_ns: Floats) -> Singles:
        work = ((slack_ns[offset:] - pricing.fixed_ns) / pricing.slope_ns[0])[:, None]
        chances: Singles = table.chances(cdfs, work.astype(np.float32))[:, 0]
        return chances

    if waiters.steps is None:
        chance: Singles | Floats = chance_of(waiters.slack_ns)
    else:
        each = zip(waiters.steps.slack_ns, waiters.steps.gain, strict=True)
        chance = np.sum([gain[offset:] * chance_of(slack) for slack, gain in each], axis=0)
    at = int(np.argmax(chance))
    if chance[at] <= 0:
        return None
    return at + offset, float(chance[at]) / (pricing.fixed_ns + float(pricing.slope_ns[0]))


def _tops(rank: Places) -> Places:
    tops = np.flatnonzero(np.bincount(rank))
    if len(tops) > CLASSES_MAX:
        tops = tops[np.linspace(0, len(tops) - 1, CLASSES_MAX).astype(np.intp)]
    return tops


def _useful_sizes(waiting: int, sizes: tuple[int, ...]) -> int:
    for at, size in enumerate(sizes):
        if size >= waiting:
            return at + 1
    return len(sizes)


@lru_cache(maxsize=64)
def _plan(tops: int, sizes: tuple[int, ...]) -> tuple[Places, Places, Places]:
    """Return what only depends on the numbers of classes and sizes.

    Returns:
        Of each candidate of one order, the class's number and the most members, (C, 1); and the
        columns, (n,).
    """
    each = len(sizes) * len(MEMBERSHIP)
    top = np.repeat(np.arange(tops), each)[:, None]
    limit = np.tile(np.repeat(np.array(sizes), len(MEMBERSHIP)), tops)[:, None]
    return top, limit, np.arange(sizes[-1])


def _members_by_step(
    steps: Steps, rank: Places, tops: Places, need_ns: Floats, sizes: tuple[int, ...]
) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Return the members of the candidates that aim at the first, second... deadlines.

    And of those of more worth alone: by deadline, those who have lost some would come before them.
    """
    orders = [(slack_ns, np.argsort(slack_ns, kind="stable")) for slack_ns in steps.slack_ns]
    orders += [(steps.slack_ns[0], places) for places in steps.tiers()]
    found = []
    for slack_ns, order in orders:
        members, present = _members(slack_ns[order], rank[order], tops, need_ns, sizes)
        found.append((order[members], present))
    return (
        np.concatenate([members for members, _ in found]),
        np.concatenate([present for _, present in found]),
    )


def _members(
    slack_ns: Floats, rank: Places, tops: Places, need_ns: Floats, sizes: tuple[int, ...]
) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Return the members of the candidates, by deadline and with the class itself first.

    One sorted list per class and kind (all up to the class; the class itself), end to end in one
    array, so that one binary search answers for all thresholds.
    """
    top, limit, column = _plan(len(tops), sizes)
    lists = [(rank <= each).nonzero()[0] for each in tops[:-1]]
    lists.append(np.arange(len(rank)))
    lists += [(rank == each).nonzero()[0] for each in tops[1:]]
    place = np.concatenate(lists) if len(lists) > 1 else lists[0]
    ends = np.array([len(each) for each in lists]).cumsum()
    apart = 2 * (float(slack_ns[-1]) + float(need_ns.max()) + 1e9)
    keys = slack_ns[place]
    for number in range(1, len(lists)):
        keys[ends[number - 1] : ends[number]] += number * apart
    needs = need_ns.reshape(-1, 1)

    start = keys.searchsorted(needs + top * apart)
    count = np.minimum(ends[top] - start, limit)
    at = start + column
    present = column < count
    if len(tops) > 1:
        # The lowest class has none below it, so its second order is its first.
        later = slice(need_ns[0].size, None)
        top, limit, needs = top[later], limit[later], needs[later]
        own_list = top + (len(tops) - 1)
        own = keys.searchsorted(needs + own_list * apart)
        low = keys.searchsorted(needs + (top - 1) * apart)
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
    waiters: WaitingRequests,
    table: WorkTable,
    pricing: BatchCost,
) -> Floats:
    """Return what one candidate is expected to answer if it runs so much later.

    Args:
        found: the candidates that `propose` made of these waiters, table and pricing.
        at: the one.
        delays_ns: (D,).
        waiters: as they were.
        table: as it was.
        pricing: as it was.

    Returns:
        (D,): answers, later ones by their worth.
    """
    present = found.present[at : at + 1]
    members = found.members[at : at + 1]
    counts = _counts(members, present, waiters, table)
    cdfs = np.exp(counts @ table.log_cdf).repeat(len(delays_ns), axis=0)
    members = members.repeat(len(delays_ns), axis=0)
    slope_ns = np.full(len(delays_ns), pricing.slope_ns[found.size[at]])
    worth = _worth(
        members,
        cdfs,
        slope_ns,
        waiters=waiters,
        table=table,
        fixed_ns=pricing.fixed_ns,
        delays_ns=delays_ns,
    )
    answered: Floats = (worth * present).sum(axis=1)
    return answered


def _counts(
    members: Places, present: npt.NDArray[np.bool_], waiters: WaitingRequests, table: WorkTable
) -> Singles:
    """Return how many members of each application a candidate has, (C, J)."""
    applications = len(table.log_cdf)
    if applications == 1:
        filled: Singles = present.sum(axis=1)[:, None].astype(np.float32)
        return filled
    column = np.where(present, waiters.rank[members], applications)
    column += (np.arange(len(members)) * (applications + 1))[:, None]
    counted = np.bincount(column.ravel(), minlength=len(members) * (applications + 1))
    per_row: Singles = counted.reshape(len(members), -1)[:, :-1].astype(np.float32)
    return per_row


def _worth(
    members: Places,
    cdfs: Singles,
    slope_ns: Floats,
    *,
    waiters: WaitingRequests,
    table: WorkTable,
    fixed_ns: float,
    delays_ns: Floats | None = None,
) -> Singles | Floats:
    """Return what each member's answer is expected to be worth, (C, n)."""

    def chances(slack_ns: Floats) -> Singles:
        left_ns = slack_ns[members]
        if delays_ns is not None:
            left_ns = left_ns - delays_ns[:, None]
        work = (left_ns - fixed_ns) / slope_ns[:, None]
        made: Singles = table.chances(cdfs, work.astype(np.float32))
        return made

    if waiters.steps is None:
        return chances(waiters.slack_ns)
    each = zip(waiters.steps.slack_ns, waiters.steps.gain, strict=True)
    return _summed(chances(slack_ns) * gain[members] for slack_ns, gain in each)


def _urgency(
    members: Places, expected_ns: Floats, waiters: WaitingRequests, pricing: BatchCost
) -> Singles | Floats:
    """Return how much would be missed of each member if it were left, (C, n)."""

    def urgencies(slack_ns: Floats, slo_ns: Floats) -> Singles:
        spare_ns = slack_ns[members] - expected_ns[:, None]
        fade = -spare_ns / (slo_ns * pricing.urgency_slos)[members]
        faded: Singles = np.exp(np.minimum(fade, 0).astype(np.float32)) * (fade <= 0)
        return faded * np.float32(pricing.urgency)

    if waiters.steps is None:
        return urgencies(waiters.slack_ns, waiters.slo_ns)
    steps = zip(waiters.steps.slack_ns, waiters.steps.slo_ns, waiters.steps.gain, strict=True)
    return _summed(urgencies(slack, slo) * gain[members] for slack, slo, gain in steps)


def _summed(terms: Iterable[Floats]) -> Floats:
    total: Floats = np.stack(tuple(terms)).sum(axis=0)
    return total


def _scored(
    members: Places,
    present: npt.NDArray[np.bool_],
    waiters: WaitingRequests,
    table: WorkTable,
    pricing: BatchCost,
) -> Candidates:
    size = np.array(pricing.sizes).searchsorted(present.sum(axis=1))
    slope_ns = pricing.slope_ns[size]
    cdfs = np.exp(_counts(members, present, waiters, table) @ table.log_cdf)
    expected_ns = pricing.fixed_ns + slope_ns * (table.greatest - cdfs @ table.weights)
    worth = _worth(members, cdfs, slope_ns, waiters=waiters, table=table, fixed_ns=pricing.fixed_ns)
    if pricing.urgency > 0:
        worth = worth + _urgency(members, expected_ns, waiters, pricing)
    score = (worth * present).sum(axis=1) / expected_ns
    return Candidates(members, present, size, score, expected_ns)
