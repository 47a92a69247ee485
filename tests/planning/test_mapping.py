"""Mapping solvers against enumeration, against each other, and on worked examples."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.planning.mapping_annealing import annealed_mapping
from edgebox.planning.mapping_exact import exact_mapping
from edgebox.planning.mapping_fast import fast_mapping
from edgebox.planning.mapping_fill import fullest
from edgebox.planning.mapping_packing import Packing
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
from edgebox.planning.mapping_single import best_single
from edgebox.planning.mapping_table import MappingTable
from tests.planning.mapping_scene import (
    anything,
    best_by_enumeration,
    family,
    feasible,
    jellyfish,
    problems,
)


def fast(problem: MappingProblem, steps: int = 60, seed: int = 1) -> Mapping:
    return fast_mapping(
        problem, random.Random(seed), should_stop=lambda: False, iterations_max=steps
    )


def annealed(problem: MappingProblem, seed: int = 1) -> Mapping:
    return annealed_mapping(problem, random.Random(seed), should_stop=lambda: False)


def score(problem: MappingProblem, mapping: Mapping) -> tuple[int, float]:
    return mapping.served, mapping.objective(problem)


def at_least(one: tuple[int, float], other: tuple[int, float], share: float = 1.0) -> bool:
    return one[0] > other[0] or (one[0] == other[0] and one[1] >= share * other[1] - 1e-6)


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
    best = exact_mapping(problem)
    # Four cameras can be served with 60 requests/s, too; nobody serves five.
    assert score(problem, best) == (4, 30.0)
    assert best.workers[0].batch == 2
    assert score(problem, fast(problem)) == (4, 30.0)


def test_one_weak_camera_gets_a_worker_and_drags_nobody_down() -> None:
    variants = family()
    strong = [MappingCamera(f"c{at}", 10.0, (500.0,) * 16) for at in range(5)]
    weak = MappingCamera("weak", 10.0, (60.0, *(0.0,) * 15))
    problem = MappingProblem(2, 12, variants, (*strong, weak))
    for mapping in (fast(problem), annealed(problem), exact_mapping(problem)):
        assert mapping.served == 6
    best = fast(problem)
    by_camera = best.worker_of()
    assert [c for c, at in by_camera.items() if at == by_camera[5]] == [5]
    assert variants[best.workers[by_camera[0]].variant].accuracy > 0.6


def test_a_worker_takes_the_smallest_batch_that_carries_its_load() -> None:
    dnn = MappingVariant("m", 256, 0.5, (10.0, 15.0, 20.0))
    problem = MappingProblem(1, 3, (dnn,), (MappingCamera("a", 120.0, (100.0,)),))
    assert fast(problem).workers == (WorkerMapping(0, 2, (0,)),)


@pytest.mark.parametrize("solver", [fast, annealed, exact_mapping])
def test_nothing_to_map_is_no_mistake(solver: Callable[[MappingProblem], Mapping]) -> None:
    empty = MappingProblem(3, 12, family(), ())
    assert solver(empty) == Mapping((WorkerMapping(0, 1),) * 3)
    hopeless = replace(empty, cameras=(MappingCamera("a", 5.0, (0.0,) * 16),))
    assert solver(hopeless).served == 0
    too_fast = replace(empty, cameras=(MappingCamera("a", 5000.0, (900.0,) * 16),))
    assert solver(too_fast).served == 0


def test_rates_are_added_up_exactly() -> None:
    # As floats, 0.1 + 0.2 exceeds 0.3.
    assert rate_units(0.1) + rate_units(0.2) == rate_units(0.3) == 300_000_000
    assert capacity_units(3, 10_000.0) == 300_000_000
    third = 1 / 3
    assert rate_units(third) >= third * 1e9 > rate_units(third) - 1
    assert capacity_units(1, 3000.0) <= 1e9 / 3


def test_the_exact_solver_says_when_it_is_too_much() -> None:
    with pytest.raises(InvalidInputError, match="up to 16 cameras, not 20"):
        exact_mapping(jellyfish(random.Random(1), 2, 20))


# -- properties ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(problems(3, 5))
def test_exact_is_what_enumeration_finds(problem: MappingProblem) -> None:
    mapping = exact_mapping(problem)
    assert feasible(problem, mapping)
    assert score(problem, mapping) == pytest.approx(best_by_enumeration(problem))


@settings(max_examples=80, deadline=None)
@given(problems(2, 11), st.integers(0, 99))
def test_one_and_two_workers_are_optimal(problem: MappingProblem, seed: int) -> None:
    found = score(problem, fast(problem, seed=seed))
    assert found == pytest.approx(score(problem, exact_mapping(problem)))


@settings(max_examples=40, deadline=None)
@given(problems(5, 10), st.integers(0, 99))
def test_more_workers_are_close_to_optimal(problem: MappingProblem, seed: int) -> None:
    mapping = fast(problem, 200, seed)
    assert feasible(problem, mapping)
    assert not violations(problem, mapping)
    best = score(problem, exact_mapping(problem))
    assert mapping.served == best[0]
    assert mapping.objective(problem) >= 0.97 * best[1]


def test_four_workers_with_sixteen_cameras_are_within_a_thousandth_on_average() -> None:
    shares = []
    for seed in range(4):
        problem = jellyfish(random.Random(seed), 4, 15)
        best, found = exact_mapping(problem), fast(problem, 150)
        assert found.served == best.served
        shares.append(found.objective(problem) / best.objective(problem))
    assert sum(shares) / len(shares) >= 0.999


def test_never_fewer_cameras_than_jellyfishs_own_solver() -> None:
    more = 0
    for seed in range(40):
        rng = random.Random(seed)
        problem = anything(rng, rng.randint(1, 16), rng.randint(1, 60))
        reference, found = annealed(problem, seed), fast(problem, 40, seed)
        assert feasible(problem, reference)
        assert feasible(problem, found)
        assert found.served >= reference.served
        more += found.served > reference.served
    assert more >= 3


@settings(max_examples=60, deadline=None)
@given(problems(1, 12))
def test_one_worker_by_sums_is_optimal(problem: MappingProblem) -> None:
    table = MappingTable(problem)
    group = best_single(table, np.arange(len(table)))
    best = score(problem, exact_mapping(problem))
    # Rates that are not multiples of a unit are rounded up, by less than a ten-thousandth here.
    assert at_least(score(problem, table.mapping([group])), best, 0.999)


@settings(max_examples=60, deadline=None)
@given(problems(4, 9))
def test_all_packings_are_searched(problem: MappingProblem) -> None:
    table = MappingTable(problem)
    packing = Packing(table, np.arange(len(table))) if len(table) else None
    if packing is None or not packing.complete:
        return
    found = packing.best(problem.workers, 0.0, lambda: False)
    assert found is not None
    assert score(problem, table.mapping(found[1])) == pytest.approx(
        score(problem, exact_mapping(problem))
    )
    assert packing.best(problem.workers, found[0], lambda: False) is None


@given(problems(6, 20), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_a_mapping_is_a_function_of_its_arguments(problem: MappingProblem, seed: int) -> None:
    assert fast(problem, 20, seed) == fast(problem, 20, seed)
    assert annealed(problem, seed) == annealed(problem, seed)


@given(problems(6, 20))
@settings(max_examples=30, deadline=None)
def test_time_that_is_up_at_once_still_gives_an_answer(problem: MappingProblem) -> None:
    for solve in (fast_mapping, annealed_mapping):
        assert feasible(problem, solve(problem, random.Random(1), should_stop=lambda: True))


# -- warm start ---------------------------------------------------------------------------------


def drifted(problem: MappingProblem, rng: random.Random, by: float = 0.1) -> MappingProblem:
    """Return the problem after every camera's budgets have changed by up to so much."""
    cameras = []
    for camera in problem.cameras:
        factor = rng.uniform(1 - by, 1 + by)
        budgets = tuple(round(budget * factor, 3) for budget in camera.budget_ms)
        cameras.append(replace(camera, budget_ms=budgets))
    return replace(problem, cameras=tuple(cameras))


