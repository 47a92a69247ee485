"""Solves problem P1 of Jellyfish by the planner's search for executors of one variant. Pure.

P1 gives each worker one variant and cameras of its own (`mapping_problem`), so of the ways in which
the planner shares executors only `uniform` applies. Where not all cameras can be served, those that
ask most of a worker's time are left out: as few as possible, by halving.
"""

from dataclasses import replace

import numpy as np

from edgebox.planning.mapping_problem import (
    Mapping,
    MappingProblem,
    mapping_of,
    rate_units,
    worthwhile,
)
from edgebox.planning.option_table import Ints
from edgebox.planning.uniform import UniformGroup, UniformProblem, uniform_groups

EVALUATIONS_MAX = 400
"""So many ways to give workers their variants are looked at; 160 cameras on 16 need about 25."""


def planned_mapping(problem: MappingProblem) -> Mapping:
    """Find a mapping: most cameras, then most accuracy times rate.

    Args:
        problem: what is to be mapped.
    """
    return _Solver(problem).mapping()


class _Solver:
    """A problem as what the planner takes; variants are numbered by rising accuracy."""

    def __init__(self, problem: MappingProblem) -> None:
        self._problem = problem
        accuracy = [variant.accuracy for variant in problem.variants]
        self._ranked = sorted(range(len(accuracy)), key=lambda at: accuracy[at])
        self._worthwhile = [worthwhile(problem.variants[at]) for at in self._ranked]
        budgets = np.array([camera.budget_ms for camera in problem.cameras], np.float64)
        self._budgets = budgets.reshape(-1, len(accuracy))[:, self._ranked]
        self._units = np.array([rate_units(c.rate_hz) for c in problem.cameras], np.int64)
        self._limits = self._limits_of_all()
        rates = np.array([camera.rate_hz for camera in problem.cameras])
        self._accuracy = np.array(accuracy)[self._ranked]
        self._value = rates[:, None] * self._accuracy

    def mapping(self) -> Mapping:
        """Return the best mapping found."""
        everybody = np.flatnonzero((self._limits > 0).any(axis=1))
        groups = self._groups(everybody, EVALUATIONS_MAX)
        if _served(groups) < len(everybody):
            found = self._exchanged(groups, everybody), self._most(everybody)
            groups = max(found, key=lambda each: (_served(each), self._worth(each)))
        return self._written(groups)

    def _limits_of_all(self) -> Ints:
        """Return (n, V) what a worker can serve in the largest batch that a camera bears."""
        limits = np.zeros(self._budgets.shape, np.int64)
        for column, rising in enumerate(self._worthwhile):
            doubled = [2 * of.latency_ms for of in rising]
            borne = np.searchsorted(doubled, self._budgets[:, column], side="right")
            limits[:, column] = np.array([0, *(of.capacity for of in rising)])[borne]
        limits[limits < self._units[:, None]] = 0
        return limits

    def _groups(self, cameras: Ints, evaluations_max: int) -> list[UniformGroup]:
        """Return groups of some cameras, in the numbers of all."""
        limits = self._limits[cameras]
        part = UniformProblem(
            self._problem.workers, False, self._units[cameras], limits, self._value[cameras]
        )
        smallest = (limits > 0).argmax(axis=1)
        largest = limits.shape[1] - (limits > 0)[:, ::-1].argmax(axis=1)
        left_ms = self._budgets[cameras, smallest]
        orders = [np.lexsort((largest, left_ms)).tolist(), np.lexsort((left_ms, largest)).tolist()]
        return [
            replace(group, cameras=tuple(cameras[list(group.cameras)].tolist()))
            for group in uniform_groups(part, orders, evaluations_max)
        ]

    def _most(self, everybody: Ints) -> list[UniformGroup]:
        """Serve those that ask least of a worker's time, as many as can all be served."""
        need = self._units[everybody] / self._limits[everybody].max(axis=1)
        by_need = everybody[np.argsort(need, kind="stable")]
        low, high = 0, len(by_need)
        while low < high:
            tried = (low + high + 1) // 2
            if _served(self._groups(by_need[:tried], 1)) == tried:
                low = tried
            else:
                high = tried - 1
        best: list[UniformGroup] = []
        for tried in range(low, len(by_need) + 1):  # a longer search may find place for one more
            groups = self._groups(by_need[:tried], EVALUATIONS_MAX)
            if _served(groups) < tried and best:
                break
            best = groups
        return self._exchanged(best, everybody)

    def _exchanged(self, groups: list[UniformGroup], everybody: Ints) -> list[UniformGroup]:
        """Serve others instead, one for one, as long as that is worth more."""
        groups = list(groups)
        out = np.setdiff1d(everybody, [at for of in groups for at in of.cameras])
        gain = True
        while gain and len(out):
            gain = False
            for number, of in enumerate(groups):
                found = self._best_exchange(of, out)
                if found is not None:
                    groups[number], gone, come = found
                    out[np.flatnonzero(out == come)] = gone
                    gain = True
        return groups

    def _best_exchange(self, of: UniformGroup, out: Ints) -> tuple[UniformGroup, int, int] | None:
        """Return a group after the best exchange of one of its cameras, who goes and who comes."""
        members = np.array(of.cameras)
        limits, units = self._limits[members], self._units
        rest = [
            np.delete(limits, at, axis=0).min(axis=0, initial=1 << 62) for at in range(len(members))
        ]
        load = units[members].sum() - units[members][:, None] + units[out]
        fits = np.minimum(np.array(rest)[:, None], self._limits[out]) >= load[:, :, None]
        worth = np.where(fits, load[:, :, None] * self._accuracy, -np.inf)
        best = int(worth.argmax())
        gone, come, column = np.unravel_index(best, worth.shape)
        if worth.flat[best] <= units[members].sum() * self._accuracy[of.column] * (1 + 1e-12):
            return None
        cameras = tuple(sorted((*np.delete(members, gone).tolist(), int(out[come]))))
        return UniformGroup(int(column), 1, cameras), int(members[gone]), int(out[come])

    def _worth(self, groups: list[UniformGroup]) -> float:
        return float(sum(self._value[list(of.cameras), of.column].sum() for of in groups))

    def _written(self, groups: list[UniformGroup]) -> Mapping:
        """Write the answer down: each worker takes the smallest batch that carries its load."""
        out = []
        for of in groups:
            load = int(self._units[list(of.cameras)].sum())
            batch = next(c.batch for c in self._worthwhile[of.column] if c.capacity >= load)
            out.append((self._ranked[of.column], batch, of.cameras))
        return mapping_of(self._problem, out)


def _served(groups: list[UniformGroup]) -> int:
    return sum(len(group.cameras) for group in groups)
