"""Owns requests with several deadlines as arrays: a sum of single deadlines each. Pure.

Source: Orloj (arXiv 2209.00159), appendix B: a cost with several steps is the sum of single
steps, so a request's score is the sum of the scores of single deadlines. A request of one deadline
is one of gain 1, so both kinds fit into the same arrays; where nobody has several there are none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgebox.domain.requests import UtilityStep
from edgebox.scheduling.distributions import Floats, Places

TIERS_MAX = 3
"""A request with the most deadlines a camera may have can lose so many of them and wait on."""

_WORTH_DIGITS = 9
"""Sums of gains are equal up to rounding."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The single deadlines of N requests, at most K each, as times left.

    Who has fewer repeats its last one, which then gains nothing.
    """

    slack_ns: Floats
    """(K, N): time to each."""
    slo_ns: Floats
    """(K, N): the whole time each had."""
    gain: Floats
    """(K, N): what being in time for it adds."""

    def tiers(self) -> list[Places]:
        """Return the places of those who can still gain most, then with those who can next to most.

        At most `TIERS_MAX` such groups, none of them everybody.
        """
        worth = self.gain.sum(axis=0).round(_WORTH_DIGITS)
        amounts = np.unique(worth)[:0:-1][:TIERS_MAX]
        return [np.flatnonzero(worth >= least) for least in amounts]

    def of(self, places: Places) -> "Steps":
        """Return the steps of some of the requests, in another order."""
        return Steps(self.slack_ns[:, places], self.slo_ns[:, places], self.gain[:, places])


@dataclass(frozen=True, slots=True)
class StepColumns:
    """The same, by the clock."""

    deadline_ns: npt.NDArray[np.int64]
    """(K, N)"""
    slo_ns: Floats
    """(K, N)"""
    gain: Floats
    """(K, N)"""

    def left(self, now_ns: int) -> Steps:
        """Return the times left at an instant."""
        return Steps((self.deadline_ns - now_ns).astype(np.float64), self.slo_ns, self.gain)


def spread(
    deadlines_ns: Sequence[int], singles: Sequence[tuple[UtilityStep, ...] | None]
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return deadlines and gains, (K, N) each.

    Args:
        deadlines_ns: of each request; its only one, where it has no others.
        singles: of each request what `single_deadlines` returns; None or empty: one deadline.
    """
    known = [
        each or (UtilityStep(at, 1.0),) for at, each in zip(deadlines_ns, singles, strict=True)
    ]
    most = max(map(len, known), default=1)
    deadline_ns = [[each[min(k, len(each) - 1)].by_ns for each in known] for k in range(most)]
    gain = [[each[k].worth if k < len(each) else 0.0 for each in known] for k in range(most)]
    return np.array(deadline_ns, dtype=np.int64), np.array(gain, dtype=np.float64)
