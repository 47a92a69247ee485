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
alternatives, `TILTS`); each new one costs much. An application that fits
no shift well may have changed by itself, for a fixed price. The shift with the greatest sum over
all applications is the executor's, if it is worth its own price.

Limits: where one application is all that ran, a change of all its requests by one factor is taken
for another speed; nothing in the times says which it is. What changes by less than two bins is
left to the slowdown (`calibration`).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from edgebox.scheduling.distributions import Floats
from edgebox.scheduling.work import Longest

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

TILTS = ((1 / 16, 0.1), (1 / 4, 0.1), (1.0, 0.6), (4.0, 0.1), (16.0, 0.1))
"""Powers of a CDF and how likely each is beforehand: Lehmann's alternatives. A large batch of a mix
of short and long requests is always long; where hardly any are long any more, it is not."""

_SMOOTH = np.array([0.25, 0.5, 0.25])
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

    Costs about a millisecond for 128 batches.
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
    expected: dict[tuple[int, int], Floats] = {}
    counts: dict[tuple[int, int, int], int] = defaultdict(int)
    totals: dict[tuple[int, int], int] = defaultdict(int)
    share = np.empty((len(batches), len(_SHIFTS)))
    known, total = np.empty((len(batches), 1)), np.empty((len(batches), 1))
    for at, (batch, took) in enumerate(zip(batches, bins.tolist(), strict=True)):
        key = id(batch.longest), batch.size
        if key not in expected:
            edges_ns = 2.0 ** ((np.arange(low - 1, high + 3) - 0.5) / BINS_PER_OCTAVE)
            work = (edges_ns - fixed_ns) / float(slope_ns[batch.size])
            expected[key] = _shares(batch.longest.cdf_at(work))
        share[at] = expected[key][took - low - _SHIFTS]
        cell = batch.app, batch.size
        known[at], total[at] = counts[*cell, took], totals[cell]
        counts[*cell, took] += 1
        totals[cell] += 1
    each: Floats = np.log((known + PRIOR_BATCHES * share) / (total + PRIOR_BATCHES))
    return each


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
    """Return how likely each bin is, from the CDF at the edges of these and one more each side."""
    tilted = np.sum([weight * cdf**power for power, weight in TILTS], axis=0)
    smooth = np.convolve(np.diff(tilted), _SMOOTH, mode="valid")
    shares: Floats = (1 - NOVEL_SHARE) * smooth + NOVEL_SHARE / len(smooth)
    return shares
