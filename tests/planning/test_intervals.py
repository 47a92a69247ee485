"""Intervals of an order of cameras: the sums, the divisions, and what their bounds are."""

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.intervals import (
    RELAXATION,
    Divisions,
    Interval,
    IntervalTable,
    _costs,
    _grid,
    divisions,
    interval_table,
    prices_of,
)
from edgebox.planning.option_table import OptionTable, option_table
from tests.planning.random_boxes import Drawn, P, box, drawn_cameras, options_of
from tests.planning.scene import seen, snapshot
from tests.scheduling.scene import MS, camera

LIMIT = 0.9


@st.composite
def tables(draw: st.DrawFn, most: int = 8) -> tuple[OptionTable, list[int], tuple[int, ...]]:
    """Draw options, an order of some of the cameras, and cuts."""
    cameras, variants = draw(st.integers(1, most)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    shape = cameras, variants
    possible = rng.random(shape) < draw(st.sampled_from([0.5, 0.9, 1.0]))
    served = rng.random(cameras) < 0.9
    budgets_ns = np.where(served[:, None], rng.integers(5, 400, shape) * float(MS), np.inf)
    table = OptionTable(
        tuple(VariantName(f"v{at}") for at in range(variants)),
        np.zeros(variants, np.bool_),
        np.where(possible, np.cumsum(possible, axis=1) - 1, -1),
        np.where(possible, rng.choice([1.0, 5.0, 25.0], (cameras, 1)), 0.0),
        np.where(possible, rng.random(shape) * 10, -np.inf),
        np.where(possible, budgets_ns, -np.inf),
        np.zeros(shape, np.bool_),
        accuracy_scale=10.0 * cameras,
    )
    order = draw(st.permutations(range(cameras)))[: draw(st.integers(1, cameras))]
    inner = draw(st.sets(st.integers(1, len(order)), max_size=5))
    return table, order, tuple(sorted({0, len(order)} | inner))


@st.composite
def timings(draw: st.DrawFn, executors: int, variants: int = 3) -> dict[VariantName, BatchTimes]:
    """Draw what batches of 1, 2, 4 and 8 take on executors that are alike."""
    out = {}
    for at in range(variants):
        first, gain = draw(st.floats(1, 30)), draw(st.floats(0.2, 1))
        batches = []
        for size in (1, 2, 4, 8):
            time_ns = first * (1 + (size - 1) * (1 - gain)) * MS
            batches.append((size, round(time_ns), time_ns / executors))
        out[VariantName(f"v{at}")] = BatchTimes(batches[0][1], tuple(batches))
    return out


@settings(max_examples=200, deadline=None)
@given(tables())
def test_what_an_interval_asks_is_the_sum_over_its_cameras(
    drawn: tuple[OptionTable, list[int], tuple[int, ...]],
) -> None:
    table, order, cuts = drawn
    found = interval_table(table, order, cuts)
    assert found.cuts == cuts
    for first, last in product(range(len(cuts)), repeat=2):
        if first >= last:
            continue
        there = order[cuts[first] : cuts[last]]
        for variant in range(len(table.names)):
            where = first, last, variant
            if all(table.number[at, variant] >= 0 for at in there):
                value = sum(table.value[at, variant] for at in there)
                assert found.value[where] == pytest.approx(value)
                rate_hz = sum(table.rate_hz[at, variant] for at in there)
                assert found.rate_hz[where] == pytest.approx(rate_hz)
                assert found.tightest_ns[where] == min(
                    table.compute_ns[at, variant] for at in there
                )
            else:
                assert found.value[where] == -np.inf


def ways(first: int, last: int, variants: int) -> Iterator[tuple[Interval, ...]]:
    """Return all ways to divide what is between two cuts, and give each interval a variant."""
    inner = range(first + 1, last)
    for kept in product((False, True), repeat=len(inner)):
        cuts = [first, *(c for c, k in zip(inner, kept, strict=True) if k), last]
        for each in product(range(variants), repeat=len(cuts) - 1):
            yield tuple((a, b, v) for (a, b), v in zip(pairwise(cuts), each, strict=True))


class Judged:
    """Divisions of drawn intervals, and what every single interval is worth and costs."""

    def __init__(
        self,
        drawn: tuple[OptionTable, list[int], tuple[int, ...]],
        timing: dict[VariantName, BatchTimes],
        executors: int,
    ) -> None:
        table, order, self.cuts = drawn
        self.variants = len(table.names)
        self.of: IntervalTable = interval_table(table, order, self.cuts)
        self.prices = prices_of(table)
        given = self.of, table.names, timing, executors, (LIMIT, self.prices)
        self.found: Divisions = divisions(*given)
        self.whole: Divisions = divisions(*given, only_whole=True)
        grid = _grid(self.of, table.names, timing, executors)
        pairs = np.triu_indices(len(self.cuts), 1)
        self.costs = {}
        for at, name in enumerate(table.names):
            found = _costs(self.of, (*pairs, at), timing[name], grid, LIMIT)
            for first, last, own in zip(*pairs, found, strict=True):
                possible = np.isfinite(self.of.value[first, last, at])
                self.costs[int(first), int(last), at] = (
                    own if possible else np.full_like(own, np.inf)
                )

    def value(self, intervals: tuple[Interval, ...]) -> float:
        return float(sum(self.of.value[each] for each in intervals))

    def cost(self, intervals: tuple[Interval, ...]) -> np.ndarray:
        """Return what a division takes of a cycle at each grid point; infinite: not in time."""
        return np.asarray(sum(self.costs[each] for each in intervals))


judged = st.sampled_from([1, 2, 3]).flatmap(
    lambda executors: st.builds(Judged, tables(6), timings(executors), st.just(executors))
)


@settings(max_examples=60, deadline=None)
@given(judged)
def test_at_every_point_and_price_the_best_of_all_divisions_is_found(of: Judged) -> None:
    """Value less price times cost is as large as that of any division (a Lagrangian bound)."""
    found = of.found
    for first, last in product(range(len(of.cuts)), repeat=2):
        if first >= last:
            continue
        has = found.net[:, first, last].T  # (G, P)
        best = np.full(has.shape, -np.inf)
        for way in ways(first, last, of.variants):
            cost = of.cost(way)[:, None]
            net = of.value(way) - np.where(np.isfinite(cost), cost, 0.0) * of.prices
            best = np.maximum(best, np.where(np.isfinite(cost), net, -np.inf))
        assert np.isfinite(has).tolist() == np.isfinite(best).tolist()
        np.testing.assert_allclose(has, best, rtol=1e-6, atol=1e-6)
        # So with what is left of a cycle at that price added, nothing near the grid is worth more.
        for way in ways(first, last, of.variants):
            near = of.cost(way) <= RELAXATION
            bound = (has + of.prices * RELAXATION)[near]
            assert (bound >= of.value(way) - 1e-6).all()


@settings(max_examples=60, deadline=None)
@given(judged)
def test_upper_bounds_are_never_below_what_is_found_nor_above_what_there_is(of: Judged) -> None:
    bounds = of.found.upper_bounds()
    for first, last in product(range(len(of.cuts)), repeat=2):
        if first >= last:
            assert bounds[first, last] == -np.inf
            continue
        listed = list(of.found.best(first, last, 10_000))
        assert bounds[first, last] == max((value for value, _ in listed), default=-np.inf)
        near = [
            of.value(way)
            for way in ways(first, last, of.variants)
            if (of.cost(way) <= RELAXATION).any()
        ]
        most = max(near, default=-np.inf)
        assert bounds[first, last] <= most + 1e-6
        # Where the division that is worth most costs little enough, that is it.
        free = of.found.cost[0, first, last] <= RELAXATION
        free &= np.isfinite(of.found.net[0, first, last])
        if free.any():
            best_free = of.found.value[0, first, last][free].max()
            assert bounds[first, last] >= best_free - 1e-6


@settings(max_examples=60, deadline=None)
@given(judged, st.integers(1, 40))
def test_the_best_divisions_are_distinct_whole_and_by_falling_value(of: Judged, most: int) -> None:
    for first, last in product(range(len(of.cuts)), repeat=2):
        if first >= last:
            continue
        listed = list(of.found.best(first, last, most))
        assert len(listed) <= most
        assert listed == list(of.found.best(first, last, 10_000))[: len(listed)]
        values = [value for value, _ in listed]
        assert values == sorted(values, reverse=True)
        assert len({intervals for _, intervals in listed}) == len(listed)
        for value, intervals in listed:
            assert value == pytest.approx(of.value(intervals))
            assert (of.cost(intervals) <= RELAXATION + 1e-9).any()
            ends = [first, *(end for _, end, _ in intervals)]
            assert ends[-1] == last
            assert [(start, end) for start, end, _ in intervals] == list(pairwise(ends))


@settings(max_examples=60, deadline=None)
@given(judged)
def test_divisions_of_the_whole_alone_are_those_among_all(of: Judged) -> None:
    """A box whose executors are not divided needs no others."""
    whole, last = of.whole, len(of.cuts) - 1
    assert whole.net.shape[1] == 1
    np.testing.assert_array_equal(whole.upper_bounds()[0], of.found.upper_bounds()[0])
    assert list(whole.best(0, last, 10_000)) == list(of.found.best(0, last, 10_000))


@settings(max_examples=60, deadline=None)
@given(drawn_cameras(5, 2), st.sampled_from([1, 2]), st.sampled_from([0.5, 0.9]))
def test_what_fits_at_a_common_variant_is_among_the_candidates(
    drawn: list[Drawn], executors: int, gain: float
) -> None:
    """All on the smallest variant: as long as that passes the exact test, something is found."""
    from edgebox.planning.cycle_allocation import CycleAllocation

    cameras, pool = options_of(box(drawn, executors, gain))
    cameras = [c for c in cameras if c.served]
    if not cameras:
        return
    smallest = CycleAllocation(cameras, [0] * len(cameras), pool.together)
    if smallest.infeasible(P) is not None:
        return
    table = option_table(cameras, 1.0)
    order = sorted(range(len(cameras)), key=lambda at: cameras[at].options[0].budget.compute_ns)
    of = interval_table(table, order, tuple(range(len(order) + 1)))
    found = divisions(
        of, table.names, pool.together, executors, (P.cycle_utilisation_max, prices_of(table))
    )
    bound = found.upper_bounds()[0, len(order)]
    assert bound >= smallest.accuracy_rate - 1e-6


def test_a_camera_whose_budget_no_batch_meets_has_no_division() -> None:
    cameras, pool = options_of(snapshot([seen(camera("a", 300)), seen(camera("b", 300))]))
    table = option_table(cameras, 1.0)
    table.compute_ns[1] = 1.0
    of = interval_table(table, [0, 1], (0, 1, 2))
    found = divisions(of, table.names, pool.together, 1, (LIMIT, prices_of(table)))
    assert np.isfinite(found.upper_bounds()[0, 1])
    assert found.upper_bounds()[0, 2] == -np.inf
    assert list(found.best(1, 2, 10)) == []
