"""Splits a pipeline's deadline over its modules at the least cost. Pure.

Each module's cheapest plans by latency are its front. Fronts of modules in series and in parallel
are merged until the pipeline is one part; then the cheapest point within the deadline gives each
module its latency. Graphs that cannot be merged into one part are searched by branch and bound over
the parts. What the deadline leaves is given repeatedly to the module that saves most by it.

Differs from Harpagon (section III-D), which raises one configuration after another by its saving
per unit of latency, on the assumption that a module runs one configuration.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgebox.planning.pipelines.cost_problem import CostProblem
from edgebox.planning.pipelines.latency_fronts import (
    STEPS,
    Front,
    in_parallel,
    in_series,
    module_front,
    module_plans,
)
from edgebox.planning.pipelines.module_plan import ModulePlan, cheapest_plan

NODES_MAX = 1_000
"""Steps of the branch and bound."""

ROUNDS = 2
REFINEMENT = 8


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
    least_ns = [min(c.duration_ns for c in m.configurations) + 1 for m in problem.modules]
    longest_ns = problem.longest_ns(least_ns)
    if max(longest_ns) > problem.slo_ns:
        return None
    best = _in_proportion(problem, least_ns, longest_ns)
    if best is None:
        return None
    limits_ns = [
        problem.slo_ns - path_ns + own_ns
        for path_ns, own_ns in zip(longest_ns, least_ns, strict=True)
    ]
    ranges = [(own_ns, limit_ns) for own_ns, limit_ns in zip(least_ns, limits_ns, strict=True)]
    step_ns = problem.slo_ns // STEPS
    for _ in range(ROUNDS):
        found = _split(problem, _fronts(problem, ranges, max(1, step_ns), _cost(best)))
        if found is None:
            break
        plans = _with_slack(problem, _plans(problem, found) or best)
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
) -> list[ModulePlan] | None:
    """Return plans for a split in proportion to the modules' least latencies, a first solution."""
    limits_ns = [
        own_ns * problem.slo_ns // path_ns
        for own_ns, path_ns in zip(least_ns, longest_ns, strict=True)
    ]
    plans = _plans(problem, limits_ns)
    return None if plans is None else _with_slack(problem, plans)


def _plans(problem: CostProblem, limits_ns: Sequence[int]) -> list[ModulePlan] | None:
    found = []
    for module, limit_ns in zip(problem.modules, limits_ns, strict=True):
        plan = cheapest_plan(module, limit_ns)
        if plan is None:
            return None
        found.append(plan)
    return found


def _cost(plans: Sequence[ModulePlan]) -> float:
    return sum(plan.cost for plan in plans)


def _fronts(
    problem: CostProblem, ranges_ns: Sequence[tuple[int, int]], step_ns: int, cost_max: float
) -> list[Front]:
    """Return the front of each module in a range of latencies, where it can lead to less cost."""
    first = [
        plan.cost if (plan := cheapest_plan(module, high_ns)) else math.inf
        for module, (_, high_ns) in zip(problem.modules, ranges_ns, strict=True)
    ]
    spare = max(0.0, cost_max - sum(first))
    return [
        module_front(
            len(problem.modules),
            at,
            module_plans(module, range_ns, step_ns, first[at] + spare),
        )
        for at, (module, range_ns) in enumerate(zip(problem.modules, ranges_ns, strict=True))
    ]


def _split(problem: CostProblem, fronts: Sequence[Front]) -> list[int] | None:
    """Return each module's latency limit; None: the fronts have no point within the deadline."""
    parts = dict(enumerate(fronts))
    before = {at: set(problem.predecessors[at]) for at in parts}
    after = {at: set(problem.successors[at]) for at in parts}
    while _merge_one(parts, before, after, problem.slo_ns):
        pass
    if len(parts) == 1:
        [part] = parts.values()
        fits = np.flatnonzero(part.latencies_ns <= problem.slo_ns)
        return part.limits_ns[fits[0]].tolist() if len(fits) else None
    return _Branching(parts, before, after, problem.slo_ns).solve()


Neighbours = dict[int, set[int]]


def _merge_one(
    parts: dict[int, Front], before: Neighbours, after: Neighbours, limit_ns: int
) -> bool:
    """Merge two parts in series or in parallel; False: there are none."""
    for at in parts:
        for other in parts:
            if at < other and before[at] == before[other] and after[at] == after[other]:
                parts[at] = in_parallel(parts[at], parts[other], limit_ns)
                _remove(other, parts, before, after)
                return True
        if len(after[at]) == 1:
            [follower] = after[at]
            if before[follower] == {at}:
                parts[at] = in_series(parts[at], parts[follower], limit_ns)
                after[at] = after[follower]
                for far in after[at]:
                    before[far].add(at)
                _remove(follower, parts, before, after)
                return True
    return False


