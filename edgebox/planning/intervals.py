"""Decides how intervals of an order of cameras share batches, for many cycles and prices at once.

Where batching pays, cameras of one variant should be neighbours in an order by how much time they
have. The order is cut into intervals, and each interval is given one variant. For a waiting bound
W and a cycle R (a point of a grid), a batch must hold what arrives in R, be no longer than W, and
end in time for the tightest camera of its interval; its cost is the part of R that it takes. With
a price on the cycle, dynamic programming over the cut positions finds the best division for all
grid points and prices at once. The grid is coarse, so its conditions are relaxed; the answers are
candidates for the exact test (`batch_cycle`). Pure.

O(K^3 G P + K^2 V G P) in numpy for K cut positions, V variants, G grid points and P prices.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgebox.domain.model_family import VariantName
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.option_table import Floats, Ints, OptionTable

RELAXATION = 1.2
"""By so much may a cycle be exceeded, and a wait, by a candidate."""
_WAITS_MAX = 32
_CYCLES = 4
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


def interval_table(of: OptionTable, order: Sequence[int], cuts: Sequence[int]) -> IntervalTable:
    """Add up what every interval of an order asks of every variant. O(n V + K^2 V)."""
    rows = np.array(order, np.int64)
    possible, starts = of.possible[rows], np.array(cuts)

    def summed(values: Floats) -> Floats:
        sums = np.zeros((len(rows) + 1, values.shape[1]))
        np.cumsum(values, axis=0, out=sums[1:])
        at_cuts = sums[starts]
        return np.asarray(at_cuts[None, :, :] - at_cuts[:, None, :])

    value = summed(np.where(possible, of.value[rows], 0.0))
    value[summed((~possible).astype(np.float64)) > 0.5] = -np.inf
    least = np.minimum.reduceat(
        np.where(possible, of.compute_ns[rows], np.inf), starts[:-1], axis=0
    )
    tightest = np.full(value.shape, np.inf)
    for first in range(len(cuts) - 1):
        tightest[first, first + 1 :] = np.minimum.accumulate(least[first:], axis=0)
    raised = summed(of.raises[rows].astype(np.float64))
    return IntervalTable(tuple(cuts), summed(of.rate_hz[rows]), value, tightest, raised)


@dataclass(frozen=True, slots=True)
class Divisions:
    """The best division of what is between two cuts: (K, K, G, P), for grid points and prices."""

    net: Floats
    """Value less price times cost; minus infinity: none."""
    value: Floats
    cost: Floats
    """Part of a cycle."""
    last_cut: Ints
    """Where its last interval begins."""
    variant: Ints
    """What would run if all of it were one interval."""

    def upper_bounds(self) -> Floats:
        """Return (K, K) what a division could be worth at most, as far as the grid can tell."""
        near = np.isfinite(self.net) & (self.cost <= RELAXATION)
        return np.asarray(np.where(near, self.value, -np.inf).max(axis=(2, 3)))

    def best(self, first: int, last: int, most: int) -> list[tuple[float, tuple[Interval, ...]]]:
        """Return so many distinct divisions between two cuts, by falling value."""
        near = np.isfinite(self.net[first, last]) & (self.cost[first, last] <= RELAXATION)
        values = np.where(near, self.value[first, last], -np.inf)
        found: dict[tuple[Interval, ...], float] = {}
        costs, seen = self.cost[first, last], set[tuple[float, float]]()
        for flat in np.argsort(-values, axis=None, kind="stable").tolist():
            point, price = divmod(flat, values.shape[1])
            value = float(values[point, price])
            if not np.isfinite(value) or len(found) == most:
                break
            # What is worth as much and costs as much is the same division, or no better.
            if (key := (value, float(costs[point, price]))) not in seen:
                seen.add(key)
                found.setdefault(self._intervals(first, last, point, price), value)
        return [(value, intervals) for intervals, value in found.items()]

    def _intervals(self, first: int, last: int, point: int, price: int) -> tuple[Interval, ...]:
        out: list[Interval] = []
        while last > first:
            cut = int(self.last_cut[first, last, point, price])
            out.append((cut, last, int(self.variant[cut, last, point, price])))
            last = cut
        return tuple(reversed(out))


def divisions(
    of: IntervalTable,
    names: Sequence[VariantName],
    timing: Mapping[VariantName, BatchTimes],
    executors: int,
    limits: tuple[float, Floats],
) -> Divisions:
    """Divide what is between all pairs of cuts, for every grid point and price.

    Args:
        of: what the intervals ask.
        names: the variants, by their numbers.
        timing: what batches take on these executors.
        executors: how many serve them, side by side.
        limits: the part of their time that may be used, and the prices of a cycle, (P,).
    """
    utilisation_max, prices = limits
    grid = _grid(of, names, timing, executors)
    cost = _costs(of, names, timing, grid, utilisation_max)
    return _joined(_single_intervals(of, cost, prices))


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


def _costs(
    of: IntervalTable,
    names: Sequence[VariantName],
    timing: Mapping[VariantName, BatchTimes],
    grid: tuple[Floats, Floats],
    utilisation_max: float,
) -> Floats:
    """Return (K, K, V, G) parts of a cycle that intervals take; infinite: not in time."""
    wait_ns, cycle_ns = grid
    out = np.full((*of.value.shape, len(wait_ns)), np.inf)
    for at, name in enumerate(names):
        sizes, longest_ns, pooled_ns = (
            np.array(x, float) for x in zip(*timing[name].batches, strict=True)
        )
        rate = of.rate_hz[:, :, at, None] / 1e9
        tightest_ns = of.tightest_ns[:, :, at, None]
        batch = np.searchsorted(sizes, rate * cycle_ns - 1e-9)
        holds = np.isfinite(of.value[:, :, at, None]) & (batch < len(sizes))
        batch = np.minimum(batch, len(sizes) - 1)
        holds &= longest_ns[batch] <= wait_ns * RELAXATION
        holds &= wait_ns / RELAXATION + longest_ns[batch] <= tightest_ns
        least_ns = np.minimum.accumulate(pooled_ns / sizes)
        largest = np.clip(np.searchsorted(longest_ns, tightest_ns, "right") - 1, 0, None)
        utilisation = rate * least_ns[largest] / utilisation_max
        out[:, :, at] = np.where(
            holds, np.maximum(pooled_ns[batch] / cycle_ns, utilisation), np.inf
        )
    return out


def _single_intervals(of: IntervalTable, cost: Floats, prices: Floats) -> Divisions:
    """Return the best variant for each pair of cuts, all between them in one interval."""
    count, points = len(of.cuts), cost.shape[3]
    shape = count, count, points, len(prices)
    single = Divisions(
        np.full(shape, -np.inf),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
    )
    at_point = np.arange(points)[:, None]
    for first in range(count - 1):
        for last in range(first + 1, count):
            usable = np.flatnonzero(np.isfinite(cost[first, last]).any(axis=1))
            if not len(usable):
                continue
            costs, values = cost[first, last, usable], of.value[first, last, usable]
            finite = np.where(np.isfinite(costs), costs, 1e18)
            net = values[:, None, None] - finite[:, :, None] * np.maximum(prices, 1e-15)
            best = net.argmax(axis=0)
            taken = costs[best, at_point]
            single.net[first, last] = np.where(
                np.isfinite(taken), np.take_along_axis(net, best[None], 0)[0], -np.inf
            )
            single.value[first, last] = values[best]
            single.cost[first, last] = np.where(np.isfinite(taken), taken, 0.0)
            single.last_cut[first, last] = first
            single.variant[first, last] = usable[best]
    return single


def _joined(single: Divisions) -> Divisions:
    """Return the best divisions into any number of intervals."""
    net, value, cost = single.net.copy(), single.value.copy(), single.cost.copy()
    last_cut = single.last_cut.copy()
    count = len(net)
    point, price = np.indices(net.shape[2:])
    for length in range(2, count):
        for first in range(count - length):
            last = first + length
            cuts = np.arange(first + 1, last)
            both = net[first, cuts] + single.net[cuts, last]
            best = both.argmax(axis=0)
            joined = np.take_along_axis(both, best[None], 0)[0]
            better = joined > net[first, last]
            if not better.any():
                continue
            cut = cuts[best]
            before, after = (first, cut, point, price), (cut, last, point, price)
            net[first, last] = np.where(better, joined, net[first, last])
            for total, part in ((value, single.value), (cost, single.cost)):
                total[first, last] = np.where(
                    better, total[before] + part[after], total[first, last]
                )
            last_cut[first, last] = np.where(better, cut, last_cut[first, last])
    return Divisions(net, value, cost, last_cut, single.variant)
