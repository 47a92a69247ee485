"""Decides which of the ready requests of one variant make the best batch: all candidates at once.

Pure. A candidate is a choice of (class, size, membership quantile, order): of the requests whose
application is at most the class, the first `size` that are in time with the quantile's
probability, either by deadline, or those of the class itself first. Its score is what it answers
on time per time it takes.

Source: Orloj (arXiv 2209.00159) has the distributions and the score per request; scoring whole
batches, grouping by application and membership by quantile are ours. Cost: a few dozen array
operations over at most J x S x Q x 2 candidates of at most 16 or so members.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgebox.scheduling.distributions import Floats, Places
from edgebox.scheduling.work import MEMBERSHIP, WorkTable

CLASSES_MAX = 8
"""Of more applications than this, as many are tried as the largest of a batch."""

_TRIED_MAX = 256
"""Of the unlikely requests, as many are looked at, those with the latest deadlines."""


@dataclass(frozen=True, slots=True)
class Pricing:
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
class Waiters:
    """The ready requests of one variant, N of them, by rising deadline."""

    slack_ns: Floats
    """(N,): time to each deadline."""
    slo_ns: Floats
    """(N,): the whole time each had."""
    rank: Places
    """(N,): the application's place in the table's order."""


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
    """(C,): answers on time per ns."""
    expected_ns: Floats
    """(C,)"""

    def batch(self, at: int) -> list[int]:
        """Return the places of one candidate."""
        return [int(place) for place in self.members[at][self.present[at]]]


def propose(waiters: Waiters, table: WorkTable, pricing: Pricing) -> Candidates | None:
    """Form and score every candidate; None: nobody is in time with any quantile's probability."""
    tops = _tops(waiters.rank)
    sizes = _useful_sizes(len(waiters.rank), pricing.sizes)
    # A ns of grace: finishing exactly at the deadline counts.
    work = table.thresholds(pricing.sizes)[tops, :sizes]  # (tops, sizes, quantiles)
    need_ns = pricing.fixed_ns + pricing.slope_ns[:sizes, None] * work - 1
    members, present = _members(waiters, tops, need_ns, pricing.sizes)
    if len(members) == 0:
        return None
    return _scored(members, present, waiters, table, pricing)


def likeliest(waiters: Waiters, table: WorkTable, pricing: Pricing) -> tuple[int, float] | None:
    """Return the place and score of the single request that most likely is in time; None: none.

    For when nobody is likely to be: an idle executor has nothing better to do.
    """
    offset = max(0, len(waiters.rank) - _TRIED_MAX)
    slack_ns, rank = waiters.slack_ns[offset:], waiters.rank[offset:]
    work = ((slack_ns - pricing.fixed_ns) / pricing.slope_ns[0])[:, None]
    chance = table.chances(np.exp(table.log_cdf[rank]), work)[:, 0]
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


def _members(
    waiters: Waiters, tops: Places, need_ns: Floats, sizes: tuple[int, ...]
) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Return the members of the candidates, by deadline and with the class itself first.

    One sorted list per class and kind (all up to the class; the class; those below it), end to
    end in one array, so that one binary search answers for all thresholds.
    """
    slack_ns, rank = waiters.slack_ns, waiters.rank
    classes = tops[:, None]
    if len(tops) == 1:
        listed = rank[None, :] <= classes
    else:
        listed = np.concatenate([rank <= classes, rank == classes, rank < classes])
    row, place = np.nonzero(listed)
    ends = np.cumsum(np.count_nonzero(listed, axis=1))
    apart = 2 * (float(slack_ns[-1]) + float(need_ns.max()) + 1e9)
    keys = slack_ns[place] + row * apart
    needs = need_ns.reshape(len(tops), -1)
    limit = np.tile(np.repeat(sizes[: need_ns.shape[1]], len(MEMBERSHIP)), len(tops))

    def starts(kind: int) -> tuple[Places, Places]:
        rows = np.arange(len(tops)) + kind * len(tops)
        first = np.searchsorted(keys, (needs + rows[:, None] * apart).ravel())
        return first, np.repeat(ends[rows], needs.shape[1])

    column = np.arange(sizes[need_ns.shape[1] - 1])
    first, end = starts(0)
    count = np.minimum(end - first, limit)[:, None]
    at = first[:, None] + column
    present = column < count
    if len(tops) > 1:
        (own, own_end), (low, low_end) = starts(1), starts(2)
        of_own = np.minimum(own_end - own, limit)[:, None]
        second = np.where(column < of_own, own[:, None] + column, low[:, None] + column - of_own)
        total = np.minimum(of_own + (low_end - low)[:, None], limit[:, None])
        at = np.concatenate([at, second])
        present = np.concatenate([present, column < total])
    chosen = present[:, 0]
    return place[np.where(present, at, 0)][chosen], present[chosen]


def _scored(
    members: Places,
    present: npt.NDArray[np.bool_],
    waiters: Waiters,
    table: WorkTable,
    pricing: Pricing,
) -> Candidates:
    applications = len(table.log_cdf)
    filled = present.sum(axis=1)
    size = np.searchsorted(pricing.sizes, filled)
    slope_ns = pricing.slope_ns[size]
    if applications == 1:
        counts = filled[:, None]
    else:
        column = np.where(present, waiters.rank[members], applications)
        column += np.arange(len(members))[:, None] * (applications + 1)
        counts = np.bincount(column.ravel(), minlength=len(members) * (applications + 1))
        counts = counts.reshape(len(members), -1)[:, :-1]
    cdfs = np.exp(counts.astype(np.float32) @ table.log_cdf)
    expected_ns = pricing.fixed_ns + slope_ns * (table.greatest - cdfs @ table.weights)
    slack = waiters.slack_ns[members]
    work = (slack - pricing.fixed_ns) / slope_ns[:, None]
    worth: Floats = table.chances(cdfs, work).astype(np.float64)
    if pricing.urgency > 0:
        spare = slack - expected_ns[:, None]
        fading = np.exp(-np.maximum(spare, 0) / (pricing.urgency_slos * waiters.slo_ns[members]))
        worth = worth + pricing.urgency * np.where(spare >= 0, fading, 0)
    score = np.where(present, worth, 0).sum(axis=1) / expected_ns
    return Candidates(members, present, size, score, expected_ns)
