"""Decides what of the learned execution times is stored, and what is restored after a restart.
Pure.

One rule: after every `HALF_LIFE_NS`, what was learned counts half as much. That share of the
samples is restored, chosen evenly; the logarithm of a drift factor shrinks by the same share. New
measurements replace the restored ones like any older samples.
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
    """Return the samples that remain at their age, in an order without a trend."""
    count = round(len(learned.work) * 0.5 ** (learned.age_ns / HALF_LIFE_NS))
    indices = ((np.arange(count) + 0.5) * len(learned.work) / max(1, count)).astype(np.intp)
    # A rising order would look like a change of the distribution.
    order = sorted(range(count), key=lambda at: (at * _SCATTER) & 0xFFFF_FFFF)
    return [learned.work[indices[at]] for at in order]


def faded(drift: LearnedDrift) -> float:
    """Return the factor that remains at its age."""
    return float(drift.factor ** (0.5 ** (drift.age_ns / HALF_LIFE_NS)))


def restore(learned: Learned, learning: Learning, corrections: Corrections, now_ns: int) -> None:
    """Restore what was learned before a restart, for applications that are still unknown."""
    for each in learned.work:
        work = thinned(each)
        if len(work) >= SAMPLES_MIN:
            learning.restore(each.variant, each.app, work, now_ns - each.age_ns)
    factors = {(each.executor, each.variant): faded(each) for each in learned.drifts}
    corrections.restore(factors)


def work_of(learning: Learning, now_ns: int) -> list[LearnedWork]:
    """Return what to store: a bounded number of samples of each measured application."""
    kept = []
    for variant, app, distribution in learning.known_distributions():
        values = distribution.signed
        if distribution.samples >= SAMPLES_MIN:
            count = min(SAMPLES_ENOUGH, len(values))
            at = ((np.arange(count) + 0.5) * len(values) / count).astype(np.intp)
            age_ns = max(0, now_ns - distribution.newest_ns)
            kept.append(LearnedWork(variant, app, tuple(values[at].tolist()), age_ns))
    return kept
