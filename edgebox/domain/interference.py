"""What executors that run at once cost each other, as measured. Pure data."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import fmean

from edgebox.domain.model_family import FamilyName, LatencyProfile, VariantName


@dataclass(frozen=True, slots=True)
class MeasuredInterference:
    """By what factor the batches of a variant take longer while other executors run."""

    variant: VariantName
    beside: FamilyName
    """The family whose batches the others ran."""
    others: int
    """How many others ran, at least 1."""
    factor: float
    """At least 1."""


def with_interference(
    profile: LatencyProfile, measured: Iterable[MeasuredInterference]
) -> LatencyProfile:
    """Return a profile with the interference of its variant.

    For each number of others the mean over the families beside counts. Numbers between two measured
    ones are interpolated, and no factor is below that of fewer others. A profile whose variant was
    not measured is returned as it is.
    """
    factors: dict[int, list[float]] = {0: [1.0]}
    for each in measured:
        if each.variant == profile.variant:
            factors.setdefault(each.others, []).append(each.factor)
    numbers = sorted(factors)
    if len(numbers) == 1:
        return profile
    means = dict(zip(numbers, accumulate((fmean(factors[n]) for n in numbers), max), strict=True))
    found = []
    for low, high in pairwise(numbers):
        step = (means[high] - means[low]) / (high - low)
        found += [means[low] + step * (n - low) for n in range(low + 1, high + 1)]
    return replace(
        profile,
        interference=(found[-1] - 1.0) / len(found),
        interference_factors=tuple(found),
    )


def with_greatest_interference(
    profile: LatencyProfile, others: Collection[LatencyProfile]
) -> LatencyProfile:
    """Return a profile with the greatest interference of others, unless its own was measured.

    What is not known of a variant counts as what is known of its neighbours at worst: one that is
    taken to cost nothing would run beside others whatever that costs them.

    Args:
        profile: of a variant that was measured alone.
        others: profiles of its executor or its device; those without interference do not count.
    """
    known = [other for other in others if other.has_interference]
    if profile.has_interference or not known:
        return profile
    numbers = range(1, 1 + max(len(other.interference_factors) for other in known))
    return replace(
        profile,
        interference=max(other.interference for other in known),
        interference_factors=tuple(max(other.slowed(n) for other in known) for n in numbers),
    )
