"""Decides how intervals of an order of cameras share batches, for many cycles and prices at once.

Where batching pays, cameras of one variant should be neighbours in an order by how much time they
have. The order is cut into intervals, and each interval is given one variant. For a waiting bound
W and a cycle R (a point of a grid), a batch must hold what arrives in R, be no longer than W, and
end in time for the tightest camera of its interval; its cost is the part of R that it takes. With
a price on the cycle, dynamic programming over the cut positions finds the best division for all
grid points and prices at once. The grid is coarse, so its conditions are relaxed; the answers are
candidates for the exact test (`batch_cycle`). Pure.

O(K^3 G P + K^2 V G P) in numpy for K cut positions, V variants, G grid points and P prices; where
only divisions of the whole are wanted, O(K^2 V G P).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import VariantName
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.option_table import Bools, Floats, Ints, OptionTable

RELAXATION = 1.2
"""By so much may a cycle be exceeded, and a wait, by a candidate."""
_WAITS_MAX = 32
_CYCLES = 2
_PRICES = np.array((0.0, 1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 3.0))
"""In units of the accuracy times rate of all largest options, for one whole cycle."""

Interval = tuple[int, int, int]
"""(first cut, last cut, variant), by their numbers."""


@dataclass(frozen=True, slots=True)
class IntervalTable:
    """Sums over what is between two cuts: (K, K, V) by first cut, last cut and variant."""

    cuts: tuple[int, ...]
    """Rising positions in the order, from 0 to its length."""
    rate_hz: Floats
    value: Floats
    """Minus infinity where a camera in between cannot have the variant."""
    tightest_ns: Floats
    """Least compute budget."""
    raised: Floats
    """How many of the cameras in between have a smaller variant now."""


def order_cuts(possible: Bools, most: int) -> Ints:
    """Return where an order of cameras is cut, rising, from 0 to its length.

    Between neighbours that have no variant in common, as no interval can serve both; and at even
    steps from there on, so many at most if there are no such neighbours.

    Args:
        possible: (n, V) which variants each could have, in the order.
        most: how many steps.
    """
    count = len(possible)
    step = max(1, -(-count // most))
    foreign = ~(possible[1:] & possible[:-1]).any(axis=1)
    foreign &= possible[1:].any(axis=1) & possible[:-1].any(axis=1)
    ends = [0, *(1 + np.flatnonzero(foreign)).tolist(), count]
    inner = [at for start, end in pairwise(ends) for at in range(start, end, step)]
    return np.array([*inner, count])


def interval_sums(values: NDArray[Any], cuts: Ints) -> NDArray[Any]:
    """Return (K, K, ...) the sums of what is between two cuts of an order. O(n + K^2)."""
    sums = np.zeros((len(values) + 1, *values.shape[1:]), values.dtype)
    np.cumsum(values, axis=0, out=sums[1:])
    return np.asarray(sums[cuts][None] - sums[cuts][:, None])


def interval_minima(values: NDArray[Any], cuts: Ints, missing: float) -> NDArray[Any]:
    """Return (K, K, ...) the least of what is between two cuts; else what is missing."""
    least = np.minimum.reduceat(values, cuts[:-1], axis=0)
    out = np.full((len(cuts), len(cuts), *values.shape[1:]), missing, values.dtype)
    for first in range(len(cuts) - 1):
        out[first, first + 1 :] = np.minimum.accumulate(least[first:], axis=0)
    return out


def interval_table(of: OptionTable, order: Sequence[int], cuts: Sequence[int]) -> IntervalTable:
    """Add up what every interval of an order asks of every variant. O(n V + K^2 V)."""
    rows, at = np.array(order, np.int64), np.array(cuts)
    possible = of.possible[rows]
    value = interval_sums(np.where(possible, of.value[rows], 0.0), at)
    value[interval_sums((~possible).astype(np.int64), at) > 0] = -np.inf
    compute_ns = np.where(possible, of.compute_ns[rows], np.inf)
    return IntervalTable(
        tuple(cuts),
        interval_sums(of.rate_hz[rows], at),
        value,
        interval_minima(compute_ns, at, np.inf),
        interval_sums(of.raises[rows].astype(np.float64), at),
    )


@dataclass(frozen=True, slots=True)
class Divisions:
    """The best divisions of what is between two cuts, for each price and point of the grid.

    Arrays are (P, F, K, G): by price, first cut, last cut and grid point. F is 1 where only
    divisions that begin at the first cut were asked for, else K.
    """

    net: Floats
    """Value less price times cost; minus infinity: none."""
    value: Floats
    cost: Floats
    """Part of a cycle."""
    last_cut: Ints
    """Where its last interval begins."""
    single: "_SingleIntervals"

    def upper_bounds(self) -> Floats:
        """Return (F, K) what a division could be worth at most, as far as the grid can tell."""
        near = np.isfinite(self.net) & (self.cost <= RELAXATION)
        return np.asarray(np.where(near, self.value, -np.inf).max(axis=(0, 3)))

    def best(
        self, first: int, last: int, most: int
    ) -> Iterator[tuple[float, tuple[Interval, ...]]]:
        """Find so many distinct divisions between two cuts, by falling value."""
        where = slice(None), first, last
        # Of equal ones, the first point of the grid comes first, then the first price.
        net, values, costs = (each[where].T for each in (self.net, self.value, self.cost))
        near = np.flatnonzero(np.isfinite(net) & (costs <= RELAXATION))
        order = near[np.argsort(-values.ravel()[near], kind="stable")].tolist()
        found, seen = set[tuple[Interval, ...]](), set[tuple[float, float]]()
        for flat in order:
            point, price = divmod(flat, values.shape[1])
            value = float(values[point, price])
            # What is worth as much and costs as much is the same division, or no better.
            if (key := (value, float(costs[point, price]))) in seen:
                continue
            seen.add(key)
            intervals = self._intervals(first, last, point, price)
            if intervals not in found:
                found.add(intervals)
                yield value, intervals
                if len(found) == most:
                    return

    def _intervals(self, first: int, last: int, point: int, price: int) -> tuple[Interval, ...]:
        out: list[Interval] = []
        while last > first:
            cut = int(self.last_cut[price, first, last, point])
            out.append((cut, last, self.single.variant_of(cut, last, point, price)))
            last = cut
        return tuple(reversed(out))


@dataclass(frozen=True, slots=True)
class _SingleIntervals:
    """The best variant of every interval, all of it in one batch: (P, N, G) for N intervals.

    Intervals are numbered by rising first and then last cut, so those of one first cut are a slice.
    """

    count: int
    """How many cuts there are."""
    net: Floats
    value: Floats
    cost: Floats
    variant: Ints

    def beginning_at(self, cut: int) -> slice:
        """Return the numbers of the intervals that begin at a cut, and end at each after it."""
        start = cut * self.count - cut * (cut + 1) // 2
        return slice(start, start + self.count - 1 - cut)

    def variant_of(self, first: int, last: int, point: int, price: int) -> int:
        """Return the variant of one interval."""
        number = self.beginning_at(first).start + last - first - 1
        return int(self.variant[price, number, point])


def divisions(
    of: IntervalTable,
    names: Sequence[VariantName],
    timing: Mapping[VariantName, BatchTimes],
    executors: int,
    limits: tuple[float, Floats],
    *,
    only_whole: bool = False,
) -> Divisions:
    """Divide what is between all pairs of cuts, for every grid point and price.

    Args:
        of: what the intervals ask.
        names: the variants, by their numbers.
        timing: what batches take on these executors.
        executors: how many serve them, side by side.
        limits: the part of their time that may be used, and the prices of a cycle, (P,).
        only_whole: only divisions that begin at the first cut are wanted.
    """
    grid = _grid(of, names, timing, executors)
    single = _single_intervals(of, names, timing, grid, limits)
    return _joined(single, 1 if only_whole else single.count)


def prices_of(table: OptionTable) -> Floats:
    """Return the prices of a cycle that are tried, (P,)."""
    return np.asarray(_PRICES * max(1e-9, table.accuracy_scale))


def _grid(
    of: IntervalTable,
    names: Sequence[VariantName],
    timing: Mapping[VariantName, BatchTimes],
    executors: int,
) -> tuple[Floats, Floats]:
    """Return waiting bounds and cycles, (G,): side by side, executors begin a cycle more often."""
    shortest = min(timing[name].single_ns for name in names)
    finite = of.tightest_ns[np.isfinite(of.tightest_ns)]
    longest = max(1.1 * shortest, float(finite.max(initial=0.0)))
    steps = math.ceil(math.log(longest / shortest) / math.log(RELAXATION))
    waits = np.geomspace(shortest, longest, min(max(2, 1 + steps), _WAITS_MAX))
    parts = np.linspace(1, executors, min(_CYCLES, executors))
    wait_ns, per_wait = (axis.ravel() for axis in np.meshgrid(waits, parts))
    return wait_ns, wait_ns / per_wait


def _single_intervals(
    of: IntervalTable,
    names: Sequence[VariantName],
    timing: Mapping[VariantName, BatchTimes],
    grid: tuple[Floats, Floats],
    limits: tuple[float, Floats],
) -> _SingleIntervals:
    """Return the best variant for each pair of cuts, all between them in one interval."""
    prices = np.maximum(limits[1], 1e-15)[:, None, None]
    count, variants = len(of.cuts), len(names)
    firsts, lasts = np.triu_indices(count, 1)
    worth = of.value[firsts, lasts].T  # (V, N)
    costs = np.zeros((*worth.shape, len(grid[0])))
    shape = len(prices), *costs.shape[1:]
    best, variant = np.full(shape, -np.inf), np.zeros(shape, np.int64)
    for at in range(variants):
        rows = np.flatnonzero(np.isfinite(worth[at]))
        if not len(rows):
            continue
        cost = _costs(of, (firsts[rows], lasts[rows], at), timing[names[at]], grid, limits[0])
        costs[at, rows] = cost
        net = prices * cost
        np.subtract(worth[at, rows][:, None], net, out=net)
        # All intervals are changed in place; a part of them is copied and put back.
        where = (slice(None), rows) if len(rows) < len(firsts) else ...
        held, number = best[where], variant[where]
        np.copyto(number, at, where=net > held)
        np.maximum(held, net, out=held)
        if where is not ...:
            best[where], variant[where] = held, number
    # As flat indices: (variant, interval) and (variant, interval, point).
    interval = np.arange(len(firsts))[:, None]
    point = np.arange(costs[0].size).reshape(costs[0].shape)
    value = worth.ravel().take(variant * len(firsts) + interval)
    cost = costs.ravel().take(variant * point.size + point)
    return _SingleIntervals(count, best, value, cost, variant)


def _costs(
    of: IntervalTable,
    where: tuple[Ints, Ints, int],
    timing: BatchTimes,
    grid: tuple[Floats, Floats],
    utilisation_max: float,
) -> Floats:
    """Return (N, G) parts of a cycle that intervals take in a variant; infinite: not possible."""
    wait_ns, cycle_ns = grid
    sizes, longest_ns, pooled_ns = (np.array(x, float) for x in zip(*timing.batches, strict=True))
    rate, tightest_ns = of.rate_hz[where][:, None] / 1e9, of.tightest_ns[where][:, None]
    batch = sizes.searchsorted(rate * cycle_ns - 1e-9)
    own_ns = np.append(longest_ns, np.inf).take(batch)  # no batch is large enough: never
    holds = own_ns <= wait_ns * RELAXATION
    holds &= wait_ns / RELAXATION + own_ns <= tightest_ns
    least_ns = np.minimum.accumulate(pooled_ns / sizes)
    largest = np.maximum(longest_ns.searchsorted(tightest_ns, "right") - 1, 0)
    utilisation = rate * least_ns[largest] / utilisation_max
    cost = np.append(pooled_ns, np.inf).take(batch) / cycle_ns
    return np.asarray(np.where(holds, np.maximum(cost, utilisation), np.inf))


def _joined(single: _SingleIntervals, starts: int) -> Divisions:
    """Return the best divisions into any number of intervals that begin at one of the first cuts.

    Cut after cut, all that ends there is continued by one interval.
    """
    prices, _, points = single.net.shape
    shape = prices, starts, single.count, points
    net, value, cost = np.full(shape, -np.inf), np.zeros(shape), np.zeros(shape)
    last_cut = np.zeros(shape, np.int64)
    for first in range(min(starts, single.count - 1)):
        own = single.beginning_at(first)
        net[:, first, first + 1 :] = single.net[:, own]
        value[:, first, first + 1 :] = single.value[:, own]
        cost[:, first, first + 1 :] = single.cost[:, own]
        last_cut[:, first, first + 1 :] = first
    for cut in range(1, single.count - 1):
        begins, ends = slice(0, min(cut, starts)), slice(cut + 1, None)
        own = single.beginning_at(cut)
        joined = net[:, begins, cut, None] + single.net[:, None, own]
        better = joined > net[:, begins, ends]
        np.copyto(net[:, begins, ends], joined, where=better)
        for of, more in (value, single.value), (cost, single.cost):
            np.copyto(
                of[:, begins, ends], of[:, begins, cut, None] + more[:, None, own], where=better
            )
        np.copyto(last_cut[:, begins, ends], cut, where=better)
    return Divisions(net, value, cost, last_cut, single)
