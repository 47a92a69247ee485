"""Owns requests with several deadlines as arrays: each is a sum of single deadlines. Pure.

Source: Orloj (arXiv 2209.00159), appendix B: a cost with several steps is the sum of single steps,
so a request's score is the sum of the scores of its single deadlines. A request with one deadline
is a single step with gain 1, so the same arrays hold both. If no request has several deadlines, the
arrays are not built.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgebox.domain.requests import UtilityStep
from edgebox.scheduling.distributions import Floats, Indices

TIERS_MAX = 3
"""A request with the most deadlines a camera may have can lose this many and still wait."""

_UTILITY_DIGITS = 9
"""Decimal digits to which sums of gains are compared."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The remaining time to the single deadlines of N requests, at most K each.

    A request with fewer deadlines repeats its last one with gain 0.
    """

    slack_ns: Floats
    """(K, N): time to each deadline."""
    slo_ns: Floats
    """(K, N): the SLO of each deadline."""
    gain: Floats
    """(K, N): the utility that meeting the deadline adds."""

    def tiers(self) -> list[Indices]:
        """Return the requests with the greatest remaining utility, then those with the next or
        more.

        At most `TIERS_MAX` such groups, none of which contains all requests.
        """
        utility = self.gain.sum(axis=0).round(_UTILITY_DIGITS)
        amounts = np.unique(utility)[:0:-1][:TIERS_MAX]
        return [np.flatnonzero(utility >= least) for least in amounts]

    def of(self, indices: Indices) -> "Steps":
        """Return the steps of these requests, in this order."""
        return Steps(self.slack_ns[:, indices], self.slo_ns[:, indices], self.gain[:, indices])


@dataclass(frozen=True, slots=True)
class StepColumns:
    """The single deadlines of N requests as instants."""

    deadline_ns: npt.NDArray[np.int64]
    """(K, N)"""
    slo_ns: Floats
    """(K, N)"""
    gain: Floats
    """(K, N)"""

    def left(self, now_ns: int) -> Steps:
        """Return the remaining times at an instant."""
        return Steps((self.deadline_ns - now_ns).astype(np.float64), self.slo_ns, self.gain)


def spread(
    deadlines_ns: Sequence[int], singles: Sequence[tuple[UtilityStep, ...] | None]
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return deadlines and gains, (K, N) each.

    Args:
        deadlines_ns: of each request; its only one if it has no others.
        singles: for each request the result of `single_deadlines`; None or empty: one deadline.
    """
    known = [
        each or (UtilityStep(at, 1.0),) for at, each in zip(deadlines_ns, singles, strict=True)
    ]
    most = max(map(len, known), default=1)
    deadline_ns = [[each[min(k, len(each) - 1)].by_ns for each in known] for k in range(most)]
    gain = [[each[k].utility if k < len(each) else 0.0 for each in known] for k in range(most)]
    return np.array(deadline_ns, dtype=np.int64), np.array(gain, dtype=np.float64)
