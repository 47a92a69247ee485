"""Decides whether a batch contradicts what is known of its members' work. Pure."""

import math

from edgebox.scheduling.change_detection import FALSE_ALARM
from edgebox.scheduling.distributions import Floats

SURPRISE = 0.001
"""A batch is surprising that is as quick as this with the samples of its longest application."""

SURPRISE_MARGIN = 1.25
SURPRISE_QUANTILE = 0.98
"""So is one of one application that is by so much slower than this quantile of its samples."""


def surprise(values: Floats, owned: int, members: int, work: float) -> tuple[int, float]:
    """Say whether a batch is surprisingly quick (-1) or slow (1), and how likely the latter was.

    Args:
        values: samples of the application that should have its longest member, rising.
        owned: how many members are of that application.
        members: how many there are.
        work: of the longest.
    """
    count = len(values)
    shorter = (int(values.searchsorted(work, side="right")) + 1) / (count + 1)
    if shorter**owned < SURPRISE:
        return -1, 0.0
    if owned < members:
        return 0, 0.0  # a long one may be another application's
    slow = SURPRISE_MARGIN * float(values[int(SURPRISE_QUANTILE * (count - 1))])
    below = int(values.searchsorted(slow, side="right")) / (count + 1)
    return int(work > slow), 1 - below**owned


def is_rare(events: int, expected: float) -> bool:
    """Say whether so many rare events are hardly ever seen (Poisson)."""
    if events == 0 or events <= expected:
        return False
    log_chance = events * math.log(expected) - math.lgamma(events + 1)
    return log_chance < math.log(FALSE_ALARM)
