"""Later stages of pipelines in plans, judged by enumeration."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.picture_size import send_size
from edgebox.domain.pipelines import StageName
from edgebox.domain.plans import (
    CameraSnapshot,
    LaterStage,
    LaterVariant,
    Plan,
    PlanningSnapshot,
)
from edgebox.domain.requests import CameraId
from edgebox.planning.allocation import SharedAllocation
from edgebox.planning.capacity import ExecutorPool
from edgebox.planning.later_stages import later_choice, later_prices
from edgebox.planning.later_work import left_to_first_stages
from edgebox.planning.options import Option, all_options
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import FAMILY, camera

READ = StageName("read")
P = PlanningParameters()
SIDES_PX = (8.0, 24.0, 60.0)


def read(side_px: int, *accuracies: float) -> Variant:
    table = tuple(zip(SIDES_PX, accuracies, strict=False))
    name = VariantName(f"read-{side_px}")
    return Variant(name, FamilyName("read"), side_px, side_px, max(accuracies), table)


SMALL, LARGE = read(32, 0.4, 0.8, 0.85), read(96, 0.45, 0.85, 0.95)


def stage(
    shares: Sequence[float],
    sides: tuple[float, ...],
    variants: Sequence[Variant] = (SMALL, LARGE),
) -> LaterStage:
    """Return a stage whose variants take these shares of the time for one frame a second."""
    later = tuple(LaterVariant(*each) for each in zip(variants, shares, strict=True))
    return LaterStage(READ, 4.0, sides, later, variants[-1].name)


def with_stage(
    of: LaterStage, number: int = 0, rate_hz: float = 10, slo: int = 300
) -> CameraSnapshot:
    named = seen(camera(f"gate-{number}", slo, rate_hz), link(1000.0))
    return replace(named, later=(of,))


def box(*cameras: CameraSnapshot) -> PlanningSnapshot:
    return snapshot(cameras, variants=(*FAMILY, SMALL, LARGE))


def accuracy_of(c: CameraSnapshot, first: Variant, later: Variant) -> float:
    """Return the detector's accuracy times the mean over the objects, by the definition."""
    side_px = sqrt(
        float.__mul__(*map(float, send_size(c.camera.width_px, c.camera.height_px, first)))
    )
    sides = c.later[0].sides
    return first.accuracy * sum(later.accuracy_at(s * side_px) for s in sides) / len(sides)


def value_of(of: PlanningSnapshot, found: Plan) -> float:
    by_name = {v.name: v for v in of.variants}
    total = 0.0
    for c in of.cameras:
        given_ = found.assignments[c.camera.id]
        later = {v.variant.name: v.variant for v in c.later[0].variants}[dict(given_.later)[READ]]
        total += given_.rate_hz * accuracy_of(c, by_name[given_.variant], later)
    return total


def best_value(of: PlanningSnapshot) -> float:
    """Return the most that any first and later variants side by side are worth within limits."""
    timing = ExecutorPool(of, P.quantile, divisible=True).together
    options = all_options(of, timing, P)
    best = 0.0
    for laters in product(*(c.later[0].variants for c in of.cameras)):
        for at in product(*(range(len(each.options)) for each in options)):
            found = SharedAllocation(options, at, timing)
            fits = found.longest_ns <= found.slack_ns
            taken = sum(o.rate_hz * v.executor_s for o, v in zip(found.chosen, laters, strict=True))
            if fits and found.utilisation + taken <= P.utilisation_max + 1e-9:
                best = max(
                    best,
                    sum(
                        o.rate_hz * accuracy_of(c, o.variant, v.variant)
                        for c, o, v in zip(of.cameras, found.chosen, laters, strict=True)
                    ),
                )
    return best


stages = st.builds(
    lambda share, ratio, sides: stage((share, ratio * share), tuple(sorted(sides))),
    st.sampled_from([0.0005, 0.002, 0.008]),
    st.sampled_from([1.5, 4.0, 10.0]),
    st.lists(st.sampled_from([0.01, 0.03, 0.08, 0.2]), min_size=1, max_size=3),
)
boxes = st.lists(st.tuples(stages, st.sampled_from([2, 10, 20])), min_size=1, max_size=3).map(
    lambda drawn: box(*(with_stage(of, n, hz) for n, (of, hz) in enumerate(drawn)))
)


@settings(max_examples=150, deadline=None)
@given(boxes)
def test_no_choice_of_first_and_later_variants_is_worth_much_more(of: PlanningSnapshot) -> None:
    best = best_value(of)
    if best > 0:
        assert value_of(of, plan(of, 10_000)) >= 0.9 * best


