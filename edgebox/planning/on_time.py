"""Decides by which quantile of the batches' times to plan, by how likely frames are in time. Pure.

A frame may wait for one batch and then runs in the next. If both take no longer than their quantile
q, it is in time, so the probability is at least q^2 if the times are independent. A high quantile
is right where it is close to the others. Where a batch now and then takes several times as long, as
on a machine with other programs, it forbids most sizes for the sake of few frames. Then a lower
quantile may be worth more in expectation: a few more misses, and answers of a higher accuracy.

Each camera's probability counts. One whose budget is longer than the plan needs is in time even if
batches take as much longer, and the profile of its variant says how probable that is.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from edgebox.domain.model_family import QUANTILES, LatencyProfile, VariantName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.allocation import Allocation, option_value, service_of
from edgebox.planning.planner_parameters import PlanningParameters

LOWER_QUANTILES = (0.95, 0.9, 0.75)
"""What is tried below `PlanningParameters.quantile`: the points of a profile above its median."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What an allocation is expected to bring."""

    promised: float
    """Its service if all frames are in time."""
    service: float
    """What of that is in time."""
    value: float
    """Accuracy times rate of what is in time, more where a camera keeps its variant."""

    def __add__(self, other: "Expected") -> "Expected":
        return Expected(
            self.promised + other.promised, self.service + other.service, self.value + other.value
        )

    def scaled(self, share: float) -> "Expected":
        """Return what remains if only a share of the frames is answered."""
        return Expected(share * self.promised, share * self.service, share * self.value)

    def exceeds(self, other: "Expected") -> bool:
        """Say whether this is better: by service first, then by value, as always.

        Service that is only promised does not count.
        """
        more = round(self.promised - other.promised, 9)
        if more:
            return more > 0 and self.service > other.service
        return self.value > other.value


def lower_quantiles(
    snapshot: PlanningSnapshot, parameters: PlanningParameters
) -> Iterator[PlanningParameters]:
    """Yield parameters with the lower quantiles that may be worth it.

    Batches that are shorter by some share allow about as much more at most. So a quantile is tried
    only if it makes some batch shorter by a larger share than it costs in frames. With steady
    executors none is, and planning costs what it did.
    """
    profiles = [*_profiles(snapshot)]
    high = parameters.quantile
    for low in LOWER_QUANTILES:
        left = on_time_probability(low, high)
        if low < high and any(
            of.quantile_ns(size, low) < left * of.quantile_ns(size, high)
            for of in profiles
            for size in of.batch_sizes[:1]
        ):
            yield replace(parameters, quantile=low)


def on_time_probability(quantile: float, high: float) -> float:
    """Return how probable it is that two batches both stay within a quantile, relative to `high`.

    Above `high` nothing is known, and nothing is gained.
    """
    return min(1.0, (quantile / high) ** 2)


def expected(
    allocation: Allocation,
    profiles: Mapping[VariantName, LatencyProfile],
    quantile: float,
    parameters: PlanningParameters,
) -> Expected:
    """Return what an allocation brings that was made for a quantile.

    Args:
        allocation: what all cameras get.
        profiles: of each variant, on the executor where it takes longest.
        quantile: the batches' times by which it was made.
        parameters: the tunables; their quantile is the highest that counts.
    """
    found = Expected(allocation.service, 0.0, 0.0)
    for at, (of, option) in enumerate(zip(allocation.cameras, allocation.chosen, strict=True)):
        probability = 1.0
        if of.served and quantile < parameters.quantile:
            longer = option.budget.compute_ns / max(1, allocation.needed_ns(at))
            within = _quantile_of(profiles[option.variant.name], quantile, longer)
            probability = on_time_probability(within, parameters.quantile)
        found += Expected(
            0.0,
            probability * service_of(of, option),
            probability * option_value(of, option, parameters.hysteresis_ratio),
        )
    return found


def slowest_profiles(
    snapshot: PlanningSnapshot, quantile: float
) -> dict[VariantName, LatencyProfile]:
    """Return the profile of each variant on the executor where it takes longest."""
    found: dict[VariantName, tuple[float, LatencyProfile]] = {}
    for executor, of in snapshot.profiles.items():
        for name, profile in of.items():
            if profile.batch_sizes:
                factor = snapshot.slowdown.get(executor, 1.0) * profile.slowed(snapshot.others)
                took_ns = profile.quantile_ns(profile.batch_sizes[0], quantile) * factor
                if name not in found or took_ns > found[name][0]:
                    found[name] = took_ns, profile
    return {name: profile for name, (_, profile) in found.items()}


def _quantile_of(profile: LatencyProfile, quantile: float, longer: float) -> float:
    """Return the quantile that is `longer` times as long as another, of single batches."""
    size = profile.batch_sizes[0]
    times = profile.quantiles_ns[size]
    time_ns = profile.quantile_ns(size, quantile) * max(1.0, longer)
    right = bisect_left(times, time_ns)
    if right == len(times):
        return QUANTILES[-1]
    if right == 0 or times[right] == time_ns:
        return max(quantile, QUANTILES[right])
    left = right - 1
    share = (time_ns - times[left]) / (times[right] - times[left])
    return max(quantile, QUANTILES[left] + share * (QUANTILES[right] - QUANTILES[left]))


def _profiles(snapshot: PlanningSnapshot) -> Iterator[LatencyProfile]:
    for of in (snapshot.profiles, *snapshot.applications.values()):
        for profiles in of.values():
            yield from (profile for profile in profiles.values() if profile.batch_sizes)
