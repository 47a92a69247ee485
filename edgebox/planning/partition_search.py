"""Decides how executors are divided among cameras, and who shares which batches. Pure.

Cameras are put in order, by how tight they are or by how much they could have at best, and the
order is cut. `intervals` bounds what every interval of cuts is worth on every number of executors;
dynamic programming over cuts and executors finds the division with the largest bound. Its groups
are tested exactly, their bounds replaced by what they really are worth, and the search goes on
until the best division consists of tested groups alone (best first).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.planning.allocation import BEST_EFFORT_SERVICE, Allocation, option_value
from edgebox.planning.batch_cycle import VariantDemand
from edgebox.planning.capacity import BatchTimes, ExecutorPool
from edgebox.planning.cycle_allocation import CycleAllocation, cycle_feasible
from edgebox.planning.intervals import (
    Divisions,
    Interval,
    IntervalTable,
    divisions,
    interval_table,
    order_cuts,
    prices_of,
)
from edgebox.planning.option_table import Floats, OptionTable, option_table
from edgebox.planning.options import CameraOptions
from edgebox.planning.partition import Part, PartitionedAllocation, dedicated_part, in_place
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.uniform_parts import directions, much_alike, uniform_parts

_CUTS_MAX = 13
"""So many even steps are made of an order at most."""
_CUTS_LIMIT = 64
"""An order that must be cut at more places than this is left out if the other has fewer."""
_TESTED_MAX = 40
"""So many candidates of one group are tested exactly."""
_FILL_TESTS_MAX = 80
"""So many single steps up are tested at the end."""
_SERVICE_VALUE = 10.0
"""The service of one camera counts so many times the accuracy times rate of all."""
_ROUNDS_MAX = 60
"""So many divisions are looked at, best first, for one order and set of cuts."""

_Order = tuple[int, ...]
"""The cameras, by their numbers."""
GroupKey = tuple[int, int, int, int]
"""(first executor, number of executors, first cut, last cut)."""


@dataclass(frozen=True, slots=True)
class _Found:
    value: float
    parts: tuple[Part, ...]


def best_partition(
    cameras: Sequence[CameraOptions],
    dedicated: Sequence[CameraOptions],
    pool: ExecutorPool,
    parameters: PlanningParameters,
    table: OptionTable | None = None,
) -> Allocation | None:
    """Return the best way found to serve cameras in full batches; None: none is feasible.

    Args:
        cameras: what each could be given on executors that it shares; at least one.
        dedicated: what each could be given with an executor to itself; empty: none can have one.
        pool: the executors.
        parameters: the tunables.
        table: the options of `cameras` as arrays; None: not made yet.
    """
    table = table or option_table(cameras, parameters.hysteresis_ratio)
    search = _Search(cameras, dedicated, pool, parameters, table)
    orders = _orders(cameras)
    cut = search.cut(orders)
    found = [way for order, cuts in cut for way in search.in_order(order, cuts)]
    ways = [max(found, key=lambda each: each.value).parts] if found else []
    undivided = [each for each in found if len(each.parts) == 1]
    if undivided and len(ways[0]) > 1:
        # One group has more to fill, and may be the best afterwards.
        ways.append(max(undivided, key=lambda each: each.value).parts)
    if len(pool.executors) > 1:
        ways += uniform_parts(
            cameras, dedicated, pool, parameters, table=search.table, orders=orders
        )
    if not ways:
        return None
    filled = [_all_filled(parts, parameters) for parts in ways]
    best = max(filled, key=lambda parts: sum(map(search.value_of, parts)))
    if len(best) > 1:
        return PartitionedAllocation(cameras, dedicated, in_place(best, pool, parameters), pool)
    return best[0].allocation


def _all_filled(parts: Sequence[Part], parameters: PlanningParameters) -> tuple[Part, ...]:
    """Let single cameras rise in each group, without the variants of the others."""
    out = [*parts]
    for at in range(len(out)):
        others = frozenset(v for each in (*out[:at], *out[at + 1 :]) for v in each.variants)
        out[at] = _filled(out[at], others, parameters)
    return tuple(out)


def _filled(part: Part, excluded: frozenset[VariantName], parameters: PlanningParameters) -> Part:
    """Let single cameras of a group rise, the worst off first, as long as any can.

    They rise by one size or to one in use. Prices find no plan between two on the convex hull of
    value and cost, and cuts are few: this fills what they leave over.
    """
    if not isinstance(part.allocation, CycleAllocation):
        return part
    allocation, tests = part.allocation.copy(), _FILL_TESTS_MAX
    risen = True
    while risen and tests > 0:
        risen = False
        used = {option.variant.name for option in allocation.chosen}
        order = sorted(
            range(len(allocation.cameras)),
            key=lambda at: option_value(allocation.cameras[at], allocation.chosen_of(at), 1.0),
        )
        for camera in order:
            has, options = allocation.at[camera], allocation.cameras[camera].options
            for to in range(len(options) - 1, has, -1):
                name = options[to].variant.name
                if tests <= 0 or name in excluded or (name not in used and to != has + 1):
                    continue
                tests -= 1
                if allocation.allows(camera, options[to], parameters):
                    allocation.rise(camera, to)
                    risen = True
                    break
    return replace(part, allocation=allocation)


def _orders(cameras: Sequence[CameraOptions]) -> list[_Order]:
    """Return the cameras by family and compute budget, and by family and largest variant.

    Those that are best effort already come first: nothing depends on their deadlines.
    """

    def tightness(at: int) -> tuple[bool, str, int, int]:
        of = cameras[at]
        smallest, largest = of.options[0], of.options[-1]
        return (
            of.served,
            smallest.variant.family,
            smallest.budget.compute_ns,
            largest.variant.pixels,
        )

    def ambition(at: int) -> tuple[bool, str, int, int]:
        served, family, compute_ns, pixels = tightness(at)
        return served, family, pixels, compute_ns

    numbers = range(len(cameras))
    return list(dict.fromkeys(tuple(sorted(numbers, key=key)) for key in (tightness, ambition)))


class _Search:
    """What is common to all orders of one box."""

    def __init__(
        self,
        cameras: Sequence[CameraOptions],
        dedicated: Sequence[CameraOptions],
        pool: ExecutorPool,
        parameters: PlanningParameters,
        table: OptionTable,
    ) -> None:
        self.cameras, self.dedicated = cameras, dedicated
        self.pool, self.parameters = pool, parameters
        self.table = table
        self.prices = prices_of(self.table)
        self.executors = pool.executors or pool.all_executors
        self.divisible = bool(pool.executors)
        self.directions = directions(pool)
        share = parameters.upgrade_share if self.table.raises.any() else 1.0
        self.utilisation_max = parameters.cycle_utilisation_max * share

    def value_of(self, part: Part) -> float:
        """Return what a group is worth.

        Service comes first: a camera that is in time only with an executor to itself counts more
        than all accuracy.
        """
        gained = part.allocation.service
        for at in part.members:
            of = self.cameras[at]
            share = of.options[0].rate_hz / of.snapshot.camera.rate_hz
            gained -= share * (1.0 if of.served else BEST_EFFORT_SERVICE)
        value = part.allocation.value(self.parameters.hysteresis_ratio)
        return value + _SERVICE_VALUE * gained * self.table.accuracy_scale

    def cut(self, orders: Sequence[_Order]) -> list[tuple[_Order, tuple[int, ...]]]:
        """Return orders and where each may be cut, without those that have far too many cuts.

        Neighbours in the first order may have no variant in common, one after the other. Time and
        memory grow with the square of the cuts. The second order has a few for each variant.
        """
        possible = self.table.possible
        cuts = [tuple(order_cuts(possible[[*each]], _CUTS_MAX).tolist()) for each in orders]
        most = max(_CUTS_LIMIT, min(map(len, cuts)))
        return [(order, at) for order, at in zip(orders, cuts, strict=True) if len(at) <= most]

    def in_order(self, order: _Order, cuts: tuple[int, ...]) -> list[_Found]:
        """Return the best division of an order that may be cut there, and the best of one group."""
        ways = _InOrder(self, order, cuts)
        best = ways.best()
        if best is None or len(best.parts) == 1:
            return [] if best is None else [best]
        undivided = ways.undivided()
        return [best] if undivided is None else [best, undivided]


@dataclass(slots=True)
class _InOrder:
    """One order of the cameras, and where it may be cut."""

    of: _Search
    order: _Order
    cuts: tuple[int, ...]
    bounds: dict[tuple[int, int], Floats] = field(default_factory=dict)
    """By first executor and number of executors: (K, K) what a group is worth at most."""
    candidates: dict[tuple[int, int], Divisions] = field(default_factory=dict)
    tested: dict[GroupKey, tuple[float, Part] | None] = field(default_factory=dict)
    sums: IntervalTable = field(init=False)
    dedicated: dict[tuple[int, int], float] = field(init=False)

    def __post_init__(self) -> None:
        """Add up what all intervals ask."""
        self.dedicated = self._dedicated_values()
        self.sums = interval_table(self.of.table, self.order, self.cuts)

    def best(self) -> _Found | None:
        """Return the best division whose groups are feasible and have no variant in common."""
        self._bound()
        best: _Found | None = None
        for _ in range(_ROUNDS_MAX):
            hoped = self._best_by_bounds()
            if hoped is None or (best is not None and hoped[0] <= best.value * (1 + 1e-9)):
                break
            untested = [key for key in hoped[1] if key not in self.tested]
            for key in untested:
                found = self._tested(key, frozenset())
                self.tested[key] = found
                self._set(key, -np.inf if found is None else found[0])
            if untested:
                continue
            found_now, clash = self._joined(hoped[1])
            if found_now is not None and (best is None or found_now.value > best.value):
                best = found_now
            if clash is None:
                break
            self._set(*clash)
        return best

    def undivided(self) -> _Found | None:
        """Return the best that all executors do together, after `best`; None: nothing."""
        key = 0, len(self.of.executors), 0, len(self.cuts) - 1
        found = self.tested[key] if key in self.tested else self._tested(key, frozenset())
        return None if found is None else _Found(found[0], (found[1],))

    def _bound(self) -> None:
        total = len(self.of.executors)
        counts = range(1, total + 1) if self.of.divisible else [total]
        for count in counts:
            like: Mapping[VariantName, BatchTimes] | None = None
            for first in range(total - count + 1):
                timing = self._timing(first, count)
                # Executors that differ a little share candidates; the exact test tells them apart.
                if like is None or not much_alike(like, timing):
                    like, (found, bounds) = timing, self._divisions(first, count)
                self.candidates[first, count] = found
                self.bounds[first, count] = bounds.copy()
                self._bound_dedicated(first, count)

    def _divisions(self, first: int, count: int) -> tuple[Divisions, Floats]:
        """Return the candidates of some executors for all cuts, and (K, K) what each is worth."""
        whole = count == len(self.of.executors)  # nothing is before it
        limits = self.of.utilisation_max, self.of.prices
        timing, names = self._timing(first, count), self.of.table.names
        found = divisions(self.sums, names, timing, count, limits, only_whole=whole)
        bounds = np.full((len(self.cuts), len(self.cuts)), -np.inf)
        bounds[: 1 if whole else None] = found.upper_bounds()
        return found, bounds

    def _bound_dedicated(self, first: int, count: int) -> None:
        """Raise the bounds of groups that have an executor for each camera."""
        bound = self.bounds[first, count]
        for (start, end), value in self.dedicated.items():
            if self.cuts[end] - self.cuts[start] <= count:
                bound[start, end] = max(bound[start, end], value)

    def _dedicated_values(self) -> dict[tuple[int, int], float]:
        """Return what groups are worth that have an executor for each camera, by their cuts."""
        found: dict[tuple[int, int], float] = {}
        if self.of.dedicated:
            for start, end in combinations(range(len(self.cuts)), 2):
                count = self.cuts[end] - self.cuts[start]
                if count <= len(self.of.executors):
                    part = self._dedicated((0, count, start, end), frozenset())
                    if part is not None:
                        found[start, end] = self.of.value_of(part)
        return found

    def _timing(self, first: int, count: int) -> Mapping[VariantName, BatchTimes]:
        return self.of.pool.timing(self._on(first, count))

    def _on(self, first: int, count: int) -> tuple[ExecutorId, ...]:
        return self.of.executors[first : first + count]

    def _set(self, key: GroupKey, bound: float) -> None:
        first, count, start, end = key
        self.bounds[first, count][start, end] = bound

    def _best_by_bounds(self) -> tuple[float, tuple[GroupKey, ...]] | None:
        """Return the division of cameras and executors with the largest bound."""
        total, last = len(self.of.executors), len(self.cuts) - 1
        if not self.of.divisible:
            bound = float(self.bounds[0, total][0, last])
            return (bound, ((0, total, 0, last),)) if np.isfinite(bound) else None
        found = [self._best_from(slowest_first=of) for of in self.of.directions]
        return max(found, key=lambda each: -np.inf if each is None else each[0])

    def _best_from(self, *, slowest_first: bool) -> tuple[float, tuple[GroupKey, ...]] | None:
        """Return the same where the first cameras have the fastest executors, or the slowest."""
        total, last = len(self.of.executors), len(self.cuts) - 1
        best = np.full((total + 1, last + 1), -np.inf)  # by executors used, and cut
        best[0, 0] = 0.0
        before = np.zeros((total + 1, last + 1), np.int64)

        def group(first: int, used: int) -> tuple[int, int]:
            """Return a group's first executor, and how many it has."""
            return total - used if slowest_first else first, used - first

        for used in range(1, total + 1):
            ways = np.stack([
                best[first, :, None] + self.bounds[group(first, used)] for first in range(used)
            ]).reshape(-1, last + 1)  # fmt: skip
            before[used], best[used] = ways.argmax(axis=0), ways.max(axis=0)
        if not np.isfinite(best[total, last]):
            return None
        keys: list[GroupKey] = []
        used, end = total, last
        while used > 0:
            first, start = divmod(int(before[used, end]), last + 1)
            keys.append((*group(first, used), start, end))
            used, end = first, start
        return float(best[total, last]), tuple(reversed(keys))

    def _joined(
        self, keys: Sequence[GroupKey]
    ) -> tuple[_Found | None, tuple[GroupKey, float] | None]:
        """Join tested groups; a later one does without the variants of those before it.

        Returns what was found, and the group that was worth less for it, with what it is worth.
        """
        parts: list[Part] = []
        value, clash = 0.0, None
        for key in keys:
            found = self.tested[key]
            excluded = frozenset(v for part in parts for v in part.variants)
            if found is not None and not excluded.isdisjoint(found[1].variants):
                found = self._tested(key, excluded)
                clash = key, -np.inf if found is None else found[0]
            if found is None:
                return None, clash
            value += found[0]
            parts.append(found[1])
        return _Found(value, tuple(parts)), clash

    def _tested(self, key: GroupKey, excluded: frozenset[VariantName]) -> tuple[float, Part] | None:
        """Return the best of a group's candidates that passes the exact test."""
        first, count, start, end = key
        of = self.of
        found: tuple[float, Part] | None = None
        part = self._dedicated(key, excluded)
        if part is not None:
            found = of.value_of(part), part
        for value, intervals in self.candidates[first, count].best(start, end, _TESTED_MAX):
            if found is not None and value <= found[0]:
                break
            names = {of.table.names[variant] for _, _, variant in intervals}
            if excluded.isdisjoint(names) and self._feasible(intervals, first, count):
                return value, self._part(key, intervals)
        return found

    def _dedicated(self, key: GroupKey, excluded: frozenset[VariantName]) -> Part | None:
        first, count, start, end = key
        members = self._members(start, end)
        return dedicated_part(
            self.of.dedicated, members, self._on(first, count), excluded, self.of.parameters
        )

    def _members(self, start: int, end: int) -> tuple[int, ...]:
        return tuple(sorted(self.order[self.cuts[start] : self.cuts[end]]))

    def _feasible(self, intervals: Sequence[Interval], first: int, count: int) -> bool:
        table = self.of.table
        demand: dict[VariantName, VariantDemand] = {}
        upgrade = False
        for start, end, column in intervals:
            each = demand.setdefault(table.names[column], VariantDemand())
            each.rate_hz += float(self.sums.rate_hz[start, end, column])
            if table.best_effort[column]:
                continue
            tightest_ns = int(self.sums.tightest_ns[start, end, column])
            each.tightest_ns = min(each.tightest_ns, tightest_ns)
            upgrade = upgrade or bool(self.sums.raised[start, end, column] > 0.5)
        demand = {name: each for name, each in demand.items() if each.rate_hz > 0}
        timing = self._timing(first, count)
        return not demand or cycle_feasible(demand, timing, self.of.parameters, upgrade)

    def _part(self, key: GroupKey, intervals: Sequence[Interval]) -> Part:
        first, count, start, end = key
        at: dict[int, int] = {}
        for begin, stop, column in intervals:
            for camera in self.order[self.cuts[begin] : self.cuts[stop]]:
                at[camera] = int(self.of.table.number[camera, column])
        members = self._members(start, end)
        allocation = CycleAllocation(
            [self.of.cameras[each] for each in members],
            [at[each] for each in members],
            self._timing(first, count),
        )
        return Part(self._on(first, count), members, allocation)
