"""Algorithm 2 of Harpagon, with node merging, cost-direct and reassigned latency (section III-D).

What the paper leaves open: moves that do not lower the cost are refused, without which the
algorithm does not end; of the last moves that cost-direct takes back, 0 to 4 are tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harpagon.module_scheduling import with_dummy_requests, with_reassigned_latency
from edgebox.planning.pipelines.cost_plan import CostPlan
from edgebox.planning.pipelines.cost_problem import Configuration, CostProblem, Module
from edgebox.planning.pipelines.module_plan import ModulePlan, latency_ns

REVERSED_MAX = 4

_Choice = tuple[Configuration, ...]


@dataclass(frozen=True, slots=True)
class _Move:
    """Other configurations for modules of one group."""

    choice: _Choice
    saving: float
    efficiency: float
    """Saving per nanosecond of latency."""


def latency_cost_efficiency(module: Module, before: Configuration, after: Configuration) -> float:
    """Return the saved cost per second of latency when one configuration replaces another."""
    saving = module.rate_hz * (before.request_cost - after.request_cost)
    longer_ns = latency_ns(after, module.rate_hz) - latency_ns(before, module.rate_hz)
    return saving / longer_ns * 1e9 if longer_ns > 0 else float("inf")


def harpagon_plan(problem: CostProblem) -> CostPlan | None:
    """Return the cheapest of the paper's plans; None: its first configurations are too slow."""
    plans = [
        plan
        for merging in (False, True)
        for reversed_moves in range(REVERSED_MAX + 1)
        if (plan := _planned(problem, merging, reversed_moves)) is not None
    ]
    return min(plans, key=lambda plan: plan.cost, default=None)


def _planned(problem: CostProblem, merging: bool, reversed_moves: int) -> CostPlan | None:
    split = _Splitting(problem, merging)
    history = split.run(split.default(), "efficiency")
    if history is None:
        return None
    kept = history[max(0, len(history) - 1 - reversed_moves)]
    final = split.run(kept, "saving") if reversed_moves else history
    assert final is not None
    plans = []
    for module, configuration in zip(problem.modules, final[-1], strict=True):
        plan = with_dummy_requests(module, latency_ns(configuration, module.rate_hz))
        if plan is None:
            return None
        plans.append(plan)
    return CostPlan(tuple(_reassigned(problem, plans)))


class _Splitting:
    """One run of algorithm 2."""

    def __init__(self, problem: CostProblem, merging: bool) -> None:
        self._problem = problem
        places = range(len(problem.modules))
        key = (
            (lambda at: (problem.predecessors[at], problem.successors[at]))
            if merging
            else (lambda at: at)
        )
        groups: dict[object, list[int]] = {}
        for at in places:
            groups.setdefault(key(at), []).append(at)
        self._groups = list(groups.values())

    def default(self) -> _Choice:
        """Return the smallest batch on the most expensive hardware for each module."""
        return tuple(
            min(module.configurations, key=lambda c: (-c.price, c.batch))
            for module in self._problem.modules
        )

    def run(self, choice: _Choice, by: str) -> list[_Choice] | None:
        """Return the choices after each move; None: the first is too slow."""
        if not self._in_time(choice):
            return None
        history = [choice]
        while True:
            moves = [
                move
                for group in self._groups
                for move in self._moves(history[-1], group)
                if self._in_time(move.choice)
            ]
            if not moves:
                return history
            history.append(max(moves, key=lambda move: getattr(move, by)).choice)

    def _in_time(self, choice: _Choice) -> bool:
        longest_ns = self._problem.longest_ns(self._latencies(choice))
        return max(longest_ns) <= self._problem.slo_ns

    def _latencies(self, choice: _Choice) -> list[int]:
        modules = self._problem.modules
        return [latency_ns(c, m.rate_hz) for c, m in zip(choice, modules, strict=True)]

    def _moves(self, choice: _Choice, group: Sequence[int]) -> list[_Move]:
        """Return the moves of a group: the cheapest configurations within each latency."""
        modules = self._problem.modules
        options = {
            at: [(latency_ns(c, modules[at].rate_hz), c) for c in modules[at].configurations]
            for at in group
        }
        before_ns = max(latency_ns(choice[at], modules[at].rate_hz) for at in group)
        found = []
        for limit_ns in sorted({ns for of in options.values() for ns, _ in of}):
            moved = list(choice)
            for at in group:
                within = [c for ns, c in options[at] if ns <= limit_ns]
                moved[at] = min([*within, choice[at]], key=lambda c: c.request_cost)
            saving = sum(
                modules[at].rate_hz * (choice[at].request_cost - moved[at].request_cost)
                for at in group
            )
            after_ns = max(latency_ns(moved[at], modules[at].rate_hz) for at in group)
            if saving > 1e-12:
                longer_ns = after_ns - before_ns
                efficiency = saving / longer_ns if longer_ns > 0 else float("inf")
                found.append(_Move(tuple(moved), saving, efficiency))
        return found


def _reassigned(problem: CostProblem, plans: list[ModulePlan]) -> list[ModulePlan]:
    """Give what the deadline leaves to the residual workload that saves most by it."""
    while True:
        longest_ns = problem.longest_ns([plan.latency_ns for plan in plans])
        best: tuple[float, int, ModulePlan] | None = None
        for at, (module, plan) in enumerate(zip(problem.modules, plans, strict=True)):
            limit_ns = plan.latency_ns + problem.slo_ns - longest_ns[at]
            better = with_reassigned_latency(module, plan, limit_ns)
            if better is not None and (best is None or plan.cost - better.cost > best[0]):
                best = plan.cost - better.cost, at, better
        if best is None or best[0] <= 1e-12:
            return plans
        plans[best[1]] = best[2]
