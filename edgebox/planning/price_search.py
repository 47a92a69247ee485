"""Decides options by a price on executors' time, where batches gain little. Pure.

Given the longest batch that any camera may have to wait for, cameras depend on each other only
through the executors' time. With a price on it every camera takes what is worth most to it; the
price is raised until the time suffices (a Lagrangian relaxation), and what it leaves over is
filled with single steps. O(V (I n V)) for V longest batches and I halvings of the price.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from edgebox.domain.model_family import VariantName
from edgebox.planning.allocation import SharedAllocation, window_ns
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.option_table import Floats, Ints, OptionTable, option_table
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.planner_parameters import PlanningParameters

_HALVINGS = 16
_BOUND_PRICES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
"""In units of the accuracy times rate of all largest options, for all of the executors' time."""


def shared_value_bound(
    cameras: Sequence[CameraOptions],
    table: OptionTable,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
) -> float:
    """Return more than any `SharedAllocation` of these options is worth: the Lagrangian bound.

    At any price, what is best for each camera by itself, with batches as full as they can be, is no
    less than what all can have together. O(n V).

    Args:
        cameras: what each could be given.
        table: the same as arrays.
        timing: what batches take.
        parameters: the tunables.
    """
    gathers_ns = window_ns(cameras)
    least_ns = [timing[name].request_ns(None, gathers_ns) for name in table.names]
    cost = table.rate_hz * np.array(least_ns) / 1e9
    prices = np.array(_BOUND_PRICES) * table.accuracy_scale
    bound = min(
        float((table.value - price * cost).max(axis=1).sum() + price * parameters.utilisation_max)
        for price in prices.tolist()
    )
    smallest = np.where(table.number == 0, table.value, 0.0).sum()  # may take more of the time
    return max(bound, float(smallest))


def shared_allocations(
    cameras: Sequence[CameraOptions],
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    iterations_max: int,
    table: OptionTable | None = None,
) -> list[SharedAllocation]:
    """Return the best new plan and, where cameras may rise, that in force, repaired.

    Steps that bring most for their time may leave no room for one that brings more than all of
    them, so the sizes are also filled in the order of what steps bring, from the smallest up: the
    two orders of the knapsack problem. The plan in force may use all the time that may be planned;
    whoever rises above what it has must leave some over. None at all: the smallest do not fit.

    Args:
        cameras: what each could be given; at least one.
        timing: what batches take.
        parameters: the tunables.
        iterations_max: bound on the single steps that fill what is left over.
        table: the options as arrays; None: not made yet.
    """
    smallest = SharedAllocation(cameras, [0] * len(cameras), timing)
    if smallest.longest_ns > smallest.slack_ns:
        return []
    if smallest.utilisation > parameters.utilisation_slow + 1e-9:
        return []
    table = table or option_table(cameras, parameters.hysteresis_ratio)
    search = _Search(cameras, timing, smallest, table)
    rising = any(c.is_upgrade(c.options[-1]) for c in cameras)
    limit = parameters.utilisation_upgrade if rising else parameters.utilisation_max
    found = [search.best(limit, table.value)]
    if rising:
        kept = np.where(_above(cameras, table), -np.inf, table.value)
        found.append(search.best(parameters.utilisation_max, kept))
    best = _filled(found[0], parameters, iterations_max, _gain_per_ns)
    least = SharedAllocation(cameras, [0] * len(cameras), timing)
    by_gain = _filled(least, parameters, iterations_max, _gain)
    if by_gain.value(parameters.hysteresis_ratio) > best.value(parameters.hysteresis_ratio):
        best = by_gain
    return [best, *(_filled(of, parameters, iterations_max, _gain_per_ns) for of in found[1:])]


def kept_side_by_side(
    cameras: Sequence[CameraOptions],
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
) -> SharedAllocation | None:
    """Return what cameras have now, or the largest below it; None: it is no longer feasible."""
    kept = SharedAllocation(cameras, [of.current for of in cameras], timing)
    raises = any(of.is_upgrade(has) for of, has in zip(cameras, kept.chosen, strict=True))
    limit = parameters.utilisation_upgrade if raises else parameters.utilisation_max
    feasible = kept.longest_ns <= kept.slack_ns and kept.utilisation <= limit + 1e-9
    return kept if feasible else None


def _above(cameras: Sequence[CameraOptions], table: OptionTable) -> Floats:
    """Say, (n, V), which options are larger than the largest that a camera may keep."""
    kept = np.array([len(c.options) if c.current_px is None else c.current for c in cameras])
    return np.asarray(table.number > kept[:, None])


