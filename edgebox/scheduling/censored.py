"""Decides what batches tell about the work of the applications in them.

Pure. A batch's time is that of its longest member: one member is as much work as was seen, all
others at most as much, and which one it was is not known. So each application's shares of work, in
bins, are those with the greatest likelihood: expectation and maximisation in turn. Given shares,
the members of an application in the bin of the longest are expected to be

    count * p / F / (1 - product over all members of (1 - p / F))

with p the application's share of that bin and F its share up to it; its other members lie below,
distributed as its shares are there. The shares that this makes are the next ones. What is believed
beforehand counts like some members that were seen by themselves.

Source: Dempster, Laird and Rubin 1977, for observations that are censored by a maximum. Orloj
(arXiv 2209.00159, section 3.2) learns from single requests only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgebox.domain.model_family import ExecutorId
from edgebox.scheduling.distributions import Floats, Places

BINS = 160
BIN = 0.04
"""Relative width: the bins span a factor of 600."""

ROUNDS = 12

PRIOR_MEMBERS = 1.0
"""What is believed beforehand counts like so many members."""

ANYTHING = 0.5
"""So many members that may be anywhere."""

HARDLY_ANYWHERE = 0.1
"""The same for applications that are known well."""

VALUES = 64

_HARDLY = 1e-300
"""Stands for 0, which has no logarithm."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """A batch of several requests."""

    apps: tuple[int, ...]
    """Of each member."""
    work: float
    """Of its longest member."""
    ended_ns: int
    executor: ExecutorId
    """Where it ran."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What is believed of an application beside the batches."""

    prior: Sequence[float]
    """Equally likely amounts of work, as believed before anything was seen."""
    values: Floats
    """Of the samples, rising."""
    samples: int
    """How many there are."""
    fixed: bool
    """Whether it is known well, so that batches shall not change it."""


def infer(batches: Sequence[Mixed], beliefs: Mapping[int, Belief]) -> dict[int, Floats]:
    """Return equally likely amounts of work of the applications that are not known well.

    Costs ROUNDS times some array operations over the batches: of 256 and 1 application about a
    millisecond, of 16 about three, of 64 about eight (`python -m benchmarks.learning_cost`).

    Args:
        batches: at least one.
        beliefs: of every application in them.
    """
    apps = sorted(beliefs)
    place = {app: at for at, app in enumerate(apps)}
    works = np.array([batch.work for batch in batches])
    believed = [work for of in beliefs.values() for work in (*of.prior[-1:], *of.values[-1:])]
    scale = _Scale(max(1e-9, float(works.max()), *believed))
    cells = [at * len(apps) + place[a] for at, batch in enumerate(batches) for a in batch.apps]
    count = np.bincount(cells, minlength=len(batches) * len(apps)).astype(np.float64)
    count = count.reshape(len(batches), len(apps))
    prior = np.stack([_prior(beliefs[app], scale) for app in apps])
    free = np.array([not beliefs[app].fixed for app in apps])
    shares = _shares(prior, free, count, scale.bin_of(works))
    return {app: scale.quantiles(shares[place[app]]) for app in apps if not beliefs[app].fixed}


def _shares(prior: Floats, free: npt.NDArray[np.bool_], count: Floats, longest: Places) -> Floats:
    """Return each application's shares.

    Args:
        prior: (apps, bins): members believed beforehand.
        free: (apps,): whose shares are to be found; the others' are their prior's.
        count: (batches, apps): members.
        longest: (batches,): bin of the longest.
    """
    # Batches without anybody who is free tell nothing; those of one bin are summed together.
    telling = np.flatnonzero((count[:, free] > 0).any(axis=1))
    order = telling[np.argsort(longest[telling], kind="stable")]
    members, at = count[order].T, longest[order]  # (apps, batches), (batches,)
    used, first = np.unique(at, return_index=True)
    in_bin = np.add.reduceat(members, first, axis=1)  # (apps, used bins)
    there, below = np.zeros_like(prior), np.zeros_like(prior)
    shares = prior / prior.sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        up_to = shares.cumsum(axis=1)
        part = np.minimum(shares / np.maximum(up_to, _HARDLY), 1.0)
        none = np.exp((members * np.log(np.maximum(1 - part, _HARDLY))[:, at]).sum(axis=0))
        expected = members * part[:, at] / np.maximum(1 - none, 1e-12)
        there[:, used] = np.add.reduceat(np.minimum(expected, members), first, axis=1)
        rest = np.maximum((up_to - shares)[:, used], 1e-12)
        below[:, used] = (in_bin - there[:, used]) / rest
        over = below[:, ::-1].cumsum(axis=1)[:, ::-1] - below
        seen = np.where(free[:, None], there + shares * over, 0.0)
        shares = prior + seen
        shares /= shares.sum(axis=1, keepdims=True)
    found: Floats = shares
    return found


def _prior(belief: Belief, scale: "_Scale") -> Floats:
    members = np.full(BINS, (HARDLY_ANYWHERE if belief.fixed else ANYTHING) / BINS)
    if belief.samples:
        members += np.bincount(scale.bin_of(belief.values), minlength=BINS)
    if not belief.fixed:
        believed = np.bincount(scale.bin_of(np.array(belief.prior)), minlength=BINS)
        members += PRIOR_MEMBERS * believed / len(belief.prior)
    prior: Floats = members
    return prior


@dataclass(frozen=True, slots=True)
class _Scale:
    """Bins of work; the last ends above the greatest, the first holds all that is hardly any."""

    greatest: float

    def bin_of(self, work: Floats) -> Places:
        """Return the bins of some amounts."""
        low = np.maximum(work, self.greatest * 1e-6) / self.greatest
        at = np.maximum(np.rint(np.log(low) / BIN) + BINS - 1, 0)
        bins: Places = at.astype(np.intp)
        return bins

    def quantiles(self, shares: Floats) -> Floats:
        """Return equally likely amounts, rising."""
        middles = (np.arange(VALUES) + 0.5) / VALUES
        at = shares.cumsum().searchsorted(middles)
        found: Floats = self.greatest * np.exp((np.minimum(at, BINS - 1) - (BINS - 1)) * BIN)
        return found
