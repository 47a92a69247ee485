"""By what factor batches take longer on fewer CPU threads, as measured. Pure data."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from edgebox.domain.model_family import LatencyProfile, VariantName


@dataclass(frozen=True, slots=True)
class MeasuredCoreFactor:
    """By what factor the batches of a variant take longer with fewer threads than with all."""

    variant: VariantName
    batch_size: int
    threads: int
    factor: float
    """At least 1."""


def with_core_factors(
    profile: LatencyProfile, measured: Iterable[MeasuredCoreFactor], thread_counts: Sequence[int]
) -> LatencyProfile:
    """Return a profile with the factors of its variant.

    No factor is below that of more threads. A thread count without a measurement of this variant is
    left out, because nothing is known of it.

    Args:
        profile: measured with all threads.
        measured: factors, also of other variants.
        thread_counts: those that a batch may have, rising; the last is all.
    """
    found: dict[int, dict[int, float]] = {}
    for each in measured:
        if each.variant == profile.variant and each.batch_size in profile.quantiles_ns:
            found.setdefault(each.threads, {})[each.batch_size] = each.factor
    factors = {thread_counts[-1]: dict.fromkeys(profile.batch_sizes, 1.0)}
    more = factors[thread_counts[-1]]
    for threads in reversed(thread_counts[:-1]):
        of = found.get(threads, {})
        if of.keys() == set(profile.batch_sizes):
            factors[threads] = more = {size: max(of[size], more[size]) for size in of}
    return replace(profile, core_factors=factors)


def with_greatest_core_factors(
    profile: LatencyProfile, others: Collection[LatencyProfile]
) -> LatencyProfile:
    """Return a profile with the thread counts of others, and the greatest factor at each of them.

    Args:
        profile: returned as it is if its own factors were measured.
        others: profiles of the same executor.
    """
    if profile.core_factors:
        return profile
    found: dict[int, dict[int, float]] = {}
    for threads in sorted({threads for other in others for threads in other.core_factors}):
        factors = [
            factor for other in others for factor in other.core_factors.get(threads, {}).values()
        ]
        found[threads] = dict.fromkeys(profile.batch_sizes, max(factors)) if factors else {}
    return replace(profile, core_factors=found)
