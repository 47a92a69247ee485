"""Decides the mapping as Jellyfish does: annealed variants, each filled in turn. Pure.

Source: Jellyfish, sections 4.2 and 4.3, Algorithms 1 and 2, with the paper's parameters. It is the
reference that the planner is measured against. Where the paper leaves things open: the first
mode ends when all cameras are mapped or the temperature is down; the second then starts at the full
temperature; if not all cameras can be mapped, it is never entered, as in the paper.
"""

import math
import random
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.jellyfish.table import Ints, MappingTable
from edgebox.planning.filling import column_units, fullest
from edgebox.planning.mapping_problem import Mapping, MappingProblem

TEMPERATURE, TEMPERATURE_MIN, COOLING = 0.0125, 0.0005, 0.99


def annealed_mapping(
    problem: MappingProblem,
    rng: random.Random,
    *,
    should_stop: Callable[[], bool],
    previous: Mapping | None = None,
) -> Mapping:
    """Find a mapping as the paper does.

    A few hundred mappings by Algorithm 1 are tried: O(K n capacity / 64) each.

    Args:
        problem: what is to be mapped.
        rng: the source of random numbers.
        should_stop: asked between steps; a first answer is always found.
        previous: the mapping whose variants to start from; None: the smallest on every worker.
    """
    table = MappingTable(problem)
    if not len(table):
        return table.mapping([])
    annealing = _Annealing(table, rng, should_stop)
    smallest = len(table.variants) - 1
    variants = [smallest] * problem.workers
    if previous is not None:
        column = {variant: at for at, variant in enumerate(table.variants)}
        variants = [column.get(worker.variant, smallest) for worker in previous.workers]
    return table.mapping(annealing.run(variants))


class _Solution:
    """Variants, one per worker, and the cameras that Algorithm 1 maps to them."""

    def __init__(self, table: MappingTable, variants: list[int], rng: random.Random) -> None:
        self.variants = sorted(variants)
        # Columns run from the most accurate variant down, which is the order of Algorithm 1.
        self.groups: list[Ints] = packed(table, np.arange(len(table)), self.variants, rng)
        self.served = sum(map(len, self.groups)) / len(table)
        """Share of the cameras that are mapped: the paper's O1."""
        rates = table.units / table.units.sum()
        self.accuracy = sum(
            float(table.accuracy[variant]) * float(rates[group].sum())
            for variant, group in zip(self.variants, self.groups, strict=True)
        )
        """Mean over all cameras, weighted by rate: the paper's O2."""


class _Annealing:
    """Algorithm 2."""

    def __init__(
        self, table: MappingTable, rng: random.Random, should_stop: Callable[[], bool]
    ) -> None:
        self._table, self._rng, self._should_stop = table, rng, should_stop

    def run(self, variants: list[int]) -> list[Ints]:
        """Return the groups of the best solution found."""
        solution = self._degrade(_Solution(self._table, variants, self._rng))
        if solution.served == 1:
            solution = self._upgrade(solution)
        return solution.groups

    def _degrade(self, current: _Solution) -> _Solution:
        """Step down at random until all cameras are mapped; the most cameras win."""
        best, temperature = current, TEMPERATURE
        while best.served < 1 and temperature > TEMPERATURE_MIN and not self._should_stop():
            new = self._neighbour(current, (0, 1))
            if self._accepts(new.served - current.served, temperature):
                current = new
            if (new.served, new.accuracy) > (best.served, best.accuracy):
                best = new
            temperature *= COOLING
        return best

    def _upgrade(self, current: _Solution) -> _Solution:
        """Step at random while all cameras stay mapped; the most accuracy wins."""
        best, temperature = current, TEMPERATURE
        while temperature > TEMPERATURE_MIN and not self._should_stop():
            new = self._neighbour(current, (-1, 0, 1))
            if new.served == 1:
                if self._accepts(new.accuracy - current.accuracy, temperature):
                    current = new
                if new.accuracy > best.accuracy:
                    best = new
            temperature *= COOLING
        return best

    def _neighbour(self, of: _Solution, steps: tuple[int, ...]) -> _Solution:
        last = len(self._table.variants) - 1
        stepped = [v + self._rng.choice(steps) for v in of.variants]
        return _Solution(self._table, [min(max(0, v), last) for v in stepped], self._rng)

    def _accepts(self, gain: float, temperature: float) -> bool:
        return gain >= 0 or self._rng.random() < math.exp(gain / temperature)


def packed(
    table: MappingTable,
    cameras: Ints,
    variants: Sequence[int],
    rng: random.Random | None = None,
) -> list[Ints]:
    """Return groups: workers made as full as possible, one after the other, on given variants.

    Args:
        table: what cameras tolerate; its columns are the variants.
        cameras: those to choose from.
        variants: one for each worker, in the order in which they are filled.
        rng: chooses among equally full ways; None: those that tolerate most.
    """
    step = column_units(table.units, max(of[-1].capacity for of in table.configurations))
    rates = -(-table.units // step)
    total = int(rates.sum()) * step
    groups = []

    def takes_equal() -> bool:
        return rng is not None and rng.random() < 0.5

    for variant in variants:
        capacity = np.array([0, *(c.capacity for c in table.configurations[variant])])
        limits = (np.minimum(capacity, total) // step)[table.tolerance[cameras, variant]]
        chosen = fullest(rates[cameras].tolist(), limits.tolist(), takes_equal)
        groups.append(cameras[chosen])
        cameras = np.delete(cameras, chosen)
    return groups
