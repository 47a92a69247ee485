"""Decides how much of the executors' time a mix of variants takes. Pure.

Requests of one variant share batches, so what one costs depends on how many gather while a
batch runs. An executor is credited only with batches that fit half of the tightest compute budget,
gathered in that same time: then a request waits for one batch at most and rides in the next.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.plans import PlanningSnapshot

_GAIN = 0.8
"""Batching pays where a request in a batch takes at most this much of one alone."""


@dataclass(frozen=True, slots=True)
class BatchTimes:
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


def batch_times(snapshot: PlanningSnapshot, quantile: float) -> dict[VariantName, BatchTimes]:
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
) -> BatchTimes:
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
    return BatchTimes(batches[0][1], tuple(batches))


def batching_pays(timing: Mapping[VariantName, BatchTimes]) -> bool:
    """Say whether full batches gain much, as on a GPU; else nothing is won in cycles of them."""
    return any(
        pooled_ns / size <= _GAIN * of.batches[0][2] / of.batches[0][0]
        for of in timing.values()
        for size, _, pooled_ns in of.batches
    )


class ExecutorPool:
    """Executors side by side that have the same variants, and what runs of them would take."""

    def __init__(
        self, snapshot: PlanningSnapshot, quantile: float, *, divisible: bool = True
    ) -> None:
        self._snapshot = snapshot
        self._quantile = quantile
        self._timings: dict[tuple[ExecutorId, ...], dict[VariantName, BatchTimes]] = {}
        everywhere = {
            frozenset(name for name, of in profiles.items() if of.quantiles_ns)
            for profiles in snapshot.profiles.values()
        }
        self.executors = tuple(snapshot.profiles) if divisible and len(everywhere) == 1 else ()
        """None, where they differ in what they have: then they cannot work apart."""
        self.all_executors = tuple(snapshot.profiles)
        self.groups = snapshot.groups
        """Those that work apart now."""

    @property
    def together(self) -> Mapping[VariantName, BatchTimes]:
        """What batches take on all there are, where everybody shares them."""
        return self.timing(tuple(self._snapshot.profiles))

    def timing(self, executors: tuple[ExecutorId, ...]) -> Mapping[VariantName, BatchTimes]:
        """Return what batches take on some of them."""
        known = self._timings.get(executors)
        if known is None:
            profiles = {executor: self._snapshot.profiles[executor] for executor in executors}
            part = replace(self._snapshot, profiles=profiles)
            known = self._timings[executors] = batch_times(part, self._quantile)
        return known
