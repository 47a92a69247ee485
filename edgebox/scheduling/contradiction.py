"""Decides whether batches contradict the samples of their members' applications. Pure.

A batch is as long as its longest member. If the samples still hold, a batch is as fast as it was,
or faster, with a known probability; several batches are too fast if so many of them cannot all be
as fast as they were (the order statistics of Berk and Jones 1979, with a union bound in place of
the binomial tail). Many batches of few requests tell as much as few batches of many.
"""

import math
from collections.abc import Sequence

from edgebox.scheduling.change_detection import FALSE_ALARM
from edgebox.scheduling.distributions import Floats

CHANCE_LEAST = 0.001
"""No batch counts as less probable: one alone may be fast for other reasons."""

DEVIATIONS = 1.0
"""By so many standard deviations the share of samples that are as short may be too small. All
batches are compared with the same few samples, so a window of batches does not average this out."""

SLOW_MARGIN = 1.25
SLOW_QUANTILE = 0.98
"""A batch of one application is too slow if it exceeds this quantile of its samples by the factor
`SLOW_MARGIN`."""


def chance_as_fast(values: Floats, owned: int, work: float) -> float:
    """Return the probability of a batch that is at most this long, at least `CHANCE_LEAST`.

    Args:
        values: samples of the application that is expected to have the longest member, rising.
        owned: number of members of that application.
        work: work of the longest member.
    """
    shorter = (int(values.searchsorted(work, side="right")) + 1) / (len(values) + 1)
    shorter += DEVIATIONS * math.sqrt(shorter * (1 - shorter) / len(values))
    return max(CHANCE_LEAST, min(1.0, shorter) ** owned)


def is_slow(values: Floats, owned: int, work: float) -> tuple[bool, float]:
    """Say whether a batch of one application is too slow, and the probability of that.

    Args:
        values: samples of the application, rising.
        owned: number of members.
        work: work of the longest member.
    """
    count = len(values)
    slow = SLOW_MARGIN * float(values[int(SLOW_QUANTILE * (count - 1))])
    below = int(values.searchsorted(slow, side="right")) / (count + 1)
    return work > slow, 1 - below**owned


def too_fast(chances: Sequence[float]) -> float:
    """Return the probability up to which batches are too fast together; 0: they are not.

    Args:
        chances: `chance_as_fast` of each batch.
    """
    least, found = math.log(FALSE_ALARM), 0.0
    for number, chance in enumerate(sorted(chances), 1):
        log_chance = math.log(math.comb(len(chances), number)) + number * math.log(chance)
        if log_chance < least:
            least, found = log_chance, chance
    return found


def is_rare(events: int, expected: float) -> bool:
    """Say whether this number of rare events is improbable (Poisson)."""
    if events == 0 or events <= expected:
        return False
    log_chance = events * math.log(expected) - math.lgamma(events + 1)
    return log_chance < math.log(FALSE_ALARM)
