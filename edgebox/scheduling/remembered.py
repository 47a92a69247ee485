"""Decides what is kept of learned execution times over a restart, and what it is worth later. Pure.

One rule: what was learned counts half as much after every `HALF_LIFE_NS`. Of samples so many come
back, evenly out of all; the excess of a drift factor over 1 shrinks so, as a power. What is
learned from then on replaces it as it replaces all older samples.
"""

import numpy as np

from edgebox.domain.learned import Learned, LearnedDrift, LearnedWork
from edgebox.scheduling.corrections import Corrections
from edgebox.scheduling.distributions import SAMPLES_ENOUGH, SAMPLES_MIN
from edgebox.scheduling.learning import Learning

HALF_LIFE_NS = 86_400_000_000_000
"""A day."""

_SCATTER = 2_654_435_769


def thinned(learned: LearnedWork) -> list[float]:
    """Return what is left of some samples at their age, in an order that has no trend."""
    count = round(len(learned.work) * 0.5 ** (learned.age_ns / HALF_LIFE_NS))
    places = ((np.arange(count) + 0.5) * len(learned.work) / max(1, count)).astype(np.intp)
    # A rising order would look like a change.
    order = sorted(range(count), key=lambda at: (at * _SCATTER) & 0xFFFF_FFFF)
    return [learned.work[places[at]] for at in order]


def faded(drift: LearnedDrift) -> float:
    """Return what is left of a factor at its age."""
    return float(drift.factor ** (0.5 ** (drift.age_ns / HALF_LIFE_NS)))


def restore(learned: Learned, learning: Learning, corrections: Corrections, now_ns: int) -> None:
    """Take in what was learned before a restart, where nothing is known yet."""
    for each in learned.work:
        work = thinned(each)
        if len(work) >= SAMPLES_MIN:
            learning.restore(each.variant, each.app, work, now_ns - each.age_ns)
    factors = {(each.executor, each.variant): faded(each) for each in learned.drifts}
    corrections.restore(factors)


def work_of(learning: Learning, now_ns: int) -> list[LearnedWork]:
    """Return what is worth keeping: of each application that is known, at most so many samples."""
    kept = []
    for variant, app, distribution in learning.known_distributions():
        values = distribution.signed
        if distribution.samples >= SAMPLES_MIN:
            count = min(SAMPLES_ENOUGH, len(values))
            at = ((np.arange(count) + 0.5) * len(values) / count).astype(np.intp)
            age_ns = max(0, now_ns - distribution.newest_ns)
            kept.append(LearnedWork(variant, app, tuple(values[at].tolist()), age_ns))
    return kept
