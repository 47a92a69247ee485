"""Decides whether batch times changed because of the executor's speed or because of the requests.

Pure. The time of a batch is the executor's speed times the work of its requests, so a single batch
cannot tell them apart. Many batches can, under these assumptions. Another speed multiplies the
times of all applications by one factor. A different mix of requests changes the shares of the
request types of an application, but not the time of each type. Request types that were never seen
before change one application only.

Batch times are put into bins of a twelfth of an octave, so that a factor is a shift of bins. Each
application's batches have a likelihood for each shift. They are draws from unknown shares, whose
prior is a Dirichlet distribution with the learned distribution of the longest member as its mean;
the predictive distribution is Polya's urn. Bins that were common before cost little, however often
they occur now, also if the number of such requests per batch changed (Lehmann's alternatives,
`TILT_WEIGHTS`). A new bin costs much. An application that fits no shift well may have changed by
itself, for a fixed price. The shift with the greatest sum over all applications is the executor's,
if it outweighs its own price.

Limits: if only one application ran, a change of all its requests by one factor is taken for another
speed; the times do not tell the two apart. Changes of less than two bins are left to the slowdown
(`calibration`).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from edgebox.scheduling.distributions import Floats, Indices
from edgebox.scheduling.work import Longest, cdfs_at

BINS_PER_OCTAVE = 12
REACH = 3 * BINS_PER_OCTAVE
"""Shifts that are tried in each direction: factors from 1/8 to 8."""

TOLERANCE = 2
"""Shifts of at most this many bins are ignored."""

PRIOR_BATCHES = 64.0
"""The weight of the prior shares, in batches."""

NOVEL_SHARE = 0.01
"""The prior share of batches of request types that were never seen."""

PRICE_OF_SHIFT = 5.0
"""In nats: how much better another speed must explain the batches than the known one."""

PRICE_OF_CHANGE = 8.0
"""In nats: the price of the assumption that one application has changed by itself."""

TILT_WEIGHTS = 0.1, 0.1, 0.6
"""Prior probabilities of powers of a CDF (Lehmann's alternatives): 1/16 and 16 each, 1/4 and 4
each, and 1. A large batch of a mix of short and long requests is always long; with few long
requests in the mix it is not."""

_SMOOTH = 0.25, 0.5, 0.25
_SHIFTS = np.arange(-REACH, REACH + 1)


@dataclass(frozen=True, slots=True)
class ObservedBatch:
    """A batch that ran."""

    app: int
    """The application that is expected to have the longest member."""
    longest: Longest
    """The distribution of the longest member's work, as known before the batch."""
    size: int
    """Index of its padded size."""
    took_ns: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """The best explanation of the batches."""

    factor: float
    """The executor's times relative to before; 1: unchanged."""
    agreeing: frozenset[int]
    """The applications whose batches this factor explains."""
    shifted: bool
    """Whether the factor, however small, explains the batches better than no change."""


@dataclass(frozen=True, slots=True)
class VariantBatches:
    """The last batches of one variant."""

    batches: Sequence[ObservedBatch]
    """At least one."""
    fixed_ns: float
    """Time of a batch without any work."""
    slope_ns: Floats
    """(sizes,): time per unit of work."""


def attribute(ran: VariantBatches) -> Attribution:
    """Return the factor by which the executor's speed has changed, if it has.

    Costs 1 to 1.6 ms for 128 batches of 1 to 64 applications (`benchmarks.learning_cost`).
    """
    return attribute_together([ran])[0]


def attribute_together(variants: Sequence[VariantBatches]) -> list[Attribution]:
    """Return one factor for all variants of an executor, with the applications that agree on each.

    An application may have changed by itself on each of them.
    """
    first = np.cumsum([0, *(1 + max(b.app for b in ran.batches) for ran in variants)]).tolist()
    apps = [at + b.app for at, ran in zip(first, variants, strict=False) for b in ran.batches]
    found = _best(np.concatenate([_likelihoods(ran) for ran in variants]), np.array(apps))
    return [
        replace(found, agreeing=frozenset(app - at for app in found.agreeing if at <= app < after))
        for at, after in pairwise(first)
    ]


def _likelihoods(ran: VariantBatches) -> Floats:
    """Return the log likelihood of each batch at each shift, (batches, shifts)."""
    batches, fixed_ns, slope_ns = ran.batches, ran.fixed_ns, ran.slope_ns
    bins = np.rint(_bin_of(np.array([b.took_ns for b in batches]))).astype(np.intp)
    low, high = int(bins.min()) - REACH, int(bins.max()) + REACH
    edges_ns = 2.0 ** ((np.arange(low - 1, high + 3) - 0.5) / BINS_PER_OCTAVE)
    share = np.empty((len(batches), len(_SHIFTS)))
    for indices, cdf in _expected(batches, edges_ns - fixed_ns, slope_ns):
        of_bins = (bins[indices] - low)[:, None] - _SHIFTS
        share[indices] = np.take_along_axis(_shares(cdf), of_bins, axis=1)
    known, total = _seen_before(batches, bins)
    each: Floats = np.log((known + PRIOR_BATCHES * share) / (total + PRIOR_BATCHES))
    return each


def _expected(
    batches: Sequence[ObservedBatch], edges_ns: Floats, slope_ns: Floats
) -> Iterator[tuple[list[int], Floats]]:
    """Yield groups of batches: their indices and their CDFs at the edges of times.

    Batches of one size whose CDFs have the same nodes form a group.
    """
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, batch in enumerate(batches):
        alike[id(batch.longest.nodes), batch.size].append(at)
    for (_, size), indices in alike.items():
        members = [batches[at].longest for at in indices]
        yield indices, cdfs_at(members, edges_ns / float(slope_ns[size]))


def _seen_before(batches: Sequence[ObservedBatch], bins: Indices) -> tuple[Floats, Floats]:
    """Return the number of earlier batches in the same bin, and in all bins, for each batch, (n,
    1)."""
    counts: dict[tuple[int, int, int], int] = defaultdict(int)
    totals: dict[tuple[int, int], int] = defaultdict(int)
    known, total = [], []
    for batch, took in zip(batches, bins.tolist(), strict=True):
        cell, kind = (batch.app, batch.size), (batch.app, batch.size, took)
        known.append(counts[kind])
        total.append(totals[cell])
        counts[kind] += 1
        totals[cell] += 1
    return np.array(known, np.float64)[:, None], np.array(total, np.float64)[:, None]


def _best(each: Floats, app: np.ndarray) -> Attribution:
    """Choose a shift from the log likelihoods of the batches, (batches, shifts)."""
    by_app = {int(one): each[app == one].sum(axis=0) for one in np.unique(app)}
    own_change = {one: float(of.max()) - PRICE_OF_CHANGE for one, of in by_app.items()}
    every = np.sum([np.maximum(of, own_change[one]) for one, of in by_app.items()], axis=0)
    every[_SHIFTS != 0] -= PRICE_OF_SHIFT
    at = int(np.argmax(every))
    agreeing = frozenset(one for one, of in by_app.items() if of[at] >= own_change[one])
    shift = int(_SHIFTS[at])
    factor = 2.0 ** (shift / BINS_PER_OCTAVE) if abs(shift) > TOLERANCE else 1.0
    return Attribution(factor, agreeing, shift != 0)


def _bin_of(time_ns: Floats) -> Floats:
    of: Floats = np.log2(np.maximum(time_ns, 1.0)) * BINS_PER_OCTAVE
    return of


def _shares(cdf: Floats) -> Floats:
    """Return the probability of each bin, from CDFs at its edges and one more edge on each side."""
    # Roots and squares, because powers cost ten times as much.
    lower = np.sqrt(np.sqrt(cdf))
    lowest = np.sqrt(np.sqrt(lower))
    higher = np.square(np.square(cdf))
    highest = np.square(np.square(higher))
    far, near, none = TILT_WEIGHTS
    tilted = far * (lowest + highest) + near * (lower + higher) + none * cdf
    mass = np.diff(tilted, axis=1)
    before, at, after = _SMOOTH
    smooth = before * mass[:, :-2] + at * mass[:, 1:-1] + after * mass[:, 2:]
    shares: Floats = (1 - NOVEL_SHARE) * smooth + NOVEL_SHARE / smooth.shape[1]
    return shares
