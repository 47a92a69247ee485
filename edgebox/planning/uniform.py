"""Decides which variant each executor runs, where each runs one only, and for which cameras. Pure.

The refinement of `partition_search`, whose cuts are few, for several executors; and problem P1 of
Jellyfish (`mapping_plan`), where an executor has one variant by definition. Once every executor has
its variant, only the fill is left: a camera may be served where its budget bears the batches, and
what it asks of an executor is its rate, whatever the variant. So variants are filled one after the
other, the largest first, each with as much rate as it can take (`filling`).

The first variants come from dynamic programming: orders of the cameras are cut into intervals, each
for one variant on so many executors. Then variants are stepped up and down, one at a time and one
up for another down, and everything is filled anew, until two rounds in a row gain nothing. A cut
that serves more than its variants filled anew is a result itself. At last, groups whose cameras all
bear a larger variant get it: filling by rate does not look for that.
Jellyfish anneals over the same steps, from the smallest variants on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product

import numpy as np

from edgebox.planning.filling import column_units, fullest
from edgebox.planning.intervals import interval_minima, interval_sums, order_cuts
from edgebox.planning.option_table import Floats, Ints

_CUTS_MAX = 48
"""Orders are cut at so many places at most: filling moves the ends of intervals anyway."""
_PATIENCE = 2
"""After so many steps without a gain the search ends."""

Columns = tuple[int, ...]
"""The variant of each executor, the largest first."""


@dataclass(frozen=True, slots=True)
class UniformProblem:
    """Executors that are alike, and n cameras of which each can have some of V variants."""

    executors: int
    pooled: bool
    """Executors of one variant share its cameras; else each has cameras of its own."""
    units: Ints
    """(n,) what each camera asks, in whole units of rate."""
    limits: Ints
    """(n, V) what an executor of the variant can serve in all if this camera is among them; 0: it
    cannot be. Variants rise in value."""
    value: Floats
    """(n, V) of serving each camera; what it is without a limit does not matter."""


@dataclass(frozen=True, slots=True)
class UniformGroup:
    """Executors that serve some cameras with one variant."""

    column: int
    executors: int
    cameras: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Filled:
    """Variants of the first executors, and who is served there."""

    left: tuple[int, ...]
    """The cameras that are not."""
    value: float
    groups: tuple[UniformGroup, ...]

    @property
    def worth(self) -> tuple[int, float]:
        """The most cameras come first, then value."""
        return -len(self.left), self.value


def uniform_groups(
    problem: UniformProblem, orders: Sequence[Sequence[int]], evaluations_max: int
) -> list[UniformGroup]:
    """Return groups that serve as many cameras as were found to fit, and these well.

    Each has cameras. All cameras are served if the best cut of an order into intervals serves them,
    and what they are worth is at least what that cut is worth. Where not all fit, the rate that is
    served counts for more than the number of cameras: leave cameras out beforehand (as
    `mapping_plan` does) where the number is what counts.

    Args:
        problem: the executors and cameras.
        orders: of all cameras; those that belong together are neighbours in at least one. Of
            equally full ways, those that come first in the first one are filled in first: they
            should be those that have the fewest other places.
        evaluations_max: how many ways to give executors their variants are filled, at least one.
    """
    if not len(problem.units):
        return []
    best = _Search(problem, orders, evaluations_max).best()
    found = [group for group in best.groups if group.cameras]
    while (raised := _raised(problem, found)) is not None:
        found = raised
    return found


class _Search:
    """What is known of one problem."""

    def __init__(
        self, of: UniformProblem, orders: Sequence[Sequence[int]], evaluations_max: int
    ) -> None:
        self._of, self._orders, self._left = of, orders, evaluations_max
        self._step = column_units(
            of.units, int(of.limits.max()) * (of.executors if of.pooled else 1)
        )
        self._known: dict[tuple[tuple[int, int], ...], _Filled] = {
            (): _Filled(tuple(orders[0]), 0.0, ())
        }

    def best(self) -> _Filled:
        """Return the best of what steps from the starts of all orders lead to.

        Of what is known the best is stepped from first, which need not be a gain; of equally good
        variants the largest, as these leave executors without cameras that a step more may need.
        """
        cuts = [cut for order in self._orders if (cut := best_cut(self._of, order)) is not None]
        known = dict.fromkeys(_columns(cut, self._of.executors) for cut in cuts)
        waiting = {each: self._filled(each) for each in known or [(0,) * self._of.executors]}
        best = max(waiting.values(), key=lambda filled: filled.worth)
        for cut in cuts:
            as_cut = self._filled_as_cut(cut) if self._worth(cut) > best.worth else None
            best = best if as_cut is None else as_cut
        seen, stale = set(waiting), 0
        while waiting and stale < _PATIENCE:
            columns = max(waiting, key=lambda each: (waiting[each].worth, each))
            del waiting[columns]
            stale += 1
            for each in self._steps(columns):
                if each not in seen and self._left > 0:
                    seen.add(each)
                    waiting[each] = filled = self._filled(each)
                    if filled.worth > best.worth:
                        best, stale = filled, 0
        return best

    def _steps(self, columns: Columns) -> Iterator[Columns]:
        """Return the variants one step away: one up, one down, or one up and another down."""
        last = self._of.limits.shape[1] - 1
        present = sorted(set(columns))
        ups = [None, *(each for each in present if each < last)]
        downs = [None, *(each for each in present if each > 0)]
        for up, down in product(ups, downs):
            stepped = list(columns)
            if up is not None:
                stepped.remove(up)
            if down is not None and down in stepped:
                stepped.remove(down)
                stepped.append(down - 1)
            if up is not None:
                stepped.append(up + 1)
            yield tuple(sorted(stepped, reverse=True))

    def _filled(self, columns: Columns) -> _Filled:
        """Fill executors with these variants in turn; what is known of the first is used again."""
        runs = tuple((column, 1) for column in columns)
        if self._of.pooled:
            runs = tuple((column, columns.count(column)) for column in dict.fromkeys(columns))
        known = len(runs)
        while runs[:known] not in self._known:
            known -= 1
        self._left -= known < len(runs)
        filled = self._known[runs[:known]]
        for at in range(known, len(runs)):
            filled = self._known[runs[: at + 1]] = self._added(filled, *runs[at])
        return filled

    def _worth(self, groups: Sequence[UniformGroup]) -> tuple[int, float]:
        """Return the worth of groups that serve all cameras."""
        values = (self._of.value[list(of.cameras), of.column].sum() for of in groups)
        return 0, float(sum(values))

    def _filled_as_cut(self, cut: Sequence[UniformGroup]) -> _Filled | None:
        """Return a cut with the cameras of its intervals; None: they cannot be divided so.

        Filled anew, the variants of a cut that serves all may leave somebody out.
        """
        groups = sorted(cut, key=lambda each: -each.column)
        if self._of.pooled:
            alike = groupby(groups, key=lambda each: each.column)
            groups = [_joined(column, list(those)) for column, those in alike]
        filled = _Filled((), 0.0, ())
        for group in groups:
            filled = replace(filled, left=group.cameras)
            runs = [group.executors] if self._of.pooled else [1] * group.executors
            for executors in runs:
                filled = self._added(filled, group.column, executors)
            if filled.left:
                return None
        return filled

    def _added(self, filled: _Filled, column: int, executors: int) -> _Filled:
        """Fill executors of one variant with those who are left."""
        left = np.array(filled.left, np.int64)
        limits, units = self._of.limits[left, column] * executors, self._of.units[left]
        able = limits >= units
        if able.any() and units[able].sum() <= limits[able].min():
            chosen = left[able]  # all of them; rates in columns are rounded up
        else:
            rates = -(-units // self._step)
            chosen = left[fullest(rates.tolist(), (limits // self._step).tolist())]
        members = tuple(sorted(chosen.tolist()))
        value = filled.value + float(self._of.value[list(members), column].sum())
        taken = set(members)
        return _Filled(
            tuple(at for at in filled.left if at not in taken),
            value,
            (*filled.groups, UniformGroup(column, executors, members)),
        )


def _columns(groups: Sequence[UniformGroup], executors: int) -> Columns:
    """Return the variant of each executor; those without a group have the smallest."""
    used = [group.column for group in groups for _ in range(group.executors)]
    return tuple(sorted((*used, *[0] * (executors - len(used))), reverse=True))


def _joined(column: int, groups: Sequence[UniformGroup]) -> UniformGroup:
    """Return groups as one of a variant."""
    cameras = tuple(sorted(at for each in groups for at in each.cameras))
    return UniformGroup(column, sum(each.executors for each in groups), cameras)


def _raised(of: UniformProblem, groups: Sequence[UniformGroup]) -> list[UniformGroup] | None:
    """Serve all cameras of one group with a larger variant; None: no group's cameras bear one.

    Variants are filled by rate, so smaller ones may have got what bears larger ones. Pooled
    executors take in the group that has the larger variant, and executors without cameras.
    """
    idle = of.executors - sum(group.executors for group in groups) if of.pooled else 0
    loads = [int(of.units[list(group.cameras)].sum()) for group in groups]
    limits = [of.limits[list(group.cameras)].min(axis=0).tolist() for group in groups]
    for at, group in enumerate(groups):
        for column in range(of.limits.shape[1] - 1, group.column, -1):
            there = [n for n, each in enumerate(groups) if of.pooled and each.column == column]
            joining = [at, *there]
            limit = min(limits[n][column] for n in joining)
            needed = -(-sum(loads[n] for n in joining) // limit) if limit else of.executors + 1
            to = _joined(column, [groups[n] for n in joining])
            if needed <= to.executors + idle:
                to = replace(to, executors=max(to.executors, needed))
                rest = [each for n, each in enumerate(groups) if n not in joining]
                return sorted([*rest, to], key=lambda each: -each.column)
    return None


def best_cut(of: UniformProblem, order: Sequence[int]) -> list[UniformGroup] | None:
    """Return the groups of the best cut of an order into intervals; None: not all fit.

    Executors share an interval as if its cameras could be divided among them, and intervals of one
    variant are apart, so groups may be infeasible.

    With f_m(e) for the most that m executors bring with the cameras before cut e, f_m(e) is the
    largest of f_(m-k)(s) + what the cameras from s to e are worth on k executors of one variant.
    O(K^2 (V + M^2)) in numpy for K cuts, V variants and M executors.
    """
    cuts = order_cuts(of.limits[list(order)] > 0, _CUTS_MAX)
    values, columns = _on_executors(of, order, cuts)
    total, last = of.executors, values.shape[1] - 1
    best = np.full((total + 1, last + 1), -np.inf)
    best[:, 0] = 0.0
    taken = np.zeros((total + 1, last + 1), np.int64)
    for used in range(1, total + 1):
        ways = best[used - 1 :: -1, :, None] + values[1 : used + 1]
        flat = ways.reshape(-1, last + 1)
        taken[used] = flat.argmax(axis=0)
        best[used] = np.maximum(best[used], flat.max(axis=0))
    if not np.isfinite(best[total, last]):
        return None
    groups = []
    used, end = total, last
    while end > 0:
        count, start = divmod(int(taken[used, end]), last + 1)
        column, members = int(columns[count + 1, start, end]), order[cuts[start] : cuts[end]]
        groups.append(UniformGroup(column, count + 1, tuple(members)))
        used, end = used - count - 1, start
    return groups


def _on_executors(of: UniformProblem, order: Sequence[int], cuts: Ints) -> tuple[Floats, Ints]:
    """Return (M + 1, K, K) what intervals are worth on at most so many executors, and with what."""
    rows, total = np.array(order, np.int64), of.executors
    limits = of.limits[rows]
    starts, ends = np.triu_indices(len(cuts), 1)
    load = interval_sums(of.units[rows], cuts)[starts, ends]
    least = interval_minima(limits, cuts, 0)
    worth = interval_sums(np.where(limits > 0, of.value[rows], 0.0), cuts)
    common = int(np.gcd.reduce(of.units, initial=0)) or 1
    values = np.full((total + 2, len(cuts), len(cuts)), -np.inf)
    columns = np.zeros(values.shape, np.int64)
    for column in range(limits.shape[1]):
        limit, value = least[starts, ends, column], worth[starts, ends, column]
        if not of.pooled:
            limit = limit // common * common
        needed = -(-load // np.maximum(limit, 1))
        needed = np.where(limit > 0, np.minimum(needed, total + 1), total + 1)
        better = value > values[needed, starts, ends]
        at = needed[better], starts[better], ends[better]
        values[at], columns[at] = value[better], column
    for more in range(2, total + 1):
        as_few = values[more - 1] > values[more]
        values[more] = np.where(as_few, values[more - 1], values[more])
        columns[more] = np.where(as_few, columns[more - 1], columns[more])
    return values, columns
