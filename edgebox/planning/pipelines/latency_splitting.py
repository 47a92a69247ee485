"""Splits a deadline over modules by their fronts of latency and cost. Pure.

Fronts of modules in series and in parallel are merged until the pipeline is one part. The graph of
the parts that stay, which is not series-parallel, is searched by branch and bound.
"""

import math
from collections.abc import Sequence

import numpy as np

from edgebox.planning.pipelines.cost_problem import CostProblem
from edgebox.planning.pipelines.latency_fronts import Front, in_parallel, in_series

NODES_MAX = 1_000
"""Steps of the branch and bound."""


def split_deadline(problem: CostProblem, fronts: Sequence[Front]) -> list[int] | None:
    """Return each module's latency at least cost; None: no choice is within the deadline.

    Args:
        problem: the pipeline.
        fronts: of each module.
    """
    parts = dict(enumerate(fronts))
    before = {at: set(problem.predecessors[at]) for at in parts}
    after = {at: set(problem.successors[at]) for at in parts}
    while _merge_one(parts, before, after, problem.slo_ns):
        pass
    if len(parts) == 1:
        [part] = parts.values()
        fits = np.flatnonzero(part.latencies_ns <= problem.slo_ns)
        return [int(ns) for ns in part.limits_ns[fits[0]]] if len(fits) else None
    return _Branching(parts, before, after, problem.slo_ns).solve()


Neighbours = dict[int, set[int]]


def _merge_one(
    parts: dict[int, Front], before: Neighbours, after: Neighbours, limit_ns: int
) -> bool:
    """Merge two parts in series or in parallel; False: there are none."""
    for at, part in parts.items():
        for other, beside in parts.items():
            if at < other and before[at] == before[other] and after[at] == after[other]:
                parts[at] = in_parallel(part, beside, limit_ns)
                _remove(other, parts, before, after)
                return True
        if len(after[at]) == 1:
            [follower] = after[at]
            if before[follower] == {at}:
                parts[at] = in_series(part, parts[follower], limit_ns)
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
        chosen = [self._parts[at].limits_ns[point] for at, point in self._best.items()]
        return [int(limit_ns) for limit_ns in np.sum(chosen, axis=0)]

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
