"""Decides whether batches take other times because the executor is slower or the requests differ.

Pure. A batch takes an executor's speed times its requests' work, so from one batch the two cannot
be told apart. From many they can, as far as this holds: another speed multiplies all times by one
factor, those of all applications; other requests of an application come in other shares, but what
each kind of them takes stays; and requests of kinds never seen change one application alone.

Batch times are put into bins of a twelfth of an octave, so that a factor is a shift of bins. For
each shift an application's batches have a likelihood: they are draws from shares that are not
known, which are believed to be about as before (a Dirichlet prior with the learnt distribution of
the batch's longest member as its mean; its predictive is Polya's urn). Kinds that were there
before cost little however often they come now, more of them or fewer in a batch (Lehmann's
alternatives, `TILT_WEIGHTS`); each new one costs much. An application that fits
no shift well may have changed by itself, for a fixed price. The shift with the greatest sum over
all applications is the executor's, if it is worth its own price.

Limits: where one application is all that ran, a change of all its requests by one factor is taken
for another speed; nothing in the times says which it is. What changes by less than two bins is
left to the slowdown (`calibration`).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from edgebox.scheduling.distributions import Floats, Places
from edgebox.scheduling.work import Longest, cdfs_at

BINS_PER_OCTAVE = 12
REACH = 3 * BINS_PER_OCTAVE
"""Shifts that are tried, each way: factors from 1/8 to 8."""

TOLERANCE = 2
"""Shifts of so many bins are no news."""

PRIOR_BATCHES = 64.0
"""The shares of before count as much as so many batches."""

NOVEL_SHARE = 0.01
"""Of the batches, what is believed to be of kinds never seen."""

PRICE_OF_SHIFT = 5.0
"""In nats: how much better another speed must explain the batches than the known one."""

PRICE_OF_CHANGE = 8.0
"""In nats: what it costs to say that an application has changed by itself."""

TILT_WEIGHTS = 0.1, 0.1, 0.6
"""How likely powers of a CDF are beforehand, Lehmann's alternatives: 1/16 and 16 each, 1/4 and 4
each, and 1. A large batch of a mix of short and long requests is always long; where hardly any are
long any more, it is not."""

_SMOOTH = 0.25, 0.5, 0.25
_SHIFTS = np.arange(-REACH, REACH + 1)


@dataclass(frozen=True, slots=True)
class Seen:
    """A batch that ran."""

    app: int
    """The application of which its longest member is expected to be."""
    longest: Longest
    """The work of its longest member, as believed before."""
    size: int
    """Index of its padded size."""
    took_ns: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """What explains the batches best."""

    factor: float
    """What the executor takes of the times it took; 1: as before."""
    agreeing: frozenset[int]
    """The applications whose batches it explains."""
    shifted: bool
    """Whether the factor, however small, is better than none."""


@dataclass(frozen=True, slots=True)
class Ran:
    """Batches of one variant."""

    batches: Sequence[Seen]
    """At least one."""
    fixed_ns: float
    """Time of a batch without any work."""
    slope_ns: Floats
    """(sizes,): time per unit of work."""


def attribute(ran: Ran) -> Attribution:
    """Say by which factor the executor's speed has changed, if it has.

    Costs 1 to 1.6 ms for 128 batches of 1 to 64 applications (`benchmarks.learning_cost`).
    """
    return attribute_together([ran])[0]


def attribute_together(variants: Sequence[Ran]) -> list[Attribution]:
    """Return one factor for all of an executor's variants, with the applications of each.

    An application may have changed on each of them by itself.
    """
    first = np.cumsum([0, *(1 + max(b.app for b in ran.batches) for ran in variants)]).tolist()
    apps = [at + b.app for at, ran in zip(first, variants, strict=False) for b in ran.batches]
    found = _best(np.concatenate([_likelihoods(ran) for ran in variants]), np.array(apps))
    return [
        replace(found, agreeing=frozenset(app - at for app in found.agreeing if at <= app < after))
        for at, after in pairwise(first)
    ]


def _likelihoods(ran: Ran) -> Floats:
    """Return how likely each batch is at each shift, (batches, shifts), as logarithms."""
    batches, fixed_ns, slope_ns = ran.batches, ran.fixed_ns, ran.slope_ns
    bins = np.rint(_bin_of(np.array([b.took_ns for b in batches]))).astype(np.intp)
    low, high = int(bins.min()) - REACH, int(bins.max()) + REACH
    edges_ns = 2.0 ** ((np.arange(low - 1, high + 3) - 0.5) / BINS_PER_OCTAVE)
    share = np.empty((len(batches), len(_SHIFTS)))
    for places, cdf in _expected(batches, edges_ns - fixed_ns, slope_ns):
        of_bins = (bins[places] - low)[:, None] - _SHIFTS
        share[places] = np.take_along_axis(_shares(cdf), of_bins, axis=1)
    known, total = _seen_before(batches, bins)
    each: Floats = np.log((known + PRIOR_BATCHES * share) / (total + PRIOR_BATCHES))
    return each


def _expected(
    batches: Sequence[Seen], edges_ns: Floats, slope_ns: Floats
) -> Iterator[tuple[list[int], Floats]]:
    """Yield some batches' places and their CDFs at edges of times, until there are no more.

    Those of one size whose CDFs have the same nodes go together.
    """
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, batch in enumerate(batches):
        alike[id(batch.longest.nodes), batch.size].append(at)
    for (_, size), places in alike.items():
        members = [batches[at].longest for at in places]
        yield places, cdfs_at(members, edges_ns / float(slope_ns[size]))


def _seen_before(batches: Sequence[Seen], bins: Places) -> tuple[Floats, Floats]:
    """Return how many earlier batches were like each in its bin, and how many in all, (n, 1)."""
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
    """Choose a shift from the batches' log likelihoods, (batches, shifts)."""
    by_app = {int(one): each[app == one].sum(axis=0) for one in np.unique(app)}
    alone = {one: float(of.max()) - PRICE_OF_CHANGE for one, of in by_app.items()}
    every = np.sum([np.maximum(of, alone[one]) for one, of in by_app.items()], axis=0)
    every[_SHIFTS != 0] -= PRICE_OF_SHIFT
    at = int(np.argmax(every))
    agreeing = frozenset(one for one, of in by_app.items() if of[at] >= alone[one])
    shift = int(_SHIFTS[at])
    factor = 2.0 ** (shift / BINS_PER_OCTAVE) if abs(shift) > TOLERANCE else 1.0
    return Attribution(factor, agreeing, shift != 0)


def _bin_of(time_ns: Floats) -> Floats:
    of: Floats = np.log2(np.maximum(time_ns, 1.0)) * BINS_PER_OCTAVE
    return of


def _shares(cdf: Floats) -> Floats:
    """Return how likely each bin is, from CDFs at the edges of these and one more each side."""
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
