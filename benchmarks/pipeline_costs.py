"""Compare the cost of pipelines by two planners, ours and Harpagon's.

Run it with `python -m benchmarks.pipeline_costs`.

The best known cost of a pipeline is the least that either planner finds, ours also with finer and
with coarser steps.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from random import Random
from unittest import mock

from benchmarks.harpagon.latency_splitting import harpagon_plan
from benchmarks.harpagon.random_pipelines import SHAPES, random_pipeline
from edgebox.planning.pipelines import cost_plan, latency_fronts
from edgebox.planning.pipelines.cost_plan import CostPlan, planned_cost
from edgebox.planning.pipelines.cost_problem import CostProblem

_OTHER_STEPS = ((20, 50, 3), (60, 100, 3), (300, 200, 2))
"""Steps, points of a merged front and rounds."""


def best_known_cost(problem: CostProblem, *costs: float) -> float:
    """Return the least of some costs and of our planner's with other steps."""
    found = list(costs)
    for steps, points, rounds in _OTHER_STEPS:
        with (
            mock.patch.object(cost_plan, "STEPS", steps),
            mock.patch.object(cost_plan, "ROUNDS", rounds),
            mock.patch.object(latency_fronts, "POINTS_MAX", points),
        ):
            plan = planned_cost(problem)
        found += [plan.cost] if plan else []
    return min(found)


def _timed(solve: Callable[[CostProblem], CostPlan | None], of: CostProblem) -> tuple[float, float]:
    """Return the cost, infinite without a plan, and milliseconds of CPU time."""
    began_s = time.process_time()
    plan = solve(of)
    return plan.cost if plan else float("inf"), 1e3 * (time.process_time() - began_s)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipelines", type=int, default=100, help="of each shape")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print("| graph | planner | within 1 % of best known | mean excess cost | none found | ms |")
    print("|---|---|---|---|---|---|")
    for shape in SHAPES:
        chance = Random(f"{arguments.seed} {shape}")
        problems = [random_pipeline(chance, shape) for _ in range(arguments.pipelines)]
        ours = [_timed(planned_cost, problem) for problem in problems]
        paper = [_timed(harpagon_plan, problem) for problem in problems]
        best = [
            best_known_cost(problem, own[0], other[0])
            for problem, own, other in zip(problems, ours, paper, strict=True)
        ]
        for name, found in (("ours", ours), ("Harpagon", paper)):
            excess = [cost / least - 1 for (cost, _), least in zip(found, best, strict=True)]
            solved = [over for over in excess if over < float("inf")]
            print(
                f"| {shape} | {name} | {sum(over <= 0.01 for over in excess) / len(excess):.0%} "
                f"| {statistics.mean(solved):.1%} | {len(excess) - len(solved)} "
                f"| {statistics.median(ms for _, ms in found):.1f} |"
            )


if __name__ == "__main__":
    main()