def variant_of(mapping: Mapping) -> dict[int, int]:
    return {c: worker.variant for worker in mapping.workers for c in worker.cameras}


@settings(max_examples=40, deadline=None)
@given(problems(5, 20), st.integers(0, 99))
def test_a_mapping_in_force_stays_while_nothing_is_clearly_better(
    problem: MappingProblem, seed: int
) -> None:
    first = fast(problem, 30, seed)
    again = fast_mapping(
        problem,
        random.Random(seed + 1),
        should_stop=lambda: False,
        iterations_max=30,
        previous=first,
    )
    changed = score(problem, again) != score(problem, first)
    if not changed:
        assert variant_of(again) == variant_of(first)
    else:
        more = again.served > first.served
        assert more or again.objective(problem) > 1.005 * first.objective(problem)


@settings(max_examples=30, deadline=None)
@given(problems(5, 16), st.integers(0, 99), st.integers(0, 4))
def test_a_warm_start_is_feasible_and_no_worse_than_what_is_kept(
    problem: MappingProblem, seed: int, gone: int
) -> None:
    previous = fast(problem, 30, seed)
    now = drifted(problem, random.Random(seed), 0.3)
    now = replace(now, cameras=now.cameras[: max(0, len(now.cameras) - gone)])
    warm = fast_mapping(
        now, random.Random(seed), should_stop=lambda: True, previous=previous, better_by=1.0
    )
    assert feasible(now, warm)
    untouched = sum(
        len(worker.cameras)
        for worker in previous.workers
        if all(c < len(now.cameras) for c in worker.cameras)
        and feasible(replace(now, workers=1), Mapping((worker,)))
    )
    assert warm.served >= untouched


def test_a_warm_start_moves_fewer_cameras() -> None:
    churn = {True: 0, False: 0}
    for seed in range(6):
        problem = jellyfish(random.Random(seed), 3, 14)
        for warm in churn:
            steps = random.Random(seed)
            last = fast(problem, 60)
            for _ in range(5):
                now = jellyfish(random.Random(seed), 3, 14, steps)
                mapping = fast_mapping(
                    now,
                    random.Random(seed),
                    should_stop=lambda: False,
                    iterations_max=60,
                    previous=last if warm else None,
                )
                before, after = variant_of(last), variant_of(mapping)
                churn[warm] += sum(before.get(c) != after.get(c) for c in range(14))
                last = mapping
    assert churn[True] < 0.7 * churn[False]


def test_under_a_wide_range_of_problems_more_time_is_never_worse() -> None:
    for seed in range(12):
        problem = anything(random.Random(seed), 4, 20)
        short, long = fast(problem, 0), fast(problem, 80)
        assert at_least(score(problem, long), score(problem, short))
