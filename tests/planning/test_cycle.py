"""Several variants in turn on one accelerator, against enumeration and against one variant."""

import random
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgebox.planning.cycle import CyclePlan, cycle, cycle_score, shared_in_turn
from edgebox.planning.mapping_exact import exact_mapping
from edgebox.planning.mapping_problem import MappingCamera, MappingProblem, MappingVariant
from tests.planning.mapping_scene import anything, family, problems


def passes(problem: MappingProblem, variant_of: dict[int, int], batch_of: dict[int, int]) -> bool:
    """The test of the cycle, written down a second time, for given batch sizes."""
    time_ms = {v: problem.variants[v].latency_ms[b - 1] for v, b in batch_of.items()}
    cycle_ms = sum(time_ms.values())
    for variant, batch in batch_of.items():
        cameras = [problem.cameras[c] for c, v in variant_of.items() if v == variant]
        if any(cycle_ms + time_ms[variant] > c.budget_ms[variant] for c in cameras):
            return False
        if sum(c.rate_hz for c in cameras) * cycle_ms / 1000 > batch + 1e-7:
            return False
    return True


def enumerated(problem: MappingProblem) -> tuple[int, float]:
    """The best of all assignments with all batch sizes."""
    best = (0, 0.0)
    choices = range(len(problem.variants) + 1)
    for given_ in product(choices, repeat=len(problem.cameras)):
        variant_of = {c: v for c, v in enumerate(given_) if v < len(problem.variants)}
        score = cycle_score(problem, CyclePlan(variant_of, {}, 0))
        active = sorted(set(variant_of.values()))
        if score > best and any(
            passes(problem, variant_of, dict(zip(active, batches, strict=True)))
            for batches in product(range(1, problem.max_batch + 1), repeat=len(active))
        ):
            best = score
    return best


def small(seed: int, cameras: int) -> MappingProblem:
    rng = random.Random(seed)
    problem = anything(rng, 1, cameras)
    variants = family(3, 4, rng.choice([2.0, 5.0, 10.0]), rng.uniform(0.1, 0.9), rng.uniform(2, 12))
    made = tuple(
        MappingCamera(c.id, c.rate_hz, tuple(rng.choice([0.0, 20.0, 45.0, 90.0]) for _ in variants))
        for c in problem.cameras
    )
    return MappingProblem(1, 4, variants, made)


@settings(max_examples=60, deadline=None)
@example(59, 4)  # one camera fits in only where another one moves over at the same time
@given(st.integers(0, 1 << 32), st.integers(0, 5))
def test_with_few_cameras_the_best_of_all_assignments(seed: int, cameras: int) -> None:
    problem = small(seed, cameras)
    plan = shared_in_turn(problem)
    assert passes(problem, plan.variant_of, plan.batch_of)
    best = enumerated(problem)
    found = cycle_score(problem, plan)
    assert found[0] == best[0]
    assert found[1] == pytest.approx(best[1])


@settings(max_examples=50, deadline=None)
@given(problems(1, 8))
def test_never_worse_than_one_variant_for_all(problem: MappingProblem) -> None:
    one = exact_mapping(replace(problem, workers=1))
    found = cycle_score(problem, shared_in_turn(problem))
    assert found[0] >= one.served
    if found[0] == one.served:
        assert found[1] >= one.objective(problem) - 1e-6


def test_with_one_variant_it_is_jellyfishs_test() -> None:
    dnn = MappingVariant("m", 256, 0.5, (10.0, 15.0, 20.0))
    camera = MappingCamera("a", 120.0, (30.0,))
    problem = MappingProblem(1, 3, (dnn,), (camera,))
    plan = cycle(problem, {0: 0})
    # 120 requests/s in 10 ms are 1.2, in 15 ms 1.8: batches of two, and 2 x 15 ms fit.
    assert plan == CyclePlan({0: 0}, {0: 2}, 15.0)
    assert cycle(replace(problem, cameras=(replace(camera, budget_ms=(29.9,)),)), {0: 0}) is None
    assert cycle(replace(problem, cameras=(replace(camera, rate_hz=151.0),)), {0: 0}) is None


def test_a_weak_camera_no_longer_drags_the_others_down() -> None:
    variants = family(16, 12, 2.0)
    strong = [MappingCamera(f"c{at}", 10.0, (100.0,) * 16) for at in range(5)]
    weak = MappingCamera("weak", 10.0, (20.0, *(0.0,) * 15))
    problem = MappingProblem(1, 12, variants, (*strong, weak))
    one = exact_mapping(problem)
    plan = shared_in_turn(problem)
    assert cycle_score(problem, plan)[0] == one.served == 6
    assert plan.variant_of[5] == 0
    assert cycle_score(problem, plan)[1] > 1.3 * one.objective(problem)


def test_nobody_to_serve() -> None:
    empty = MappingProblem(1, 4, family(3, 4), ())
    assert shared_in_turn(empty) == CyclePlan({}, {}, 0)
    hopeless = replace(empty, cameras=(MappingCamera("a", 5.0, (0.0, 0.0, 0.0)),))
    assert shared_in_turn(hopeless).variant_of == {}
    assert cycle(hopeless, {}) == pytest.approx(CyclePlan({}, {}, 0.0))
