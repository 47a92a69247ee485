"""Decides how much of the executors' time a mix of variants takes. Pure.

Requests of one variant share batches, so what one costs depends on how many gather while a
batch runs. An executor is credited only with batches that fit half of the tightest compute budget,
gathered in that same time: then a request waits for one batch at most and rides in the next.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from edgebox.domain.models import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.plans import PlanningSnapshot


@dataclass(frozen=True, slots=True)
class Timing:
    """What batches of one variant take, slowdown included."""

    single_ns: int
    """The smallest batch on the slowest executor that has the variant: nobody chooses which
    executor serves a frame, so the slowest is the worst case."""
    batches: tuple[tuple[int, int, float], ...]
    """(size, time on the slowest executor, time as one of equals would take that together do
    what these executors do), per batch size."""

    def share(self, rate_hz: float, window_ns: int) -> float:
        """Return the part of the executors' time that this many requests per second take."""
        gathered = max(1.0, rate_hz * window_ns / 1e9)
        per_request_ns = min(
            pooled_ns / min(size, gathered)
            for at, (size, slowest_ns, pooled_ns) in enumerate(self.batches)
            if at == 0 or slowest_ns <= window_ns
        )
        return rate_hz * per_request_ns / 1e9


def timings(snapshot: PlanningSnapshot, quantile: float) -> dict[VariantName, Timing]:
    """Gather what each loaded variant takes at this quantile of its profiles."""
    where: dict[VariantName, list[tuple[ExecutorId, LatencyProfile]]] = {}
    for executor, profiles in snapshot.profiles.items():
        for name, profile in profiles.items():
            if profile.quantiles_ns:
                where.setdefault(name, []).append((executor, profile))
    return {name: _timing(on, snapshot, quantile) for name, on in where.items()}


def _timing(
    holders: Iterable[tuple[ExecutorId, LatencyProfile]],
    snapshot: PlanningSnapshot,
    quantile: float,
) -> Timing:
    on = [
        (profile, snapshot.slowdown.get(executor, 1.0) * profile.slowed(snapshot.others))
        for executor, profile in holders
    ]
    largest = min(profile.batch_sizes[-1] for profile, _ in on)
    sizes = sorted({size for profile, _ in on for size in profile.batch_sizes if size <= largest})
    batches = []
    for size in sizes:
        times = [max(1.0, p.quantile_ns(size, quantile) * factor) for p, factor in on]
        batches.append((size, round(max(times)), 1 / sum(1 / time for time in times)))
    return Timing(batches[0][1], tuple(batches))


class Bench:
    """Executors side by side that have the same variants, and what runs of them would take."""

    def __init__(self, snapshot: PlanningSnapshot, quantile: float) -> None:
        self._snapshot = snapshot
        self._quantile = quantile
        self._timings: dict[tuple[ExecutorId, ...], dict[VariantName, Timing]] = {}
        everywhere = {frozenset(profiles) for profiles in snapshot.profiles.values()}
        self.executors = tuple(snapshot.profiles) if len(everywhere) == 1 else ()
        """None, where they differ in what they have: then they cannot work apart."""
        self.groups = snapshot.groups
        """Those that work apart now."""

    @property
    def together(self) -> Mapping[VariantName, Timing]:
        """What batches take on all there are, where everybody shares them."""
        return self.timing(tuple(self._snapshot.profiles))

    def timing(self, executors: tuple[ExecutorId, ...]) -> Mapping[VariantName, Timing]:
        """Return what batches take on some of them."""
        known = self._timings.get(executors)
        if known is None:
            profiles = {executor: self._snapshot.profiles[executor] for executor in executors}
            part = replace(self._snapshot, profiles=profiles)
            known = self._timings[executors] = timings(part, self._quantile)
        return known
