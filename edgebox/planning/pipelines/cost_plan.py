"""Splits a pipeline's deadline over its modules at the least cost. Pure.

Each module's cheapest plans by latency are its front. The fronts decide how the deadline is split
(`latency_splitting`), first in coarse steps, then in fine ones near the first result. What the
deadline leaves is given repeatedly to the module that saves most by it.

Differs from Harpagon (section III-D), which raises one configuration after another by its saving
per unit of latency, on the assumption that a module runs one configuration.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from edgebox.planning.pipelines.cost_problem import CostProblem
from edgebox.planning.pipelines.latency_fronts import Front, module_front, module_plans
from edgebox.planning.pipelines.latency_splitting import split_deadline
from edgebox.planning.pipelines.module_plan import ModulePlan, plan_within

STEPS = 30
"""Latencies of a module's first front differ by at least the deadline divided by this."""

ROUNDS = 2
"""The first round looks at all latencies, the second near those that the first one found."""

REFINEMENT = 8
"""By how much the steps of the second round are smaller."""


@dataclass(frozen=True, slots=True)
class CostPlan:
    """The machines of a pipeline."""

    modules: tuple[ModulePlan, ...]
    """In the order of the problem's modules."""

    @property
    def cost(self) -> float:
        """The sum of the modules' costs."""
        return sum(module.cost for module in self.modules)


def planned_cost(problem: CostProblem) -> CostPlan | None:
    """Return machines within the deadline on every path; None: no machines are fast enough."""
    least_ns = problem.least_latencies_ns
    longest_ns = problem.longest_ns(least_ns)
    if max(longest_ns) > problem.slo_ns:
        return None
    best = _in_proportion(problem, least_ns, longest_ns)
    limits_ns = [
        problem.slo_ns - path_ns + own_ns
        for path_ns, own_ns in zip(longest_ns, least_ns, strict=True)
    ]
    ranges = [(own_ns, limit_ns) for own_ns, limit_ns in zip(least_ns, limits_ns, strict=True)]
    step_ns = problem.slo_ns // STEPS
    for _ in range(ROUNDS):
        found = split_deadline(problem, _fronts(problem, ranges, max(1, step_ns), _cost(best)))
        if found is None:
            break
        plans = _with_slack(problem, _plans(problem, found))
        best = min(best, plans, key=_cost)
        ranges = [
            (
                max(low_ns, plan.latency_ns - 2 * step_ns),
                min(high_ns, plan.latency_ns + 2 * step_ns),
            )
            for plan, low_ns, high_ns in zip(best, least_ns, limits_ns, strict=True)
        ]
        step_ns //= REFINEMENT
    return CostPlan(tuple(best))


def _in_proportion(
    problem: CostProblem, least_ns: Sequence[int], longest_ns: Sequence[int]
) -> list[ModulePlan]:
    """Return plans for a split in proportion to the modules' least latencies, a first solution."""
    limits_ns = [
        own_ns * problem.slo_ns // path_ns
        for own_ns, path_ns in zip(least_ns, longest_ns, strict=True)
    ]
    return _with_slack(problem, _plans(problem, limits_ns))


def _plans(problem: CostProblem, limits_ns: Sequence[int]) -> list[ModulePlan]:
    return [
        plan_within(module, limit_ns)
        for module, limit_ns in zip(problem.modules, limits_ns, strict=True)
    ]


def _cost(plans: Sequence[ModulePlan]) -> float:
    return sum(plan.cost for plan in plans)


def _fronts(
    problem: CostProblem, ranges_ns: Sequence[tuple[int, int]], step_ns: int, cost_max: float
) -> list[Front]:
    """Return the front of each module in a range of latencies, where it can lead to less cost."""
    longest = _plans(problem, [high_ns for _, high_ns in ranges_ns])
    spare = max(0.0, cost_max - _cost(longest))
    each = zip(problem.modules, longest, ranges_ns, strict=True)
    return [
        module_front(
            len(problem.modules),
            at,
            module_plans(module, plan, low_ns, step_ns, plan.cost + spare),
        )
        for at, (module, plan, (low_ns, _)) in enumerate(each)
    ]


def _with_slack(problem: CostProblem, plans: list[ModulePlan]) -> list[ModulePlan]:
    """Give what the deadline leaves to the module that saves most, until none saves anything."""
    while True:
        longest_ns = problem.longest_ns([plan.latency_ns for plan in plans])
        best, best_saving = None, 1e-9 * sum(plan.cost for plan in plans)
        for at, (module, plan) in enumerate(zip(problem.modules, plans, strict=True)):
            slack_ns = problem.slo_ns - longest_ns[at]
            if slack_ns <= 0:
                continue
            cheaper = plan_within(module, plan.latency_ns + slack_ns)
            if plan.cost - cheaper.cost > best_saving:
                best, best_saving = (at, cheaper), plan.cost - cheaper.cost
        if best is None:
            return plans
        plans[best[0]] = best[1]
