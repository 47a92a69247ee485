"""Owns what a set of cameras on one worker is worth, for many sets at once, in numpy. Pure.

A worker's value depends only on the set of its cameras: how many there are, their total rate, and
the tightest budget for each variant. A variant's worthwhile batch sizes rise in latency and in
capacity together, so a camera *tolerates* the first few of them, a load *needs* one of them or a
later one, and a variant will do when what the load needs is tolerated by every camera.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.planning.mapping_problem import (
    RATE_UNITS_PER_HZ,
    Mapping,
    MappingProblem,
    mapping_of,
    rate_units,
    worthwhile,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tolerances = NDArray[np.int16]


class MappingTable:
    """A problem as arrays: n cameras that some variant can serve, v variants by accuracy.

    Variants run from the most accurate to the least; the column after them stands for "none".
    Every method numbers cameras and variants by their place here, not in the problem.
    """

    def __init__(self, problem: MappingProblem) -> None:
        self.problem = problem
        accuracies = [variant.accuracy for variant in problem.variants]
        ranked = sorted(range(len(accuracies)), key=lambda j: (-accuracies[j], j))
        configurations = [worthwhile(problem.variants[j]) for j in ranked]
        tolerance = np.zeros((len(problem.cameras), len(ranked)), np.int16)
        for at, (j, of) in enumerate(zip(ranked, configurations, strict=True)):
            budgets = np.array([camera.budget_ms[j] for camera in problem.cameras], np.float64)
            doubled = [2 * c.latency_ms for c in of]
            tolerance[:, at] = np.searchsorted(doubled, budgets, side="right")
        units = np.array([rate_units(camera.rate_hz) for camera in problem.cameras], np.int64)
        reach = np.zeros(
            tolerance.shape, np.int64
        )  # what a camera's worker could serve, by variant
        for at, of in enumerate(configurations):
            reach[:, at] = np.array([0, *(c.capacity for c in of)])[tolerance[:, at]]
        useful = (reach >= units[:, None]) & (tolerance > 0)
        self.cameras: Ints = np.flatnonzero(useful.any(axis=1))
        """(n,) of each camera its place in the problem."""
        columns = np.flatnonzero(useful.any(axis=0))
        self.variants = [ranked[at] for at in columns]
        self.configurations = [configurations[at] for at in columns]
        self.units: Ints = units[self.cameras]
        """(n,) rates in rate units."""
        self.tolerance: Tolerances = np.ones((len(self.cameras), len(columns) + 1), np.int16)
        """(n, v + 1) how many of a variant's configurations a camera tolerates."""
        self.tolerance[:, :-1] = tolerance[self.cameras][:, columns]
        self.accuracy: Floats = np.array([*(accuracies[j] for j in self.variants), -np.inf])
        """(v + 1,) falling."""
        self._capacities: Ints = np.array(
            sorted({c.capacity for of in self.configurations for c in of}), np.int64
        )
        self._need = self._needs()
        self.each = float(1 << int(self._worth_at_most()).bit_length())
        """What serving one camera more is worth: more than all accuracy together."""
        self._weight = self.accuracy / RATE_UNITS_PER_HZ

    def __len__(self) -> int:
        return len(self.cameras)

    def values(self, tolerance: Tolerances, load: Ints, count: Any) -> Floats:
        """Return what sets of cameras are worth on a worker of their own.

        Args:
            tolerance: (..., v + 1) the least tolerance of each set.
            load: (...) its total rate in rate units, above 0.
            count: (...) how many cameras it has.

        Returns:
            (...) the sum of accuracy times rate, and `each` per camera; -inf: not feasible.
        """
        will_do = self._need[self._capacities.searchsorted(load)] < tolerance
        worth: Floats = load * self._weight[will_do.argmax(axis=-1)]
        worth += self.each * count
        return worth

    def choice(self, cameras: Ints) -> int:
        """Return the variant on which one feasible set of cameras is served, by its column."""
        cls = self._capacities.searchsorted(self.units[cameras].sum())
        return int((self._need[cls] < self.tolerance[cameras].min(axis=0)).argmax())

    def mapping(self, groups: Sequence[Ints]) -> Mapping:
        """Return groups of cameras, each feasible on one worker, as a mapping."""
        out = []
        for cameras in groups:
            if len(cameras):
                cls = self._capacities.searchsorted(self.units[cameras].sum())
                at = self.choice(cameras)
                batch = self.configurations[at][int(self._need[cls, at])].batch
                out.append((self.variants[at], batch, [int(c) for c in self.cameras[cameras]]))
        return mapping_of(self.problem, out)

    def _needs(self) -> Tolerances:
        """Return (loads' classes, v + 1): the first configuration that serves such a load."""
        need = np.zeros((len(self._capacities) + 1, len(self.variants) + 1), np.int16)
        for at, of in enumerate(self.configurations):
            capacities = [c.capacity for c in of]
            need[:-1, at] = np.searchsorted(capacities, self._capacities)
            need[-1, at] = len(of)
        return need

    def _worth_at_most(self) -> float:
        best = max(0.0, float(self.accuracy[0]))
        return best * float(self.units.sum()) / RATE_UNITS_PER_HZ + 1