@settings(max_examples=100, deadline=None)
@given(boxes)
def test_a_plan_that_chooses_is_worth_no_less_than_one_that_keeps_the_largest(
    of: PlanningSnapshot,
) -> None:
    def largest(c: CameraSnapshot) -> CameraSnapshot:
        return replace(c, later=tuple(replace(s, variants=s.variants[-1:]) for s in c.later))

    kept = plan(replace(of, cameras=tuple(map(largest, of.cameras))), 10_000)
    found = plan(of, 10_000)
    services = [sum(a.served for a in each.assignments.values()) for each in (found, kept)]
    if services[0] == services[1] and kept.utilisation <= P.utilisation_slow:
        slower = any(
            a.rate_hz < c.camera.rate_hz
            for c in of.cameras
            for a in (kept.assignments[c.camera.id], found.assignments[c.camera.id])
        )
        assert slower or value_of(of, found) * P.hysteresis_ratio >= value_of(of, kept) - 1e-9


@given(
    stages,
    st.sampled_from([96 * 64, 320 * 192, 608 * 352]),
    st.floats(0.1, 1),
    st.floats(0, 1000),
)
def test_a_later_variant_is_the_best_at_its_price(
    of: LaterStage, picture_px: int, accuracy: float, price: float
) -> None:
    def net(each: LaterVariant) -> float:
        sides = [s * sqrt(picture_px) for s in of.sides]
        right = sum(each.variant.accuracy_at(s) for s in sides) / len(sides)
        stays = 1.01 if each.variant.name == of.current else 1.0
        return accuracy * right * stays - price * each.executor_s

    first = replace(FAMILY[0], accuracy=accuracy)
    camera = with_stage(of, 1, 15, 1000)
    chosen = dict(later_choice(camera, picture_px, first, price).variants)[READ]
    by_name = {each.variant.name: each for each in of.variants}
    assert net(by_name[chosen]) >= max(map(net, of.variants)) - 1e-9


def test_the_camera_with_small_objects_gets_the_larger_picture() -> None:
    small, large = stage((0.0, 0.0), (0.06,)), stage((0.0, 0.0), (0.3,))
    for order in ((small, large), (large, small)):
        cameras = [with_stage(of, n, 18, 1000) for n, of in enumerate(order)]
        found = plan(box(*cameras), 10_000)
        px = {v.name: v.pixels for v in FAMILY}
        of_small, of_large = (
            px[found.assignments[CameraId(f"gate-{order.index(of)}")].variant]
            for of in (small, large)
        )
        assert of_small > of_large


def test_without_a_table_later_stages_change_nothing() -> None:
    plain = (replace(SMALL, accuracy_by_side=()), replace(LARGE, accuracy_by_side=()))
    of = stage((0.002, 0.002), (0.03,), plain)
    only_largest = replace(of, variants=of.variants[-1:])
    found = plan(box(with_stage(only_largest)), 10_000)
    none = replace(with_stage(only_largest), later=())
    as_much = replace(none, other_later_s=((FamilyName("read"), 0.002),))
    expected = plan(box(as_much), 10_000)
    given_, without = (p.assignments[CameraId("gate-0")] for p in (found, expected))
    assert replace(given_, later=()) == without
    assert given_.later == ((READ, LARGE.name),)
    assert found.utilisation == pytest.approx(expected.utilisation)


def test_an_idle_box_runs_the_most_accurate_and_an_overloaded_one_cheap_later_variants() -> None:
    def later_of(ratio: float, rate_hz: float) -> list[VariantName]:
        cameras = [with_stage(stage((0.001, ratio), (0.1,)), n, rate_hz) for n in range(3)]
        found = plan(box(*cameras), 10_000)
        return [dict(a.later)[READ] for a in found.assignments.values()]

    assert later_of(0.002, 2) == [LARGE.name] * 3
    assert later_of(0.2, 10) == [SMALL.name] * 3


def test_the_limits_are_lower_by_what_later_stages_take_at_each_price() -> None:
    of = box(with_stage(stage((0.001, 0.02), (0.1,))))
    timing = ExecutorPool(of, P.quantile).together
    prices = later_prices(of)
    assert prices[0] == 0
    assert prices[-1] is None
    taken = [
        P.utilisation_max
        - left_to_first_stages(P, all_options(of, timing, at_price)).utilisation_max
        for at_price in (replace(P, later_price=price) for price in prices)
    ]
    assert taken[0] == taken[-1] == pytest.approx(0.2)
    assert taken[:-1] == sorted(taken[:-1], reverse=True)
    assert taken[-2] == pytest.approx(0.01)  # at the highest price all run the cheapest


def test_an_option_counts_with_its_later_stages() -> None:
    of = with_stage(stage((0.001, 0.002), (0.05, 0.1)))
    timing = ExecutorPool(box(of), P.quantile).together
    [options] = all_options(box(of), timing, P)
    for option in options.options:
        assert option.accuracy == pytest.approx(accuracy_of(of, option.variant, LARGE))
    assert isinstance(options.options[0], Option)