class _Search:
    """What is common to all prices."""

    def __init__(
        self,
        cameras: Sequence[CameraOptions],
        timing: Mapping[VariantName, BatchTimes],
        smallest: SharedAllocation,
        table: OptionTable,
    ) -> None:
        self._cameras = cameras
        self._timing = timing
        self._smallest = smallest
        self._table = table
        self._single_ns = np.array([timing[name].single_ns for name in table.names])
        first = [(timing[name].batches[0][0], timing[name].usual_ns[0]) for name in table.names]
        per_request_ns = [usual_ns / size for size, usual_ns in first]
        self._cost = table.rate_hz * np.array(per_request_ns) / 1e9
        self._slack_ns = table.compute_ns - self._single_ns
        self._rows = np.arange(len(cameras))

    def best(self, limit: float, value: Floats) -> SharedAllocation:
        """Return the best options by price for any longest batch, within a part of the time."""
        smallest = self._smallest
        if smallest.utilisation > limit:
            return smallest
        longest = np.unique(self._single_ns[np.isfinite(value).any(axis=0)])
        bounded = []
        for batch_ns in longest:
            if smallest.longest_ns <= batch_ns <= smallest.slack_ns:
                fits = (self._single_ns <= batch_ns) & (self._slack_ns >= batch_ns)
                worth = np.where(fits | (self._table.number == 0), value, -np.inf)
                bounded.append((float(worth.max(axis=1).sum()), batch_ns, worth))
        best_value, best = -np.inf, self._at_smallest()
        for bound, _, worth in sorted(bounded, key=lambda each: -each[0]):
            if bound <= best_value:
                break
            columns = self._priced(limit, worth)
            if (reached := float(value[self._rows, columns].sum())) > best_value:
                best_value, best = reached, columns
        if not bounded:
            return smallest
        at = self._table.number[self._rows, best]
        return SharedAllocation(self._cameras, at.tolist(), self._timing)

    def _priced(self, limit: float, worth: Floats) -> Ints:
        """Return the columns taken at the least price at which the time suffices."""
        columns = worth.argmax(axis=1)
        if self._utilisation(columns) <= limit:
            return np.asarray(columns)
        finite = np.where(np.isfinite(worth), worth, 0.0)
        low, high = 0.0, 1.0 / limit * max(1e-9, float(finite.max(axis=1).sum()))
        while self._utilisation(columns := self._at_price(worth, high)) > limit:
            low, high = high, 4 * high
            if high > 1e15:
                return self._at_smallest()
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            taken = self._at_price(worth, middle)
            if self._utilisation(taken) <= limit:
                high, columns = middle, taken
            else:
                low = middle
        return np.asarray(columns)

    def _at_smallest(self) -> Ints:
        return np.asarray((self._table.number == 0).argmax(axis=1))

    def _at_price(self, worth: Floats, price: float) -> Ints:
        return np.asarray((worth - price * self._cost).argmax(axis=1))

    def _utilisation(self, columns: Ints) -> float:
        rates = np.bincount(
            columns, self._table.rate_hz[self._rows, columns], len(self._table.names)
        )
        return sum(
            self._timing[self._table.names[at]].share(float(rates[at]), self._smallest.window_ns)
            for at in np.flatnonzero(rates)
        )


def _filled(
    allocation: SharedAllocation,
    parameters: PlanningParameters,
    iterations_max: int,
    by: Callable[[Option, Option], float],
) -> SharedAllocation:
    """Take every single step up that fits, the most worthwhile first, until none does."""

    def entry(camera: int) -> tuple[float, float, int] | None:
        of, at = allocation.cameras[camera], allocation.at[camera]
        if at + 1 >= len(of.options):
            return None
        has = of.options[at]
        return -by(has, of.options[at + 1]), has.accuracy, camera

    heap = [e for camera in range(len(allocation.cameras)) if (e := entry(camera)) is not None]
    heapify(heap)
    refused: list[tuple[float, float, int]] = []
    progress = False
    for _ in range(iterations_max):
        if not heap:
            # A step may have become possible: requests that joined a variant share its batches.
            if not progress or not refused:
                break
            heap, refused, progress = refused, [], False
            heapify(heap)
        candidate = heappop(heap)
        camera = candidate[2]
        to = allocation.at[camera] + 1
        option = allocation.cameras[camera].options[to]
        if (
            allocation.blocks(option)
            or allocation.violation(camera, option, parameters) is not None
        ):
            refused.append(candidate)
            continue
        allocation.rise(camera, to)
        progress = True
        if (after := entry(camera)) is not None:
            heappush(heap, after)
    return allocation


def _gain_per_ns(low: Option, high: Option) -> float:
    """Return the accuracy that a step brings per nanosecond; the rate cancels out."""
    return (high.accuracy - low.accuracy) / max(1, high.single_ns - low.single_ns)


def _gain(low: Option, high: Option) -> float:
    """Return the accuracy times rate that a step brings."""
    return high.accuracy * high.rate_hz - low.accuracy * low.rate_hz
