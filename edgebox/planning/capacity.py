"""Decides how much of the executors' time a mix of variants takes. Pure.

Whether a frame is in time depends on a high quantile of its batches' times. What part of the
executors' time they take depends on the mean: short batches make up for a long one, as long as a
part of the time is free.

Requests of one variant share batches, so what one costs depends on how many gather while a
batch runs. An executor is credited only with batches that fit half of the tightest compute budget,
gathered in that same time: then a request waits for one batch at most and rides in the next.

Where fewer batches run at once on a device than it has executors, an executor counts with the share
of the time in which it may run.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edgebox.domain.model_family import ExecutorId, VariantName
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
    means_ns: tuple[float, ...] = ()
    """The last of these as a mean, not a high quantile; empty: the same."""

    @property
    def usual_ns(self) -> tuple[float, ...]:
        """What a batch of each size takes of the executors' time on average."""
        return self.means_ns or tuple(pooled_ns for _, _, pooled_ns in self.batches)

    def share(self, rate_hz: float, window_ns: int) -> float:
        """Return the part of the executors' time that this many requests per second take."""
        gathered = max(1.0, rate_hz * window_ns / 1e9)
        return rate_hz * self.request_ns(gathered, window_ns) / 1e9

    def request_ns(self, gathered: float | None, window_ns: int) -> float:
        """Return the least time that one request takes in batches no longer than a window.

        Args:
            gathered: how many requests there are for a batch; None: enough for any.
            window_ns: the longest batch that is credited.
        """
        least_ns = math.inf
        for (size, slowest_ns, _), usual_ns in zip(self.batches, self.usual_ns, strict=True):
            if slowest_ns > window_ns and least_ns < math.inf:
                break  # larger batches take longer
            least_ns = min(least_ns, usual_ns / min(size, gathered or size))
        return least_ns


class _Time(NamedTuple):
    """What a batch takes on one executor."""

    high_ns: float
    mean_ns: float
    share: float = 1.0
    """The share of the time in which the executor may run a batch."""


_Times = Mapping[VariantName, Mapping[int, _Time]]
"""What batches take on one executor, by variant and size."""


def batch_times(snapshot: PlanningSnapshot, quantile: float) -> dict[VariantName, BatchTimes]:
    """Gather what each loaded variant takes at this quantile of its profiles."""
    return _pooled(_times_on(snapshot, executor, quantile) for executor in snapshot.profiles)


def _times_on(snapshot: PlanningSnapshot, executor: ExecutorId, quantile: float) -> _Times:
    """Return what batches of each variant take on an executor, slowdown included."""
    slowdown = snapshot.slowdown.get(executor, 1.0)
    found = {}
    for name, profile in snapshot.profiles[executor].items():
        factor = slowdown * profile.slowed(snapshot.others)
        sizes = profile.batch_sizes
        times = {
            size: _Time(
                max(1.0, profile.quantile_ns(size, quantile) * factor),
                max(1.0, profile.mean_ns(size) * factor),
                snapshot.executor_shares.get(executor, 1.0),
            )
            for size in sizes
        }
        if times:
            found[name] = times
    return found


def _pace(of: _Times) -> tuple[float, Sequence[tuple[VariantName, Sequence[tuple[int, _Time]]]]]:
    """Return what orders executors by how fast they are; equal only for those that are alike."""
    times = sorted((name, sorted(by_size.items())) for name, by_size in of.items())
    return sum(by_size[0][1].high_ns for _, by_size in times), times


def _pooled(on: Iterable[_Times]) -> dict[VariantName, BatchTimes]:
    """Return what batches take on executors together."""
    where: dict[VariantName, list[Mapping[int, _Time]]] = {}
    for times in on:
        for name, of in times.items():
            where.setdefault(name, []).append(of)
    return {name: _timing(holders) for name, holders in where.items()}


def _timing(on: Sequence[Mapping[int, _Time]]) -> BatchTimes:
    """Return what batches of one variant take on the executors that have it."""
    largest = min(max(of) for of in on)
    sizes = sorted({size for of in on for size in of if size <= largest})
    batches, means_ns = [], []
    for size in sizes:
        times = [_time_of(of, size) for of in on]
        slowest_ns = round(max(time.high_ns for time in times))
        batches.append((size, slowest_ns, 1 / sum(time.share / time.high_ns for time in times)))
        means_ns.append(1 / sum(time.share / time.mean_ns for time in times))
    return BatchTimes(batches[0][1], tuple(batches), tuple(means_ns))


def _time_of(of: Mapping[int, _Time], size: int) -> _Time:
    """Return the time of a batch of a size: that of the next larger one that was measured."""
    return of[size] if size in of else of[min(each for each in of if each >= size)]


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
        self._times = {
            executor: _times_on(snapshot, executor, quantile) for executor in snapshot.profiles
        }
        all_times = list(self._times.values())
        self._kinds = {executor: all_times.index(of) for executor, of in self._times.items()}
        """Executors of one number take the same times."""
        self._timings: dict[tuple[int, ...], dict[VariantName, BatchTimes]] = {}
        everywhere = {frozenset(times) for times in self._times.values()}
        divisible = divisible and len(everywhere) == 1 and not snapshot.executor_shares
        paces = {executor: _pace(of) for executor, of in self._times.items()}
        self.executors = tuple(sorted(paces, key=lambda each: paces[each])) if divisible else ()
        """The fastest first, so that those that are alike are neighbours, in whatever order they
        are listed. None, where they differ in what they have, or where they take turns on their
        device: then they cannot work apart."""
        self.all_executors = tuple(snapshot.profiles)
        self.groups = snapshot.groups
        """The groups that work separately now."""

    @property
    def together(self) -> Mapping[VariantName, BatchTimes]:
        """What batches take on all there are, where everybody shares them."""
        return self.timing(self.all_executors)

    def kinds(self, executors: Iterable[ExecutorId]) -> tuple[int, ...]:
        """Return numbers of some of them; those of one number take the same times."""
        return tuple(self._kinds[executor] for executor in executors)

    def timing(self, executors: tuple[ExecutorId, ...]) -> Mapping[VariantName, BatchTimes]:
        """Return what batches take on some of them."""
        kinds = self.kinds(executors)
        known = self._timings.get(kinds)
        if known is None:
            known = _pooled(self._times[executor] for executor in executors)
            self._timings[kinds] = known
        return known