def _remove(at: int, parts: dict[int, Front], before: Neighbours, after: Neighbours) -> None:
    del parts[at]
    del before[at], after[at]
    for neighbours in (before, after):
        for of in neighbours.values():
            of.discard(at)


class _Branching:
    """Branch and bound over the points of parts whose graph is not series-parallel."""

    def __init__(
        self, parts: dict[int, Front], before: Neighbours, after: Neighbours, slo_ns: int
    ) -> None:
        self._parts, self._before, self._after, self._slo_ns = parts, before, after, slo_ns
        self._order = self._topological()
        self._least_ns = {at: float(part.latencies_ns[-1]) for at, part in parts.items()}
        self._cost = math.inf
        self._best: dict[int, int] | None = None
        self._nodes = 0

    def solve(self) -> list[int] | None:
        """Return each module's latency limit; None: no choice is within the deadline."""
        if any(not len(part.costs) for part in self._parts.values()):
            return None
        self._branch({}, 0.0)
        if self._best is None:
            return None
        limits = sum(self._parts[at].limits_ns[point] for at, point in self._best.items())
        return limits.tolist()  # type: ignore[union-attr]

    def _branch(self, chosen: dict[int, int], cost: float) -> None:
        latencies = {
            at: float(self._parts[at].latencies_ns[chosen[at]])
            if at in chosen
            else self._least_ns[at]
            for at in self._parts
        }
        longest = self._longest(latencies)
        cheapest = {}
        for at in self._parts:
            if at not in chosen:
                spare = self._slo_ns - longest[at] + self._least_ns[at]
                fits = int(np.searchsorted(-self._parts[at].latencies_ns, -spare))
                if fits == len(self._parts[at].costs):
                    return
                cheapest[at] = fits
        bound = cost + sum(float(self._parts[at].costs[p]) for at, p in cheapest.items())
        self._nodes += 1
        if bound >= self._cost * (1 - 1e-12) or self._nodes > NODES_MAX:
            return
        latencies.update({at: float(self._parts[at].latencies_ns[p]) for at, p in cheapest.items()})
        longest = self._longest(latencies)
        if max(longest.values()) <= self._slo_ns:  # the bound is a solution
            self._cost, self._best = bound, {**chosen, **cheapest}
            return
        # The one on the most overlong path that has most to give.
        at = max(cheapest, key=lambda p: (longest[p], latencies[p] - self._least_ns[p]))
        part = self._parts[at]
        for point in range(cheapest[at], len(part.costs)):
            self._branch({**chosen, at: point}, cost + float(part.costs[point]))

    def _longest(self, latencies: dict[int, float]) -> dict[int, float]:
        before = dict.fromkeys(self._parts, 0.0)
        after = dict.fromkeys(self._parts, 0.0)
        for at in self._order:
            before[at] = max((before[p] + latencies[p] for p in self._before[at]), default=0.0)
        for at in reversed(self._order):
            after[at] = max((after[p] + latencies[p] for p in self._after[at]), default=0.0)
        return {at: before[at] + latencies[at] + after[at] for at in self._parts}

    def _topological(self) -> list[int]:
        found: list[int] = []
        while len(found) < len(self._parts):
            found += [
                at for at in self._parts if at not in found and self._before[at] <= set(found)
            ]
        return found


def _with_slack(problem: CostProblem, plans: list[ModulePlan]) -> list[ModulePlan]:
    """Give what the deadline leaves to the module that saves most, until none saves anything."""
    while True:
        longest_ns = problem.longest_ns([plan.latency_ns for plan in plans])
        best, best_saving = None, 1e-9 * sum(plan.cost for plan in plans)
        for at, (module, plan) in enumerate(zip(problem.modules, plans, strict=True)):
            slack_ns = problem.slo_ns - longest_ns[at]
            if slack_ns <= 0:
                continue
            cheaper = cheapest_plan(module, plan.latency_ns + slack_ns)
            if cheaper is not None and plan.cost - cheaper.cost > best_saving:
                best, best_saving = (at, cheaper), plan.cost - cheaper.cost
        if best is None:
            return plans
        plans[best[0]] = best[1]
