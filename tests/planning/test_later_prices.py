"""The search for the price of later stages, judged by planning at every price."""

import random
from dataclasses import replace

import pytest

from edgebox.domain.cascades import CascadeCurve, CascadePoint
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.plans import CameraSnapshot, PlannedCascade, PlanningSnapshot
from edgebox.planning import optimised_part
from edgebox.planning.later_stages import later_prices
from edgebox.planning.on_time import Expected
from edgebox.planning.optimised_part import best_price, optimised_parts, planned_at
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.pipelines import pipeline, stage
from tests.scheduling.scene import FAMILY, camera, name

PARAMETERS = PlanningParameters()
ITERATIONS = 1_000
SMALL = (256, 320, 416)


def cascaded(rng: random.Random, number: int) -> CameraSnapshot:
    """Return a camera with a cascade of its own, or without one."""
    of = seen(camera(f"gate-{number}", rng.choice((150, 300)), rng.choice((2, 5, 10))), link(100.0))
    if rng.random() < 0.2:
        return of
    small_px, steep = rng.choice(SMALL), rng.uniform(0.6, 2.5)
    points = [(1 - at / 5, at / 5, 0.3 * (1 - at / 5) ** steep) for at in range(6)]
    small = next(variant for variant in FAMILY if variant.name == name(small_px))
    cascade = PlannedCascade(
        small.name,
        FAMILY[-1],
        CascadeCurve(tuple(CascadePoint(*point) for point in points)),
        rng.uniform(0.02, 0.06),
        rng.choice((0.0, 0.2, 0.5, 1.0)),
    )
    first: Pipeline = pipeline(
        stage("find", variant=small.name), stage("refine", "find", variant=FAMILY[-1].name)
    )
    with_pipeline = replace(of.camera, pipeline=first)
    return replace(of, camera=with_pipeline, cascade=cascade)


def box(seed: int) -> PlanningSnapshot:
    rng = random.Random(seed)
    cameras = [cascaded(rng, number) for number in range(rng.choice((1, 2, 4, 8)))]
    return snapshot(cameras)


def best_of_all(of: PlanningSnapshot) -> Expected:
    """Return what the best plan at any price is worth, that in force included."""
    worths = [planned_at(of, ITERATIONS, PARAMETERS, each).worth for each in later_prices(of)]
    best = worths[0]
    for worth in worths[1:]:
        best = worth if worth.exceeds(best) else best
    return best


@pytest.mark.parametrize("seed", range(40))
def test_no_price_is_worth_more_than_that_which_is_found(seed: int) -> None:
    of = box(seed)
    found = best_price(of, ITERATIONS, PARAMETERS)
    if found is None:
        assert all(camera.cascade is None for camera in of.cameras)
        return
    best = best_of_all(of)
    assert found.worth.promised == pytest.approx(best.promised)
    # What is in force stays where it is about as good.
    assert PARAMETERS.hysteresis_ratio * found.worth.value >= best.value - 1e-9


def test_few_prices_are_planned_with(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[float | None] = []

    def counted(
        of: PlanningSnapshot,
        iterations_max: int,
        parameters: PlanningParameters,
        price: float | None,
    ) -> optimised_part.AtPrice:
        plans.append(price)
        return planned_at(of, iterations_max, parameters, price)

    monkeypatch.setattr(optimised_part, "planned_at", counted)
    planned = tried = 0
    for seed in range(20):
        of = box(seed)
        plans.clear()
        optimised_parts(of, ITERATIONS, PARAMETERS)
        assert len(plans) == len(set(plans)), "no price is planned with twice"
        planned += len(plans)
        tried += len(later_prices(of))
    assert planned < 0.75 * tried
