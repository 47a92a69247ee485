"""Problem P1 by the planner's search, against the exact solver, Jellyfish's, and on examples."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings

from benchmarks.jellyfish.annealing import annealed_mapping
from benchmarks.jellyfish.exact import exact_mapping
from benchmarks.jellyfish.instances import anything, family, jellyfish
from edgebox.planning.filling import fullest
from edgebox.planning.mapping_plan import planned_mapping
from edgebox.planning.mapping_problem import (
    Mapping,
    MappingCamera,
    MappingProblem,
    MappingVariant,
    WorkerMapping,
    capacity_units,
    rate_units,
    violations,
)
from tests.planning.mapping_scene import feasible, problems, score


def annealed(problem: MappingProblem, seed: int = 1) -> Mapping:
    return annealed_mapping(problem, random.Random(seed), should_stop=lambda: False)


# -- worked examples ----------------------------------------------------------------------------


def test_the_papers_figure_8() -> None:
    """Five clients, a DNN that serves 60 requests/s in batches of two and 80 in batches of three.

    The figure's text gives the sums: c1, c2, c3 bear the batch of three and make 40; of all five,
    {c1, c2, c3, c5} make 50 and {c1, c2, c4, c5} make 60, the most.
    """
    rates, limits = [10, 20, 10, 20, 10], [80, 80, 80, 60, 60]
    chosen = fullest(rates, limits)
    assert sum(rates[at] for at in chosen) == 60
    assert sum(rates[at] for at in fullest(rates[:3], limits[:3])) == 40
    latency_ms = (25.0, 1000 * 2 / 60, 1000 * 3 / 80)
    dnn = MappingVariant("m", 256, 0.5, latency_ms)
    cameras = tuple(
        MappingCamera(f"c{at + 1}", rate, (2 * latency_ms[2 if limit == 80 else 1],))
        for at, (rate, limit) in enumerate(zip(rates, limits, strict=True))
    )
    problem = MappingProblem(1, 3, (dnn,), cameras)
    best = planned_mapping(problem)
    # Four cameras can be served with 60 requests/s, too; nobody serves five.
    assert score(problem, best) == score(problem, exact_mapping(problem)) == (4, 30.0)
    assert best.workers[0].batch == 2


def test_one_weak_camera_gets_a_worker_and_drags_nobody_down() -> None:
    variants = family()
    strong = [MappingCamera(f"c{at}", 10.0, (500.0,) * 16) for at in range(5)]
    weak = MappingCamera("weak", 10.0, (60.0, *(0.0,) * 15))
    problem = MappingProblem(2, 12, variants, (*strong, weak))
    best = planned_mapping(problem)
    assert best.served == 6
    by_camera = best.worker_of()
    assert [c for c, at in by_camera.items() if at == by_camera[5]] == [5]
    assert variants[best.workers[by_camera[0]].variant].accuracy > 0.6


def test_a_worker_takes_the_smallest_batch_that_carries_its_load() -> None:
    dnn = MappingVariant("m", 256, 0.5, (10.0, 15.0, 20.0))
    problem = MappingProblem(1, 3, (dnn,), (MappingCamera("a", 120.0, (100.0,)),))
    assert planned_mapping(problem).workers == (WorkerMapping(0, 2, (0,)),)


def test_nothing_to_map_is_no_mistake() -> None:
    empty = MappingProblem(3, 12, family(), ())
    assert planned_mapping(empty) == Mapping((WorkerMapping(0, 1),) * 3)
    hopeless = replace(empty, cameras=(MappingCamera("a", 5.0, (0.0,) * 16),))
    assert planned_mapping(hopeless).served == 0
    too_fast = replace(empty, cameras=(MappingCamera("a", 5000.0, (900.0,) * 16),))
    assert planned_mapping(too_fast).served == 0


def test_rates_are_added_up_exactly() -> None:
    # As floats, 0.1 + 0.2 exceeds 0.3.
    assert rate_units(0.1) + rate_units(0.2) == rate_units(0.3) == 300_000_000
    assert capacity_units(3, 10_000.0) == 300_000_000
    third = 1 / 3
    assert rate_units(third) >= third * 1e9 > rate_units(third) - 1
    assert capacity_units(1, 3000.0) <= 1e9 / 3


# -- against other solvers ----------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(problems(5, 10))
def test_close_to_the_optimum_on_problems_of_any_kind(problem: MappingProblem) -> None:
    mapping = planned_mapping(problem)
    assert feasible(problem, mapping)
    assert not violations(problem, mapping)
    assert mapping == planned_mapping(problem)
    best = exact_mapping(problem)
    assert mapping.served >= best.served - 1
    if mapping.served == best.served:
        assert mapping.objective(problem) >= 0.8 * best.objective(problem)


@pytest.mark.parametrize(("workers", "cameras"), [(1, 8), (2, 12), (4, 15)])
def test_within_two_thousandths_of_the_optimum_on_what_is_like_the_papers(
    workers: int, cameras: int
) -> None:
    shares = []
    for seed in range(6):
        problem = jellyfish(random.Random(seed), workers, cameras)
        best, found = exact_mapping(problem), planned_mapping(problem)
        assert found.served == best.served
        shares.append(found.objective(problem) / best.objective(problem))
    assert sum(shares) / len(shares) >= 0.998


@pytest.mark.parametrize(("workers", "cameras"), [(4, 24), (4, 32), (16, 160)])
def test_no_worse_than_annealing_where_there_are_many(workers: int, cameras: int) -> None:
    shares = []
    for seed in range(3):
        problem = jellyfish(random.Random(7000 + seed), workers, cameras)
        reference, found = annealed(problem), planned_mapping(problem)
        assert feasible(problem, found)
        assert found.served == reference.served == cameras
        shares.append(found.objective(problem) / reference.objective(problem))
    assert sum(shares) / len(shares) >= 0.998


def test_where_not_all_can_be_served_hardly_ever_fewer_than_annealing() -> None:
    more = fewer = 0
    for seed in range(40):
        rng = random.Random(seed)
        problem = anything(rng, rng.randint(1, 16), rng.randint(1, 60))
        reference, found = annealed(problem, seed), planned_mapping(problem)
        assert feasible(problem, found)
        assert found.served >= reference.served - 1
        more += found.served > reference.served
        fewer += found.served < reference.served
    assert fewer <= 1
    assert more >= 3
