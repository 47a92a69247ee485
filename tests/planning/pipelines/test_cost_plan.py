"""A pipeline's plan: within the deadline on every path, near the least cost, for any graph."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harpagon.latency_splitting import harpagon_plan
from benchmarks.harpagon.random_pipelines import SHAPES, random_pipeline
from benchmarks.pipeline_costs import best_known_cost
from edgebox.planning.pipelines.cost_plan import planned_cost
from edgebox.planning.pipelines.cost_problem import CostProblem
from edgebox.planning.pipelines.module_plan import cheapest_plan
from tests.planning.pipelines.test_module_plan import MS, check, modules
from tests.planning.pipelines.worked_examples import M1, M3

GRID = 80


def paths(problem: CostProblem) -> list[list[int]]:
    """Return all paths from a module without predecessors to one without successors."""
    open_paths = [[at] for at, before in enumerate(problem.predecessors) if not before]
    found = []
    while open_paths:
        path = open_paths.pop()
        after = problem.successors[path[-1]]
        open_paths += [[*path, at] for at in after]
        found += [] if after else [path]
    return found


@st.composite
def pipelines(draw: st.DrawFn) -> CostProblem:
    count = draw(st.integers(1, 5))
    pairs = [(at, to) for at in range(count) for to in range(at + 1, count)]
    edges = tuple(pair for pair in pairs if draw(st.booleans()))
    members = tuple(draw(modules(configurations_max=3)) for _ in range(count))
    return CostProblem(draw(st.integers(10, 2_000)) * MS, members, edges)


@given(pipelines())
def test_every_path_is_within_the_deadline(problem: CostProblem) -> None:
    plan = planned_cost(problem)
    assert (plan is None) == (problem.least_latency_ns > problem.slo_ns)
    if plan is None:
        return
    for of, own in zip(problem.modules, plan.modules, strict=True):
        check(of, own, own.latency_ns)
    for path in paths(problem):
        assert sum(plan.modules[at].latency_ns for at in path) <= problem.slo_ns
    assert plan.cost == pytest.approx(sum(own.cost for own in plan.modules))


def test_one_module_costs_what_its_cheapest_machines_cost() -> None:
    plan = planned_cost(CostProblem(1_000_000_000, (M3,), ()))
    assert plan is not None
    assert plan.cost == pytest.approx(5.0)


def test_a_join_waits_for_the_slowest_and_spares_the_others() -> None:
    """M1 needs .4 s for its best batches; beside it M3 may take as long and not more."""
    problem = CostProblem(400_000_000, (M1, M3), ())
    plan = planned_cost(problem)
    assert plan is not None
    alone = [cheapest_plan(of, problem.slo_ns) for of in problem.modules]
    assert plan.cost == pytest.approx(sum(own.cost for own in alone if own))


def least_on_a_grid(problem: CostProblem) -> float:
    """Brute force: the least cost of all splits of a chain of two or three into 80 parts."""
    limits = [problem.slo_ns * at // GRID for at in range(1, GRID + 1)]
    costs = []
    for of in problem.modules:
        plans = [cheapest_plan(of, limit_ns) for limit_ns in limits]
        costs.append(np.array([plan.cost if plan else np.inf for plan in plans]))
    best = costs[0]
    for other in costs[1:]:
        sums = best[:, None] + other
        parts = np.add.outer(np.arange(1, GRID + 1), np.arange(1, GRID + 1))
        joined = np.full(GRID, np.inf)
        for total in range(2, GRID + 1):
            joined[total - 1] = sums[parts == total].min()
        best = np.minimum.accumulate(joined)
    return float(best[-1])


def test_no_split_of_a_chain_into_many_parts_costs_much_less() -> None:
    chance = Random(11)
    excess = []
    for _ in range(40):
        problem = random_pipeline(chance, "chain", modules_max=3)
        plan = planned_cost(problem)
        assert plan is not None
        excess.append(plan.cost / min(plan.cost, least_on_a_grid(problem)) - 1)
    assert sum(over <= 0.01 for over in excess) >= 0.93 * len(excess)
    assert max(excess) < 0.1


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_near_the_best_known_cost_and_harpagon_is_not_below_it(shape: str) -> None:
    chance = Random(f"12 {shape}")
    excess = []
    for _ in range(8):
        problem = random_pipeline(chance, shape, modules_max=5)
        plan, paper = planned_cost(problem), harpagon_plan(problem)
        assert plan is not None
        best = best_known_cost(problem, plan.cost, paper.cost if paper else plan.cost)
        excess.append(plan.cost / best - 1)
        assert paper is None or plan.cost <= paper.cost * 1.01
    assert sum(over <= 0.01 for over in excess) >= 7
