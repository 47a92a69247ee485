"""Decides what batches say about the work of their members' applications.

Pure. A batch takes as long as its longest member. One member has exactly that much work, all others
at most as much, and it is not known which member is the longest. So the shares of work of each
application, in bins, are the maximum-likelihood estimate, found by expectation-maximisation. Given
shares, the expected number of members of an application in the bin of the longest is

    count * p / F / (1 - product over all members of (1 - p / F))

with p the application's share of that bin and F its share up to it. Its other members lie below,
distributed according to its shares there. The resulting shares are used in the next round. The
prior counts like a number of members observed on their own.

Source: Dempster, Laird and Rubin 1977, for observations that are censored by a maximum. Orloj
(arXiv 2209.00159, section 3.2) learns from single requests only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgebox.domain.model_family import ExecutorId
from edgebox.scheduling.distributions import Floats, Indices

BINS = 160
BIN = 0.04
"""Relative width: the bins span a factor of 600."""

ROUNDS = 12

PRIOR_MEMBERS = 1.0
"""The weight of the prior, in members."""

ANYTHING = 0.5
"""Members spread evenly over all bins."""

HARDLY_ANYWHERE = 0.1
"""The same for applications with enough samples."""

VALUES = 64

_HARDLY = 1e-300
"""Replaces 0, which has no logarithm."""


@dataclass(frozen=True, slots=True)
class MultiRequestBatch:
    """A batch of several requests."""

    apps: tuple[int, ...]
    """The application of each member."""
    work: float
    """The work of its longest member."""
    ended_ns: int
    executor: ExecutorId
    """The executor that ran it."""


@dataclass(frozen=True, slots=True)
class AppEvidence:
    """The knowledge of an application apart from batches of several requests."""

    prior: Sequence[float]
    """Equally likely amounts of work before any measurement."""
    values: Floats
    """The samples, rising."""
    samples: int
    """The number of samples."""
    fixed: bool
    """Whether there are enough samples, so that batches do not change it."""


def infer(
    batches: Sequence[MultiRequestBatch], evidence_by_app: Mapping[int, AppEvidence]
) -> dict[int, Floats]:
    """Return equally likely amounts of work of the applications that are not fixed.

    Costs `ROUNDS` times some array operations over the batches: for 256 batches and 1 application
    about a millisecond, for 16 about three, for 64 about eight (`python -m
    benchmarks.learning_cost`).

    Args:
        batches: at least one.
        evidence_by_app: one entry for every application in the batches.
    """
    apps = sorted(evidence_by_app)
    place = {app: at for at, app in enumerate(apps)}
    works = np.array([batch.work for batch in batches])
    believed = [
        work for of in evidence_by_app.values() for work in (*of.prior[-1:], *of.values[-1:])
    ]
    scale = _Scale(max(1e-9, float(works.max()), *believed))
    cells = [at * len(apps) + place[a] for at, batch in enumerate(batches) for a in batch.apps]
    count = np.bincount(cells, minlength=len(batches) * len(apps)).astype(np.float64)
    count = count.reshape(len(batches), len(apps))
    prior = np.stack([_prior(evidence_by_app[app], scale) for app in apps])
    free = np.array([not evidence_by_app[app].fixed for app in apps])
    shares = _shares(prior, free, count, scale.bin_of(works))
    return {
        app: scale.quantiles(shares[place[app]]) for app in apps if not evidence_by_app[app].fixed
    }


def _shares(prior: Floats, free: npt.NDArray[np.bool_], count: Floats, longest: Indices) -> Floats:
    """Return each application's shares.

    Args:
        prior: (apps, bins): the prior, in members.
        free: (apps,): the applications whose shares are estimated; the others keep their prior's.
        count: (batches, apps): members.
        longest: (batches,): bin of the longest.
    """
    # Batches without a free application give no information; those of one bin are summed.
    informative = np.flatnonzero((count[:, free] > 0).any(axis=1))
    order = informative[np.argsort(longest[informative], kind="stable")]
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


def _prior(evidence: AppEvidence, scale: "_Scale") -> Floats:
    members = np.full(BINS, (HARDLY_ANYWHERE if evidence.fixed else ANYTHING) / BINS)
    if evidence.samples:
        members += np.bincount(scale.bin_of(evidence.values), minlength=BINS)
    if not evidence.fixed:
        believed = np.bincount(scale.bin_of(np.array(evidence.prior)), minlength=BINS)
        members += PRIOR_MEMBERS * believed / len(evidence.prior)
    prior: Floats = members
    return prior


@dataclass(frozen=True, slots=True)
class _Scale:
    """Logarithmic bins of work; the last one ends above the greatest, the first holds all small
    amounts."""

    greatest: float

    def bin_of(self, work: Floats) -> Indices:
        """Return the bins of some amounts."""
        low = np.maximum(work, self.greatest * 1e-6) / self.greatest
        at = np.maximum(np.rint(np.log(low) / BIN) + BINS - 1, 0)
        bins: Indices = at.astype(np.intp)
        return bins

    def quantiles(self, shares: Floats) -> Floats:
        """Return equally likely amounts, rising."""
        middles = (np.arange(VALUES) + 0.5) / VALUES
        at = shares.cumsum().searchsorted(middles)
        found: Floats = self.greatest * np.exp((np.minimum(at, BINS - 1) - (BINS - 1)) * BIN)
        return found
