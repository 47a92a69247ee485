"""Jellyfish's annealing and the exact solver of P1, against enumeration and the paper's example."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.jellyfish.annealing import annealed_mapping
from benchmarks.jellyfish.exact import exact_mapping
from benchmarks.jellyfish.instances import family, jellyfish
from edgebox.domain.errors import InvalidInputError
from edgebox.planning.mapping_problem import Mapping, MappingCamera, MappingProblem, WorkerMapping
from tests.planning.mapping_scene import best_by_enumeration, feasible, problems, score


def annealed(problem: MappingProblem, seed: int = 1) -> Mapping:
    return annealed_mapping(problem, random.Random(seed), should_stop=lambda: False)


@settings(max_examples=60, deadline=None)
@given(problems(3, 5))
def test_exact_is_what_enumeration_finds(problem: MappingProblem) -> None:
    mapping = exact_mapping(problem)
    assert feasible(problem, mapping)
    assert score(problem, mapping) == pytest.approx(best_by_enumeration(problem))


def test_the_exact_solver_says_when_it_is_too_much() -> None:
    with pytest.raises(InvalidInputError, match="up to 16 cameras, not 20"):
        exact_mapping(jellyfish(random.Random(1), 2, 20))


@given(problems(6, 20), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_annealing_is_a_function_of_its_arguments_and_feasible(
    problem: MappingProblem, seed: int
) -> None:
    mapping = annealed(problem, seed)
    assert mapping == annealed(problem, seed)
    assert feasible(problem, mapping)
    assert feasible(problem, annealed_mapping(problem, random.Random(1), should_stop=lambda: True))


def test_annealing_is_close_to_the_best_where_all_can_be_served() -> None:
    for seed in range(4):
        problem = jellyfish(random.Random(seed), 2, 12)
        best, found = exact_mapping(problem), annealed(problem)
        assert found.served == best.served
        assert found.objective(problem) >= 0.95 * best.objective(problem)


@pytest.mark.parametrize("solver", [annealed, exact_mapping])
def test_nothing_to_map_is_no_mistake(solver: Callable[[MappingProblem], Mapping]) -> None:
    empty = MappingProblem(3, 12, family(), ())
    assert solver(empty) == Mapping((WorkerMapping(0, 1),) * 3)
    hopeless = MappingProblem(3, 12, family(), (MappingCamera("a", 5.0, (0.0,) * 16),))
    assert solver(hopeless).served == 0
