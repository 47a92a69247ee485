"""Decides whether a batch contradicts the samples of its members' applications. Pure."""

import math

from edgebox.scheduling.change_detection import FALSE_ALARM
from edgebox.scheduling.distributions import Floats

CONTRADICTION_P = 0.001
"""A batch is too fast if the samples of its longest application make a batch this fast less likely
than this."""

SLOW_MARGIN = 1.25
SLOW_QUANTILE = 0.98
"""A batch of one application is too slow if it exceeds this quantile of its samples by the factor
`SLOW_MARGIN`."""


def classify_batch(values: Floats, owned: int, members: int, work: float) -> tuple[int, float]:
    """Say whether a batch is too fast (-1) or too slow (1), and the probability of too slow.

    Args:
        values: samples of the application that is expected to have the longest member, rising.
        owned: number of members of that application.
        members: number of all members.
        work: work of the longest member.
    """
    count = len(values)
    shorter = (int(values.searchsorted(work, side="right")) + 1) / (count + 1)
    if shorter**owned < CONTRADICTION_P:
        return -1, 0.0
    if owned < members:
        return 0, 0.0  # the longest member may be of another application
    slow = SLOW_MARGIN * float(values[int(SLOW_QUANTILE * (count - 1))])
    below = int(values.searchsorted(slow, side="right")) / (count + 1)
    return int(work > slow), 1 - below**owned


def is_rare(events: int, expected: float) -> bool:
    """Say whether this number of rare events is improbable (Poisson)."""
    if events == 0 or events <= expected:
        return False
    log_chance = events * math.log(expected) - math.lgamma(events + 1)
    return log_chance < math.log(FALSE_ALARM)
