"""Decides the mapping within a time budget: edgebox's own solver of P1, never far from optimal. Pure.

P1 is a partition problem: what a worker is worth depends only on the set of its cameras. So
orders of the cameras are cut into groups by dynamic programming, the groups improved by moves and
swaps, and then, as long as the caller lets it, a few groups at a time are taken apart and cut
anew from perturbed orders. Jellyfish's own solver (`mapping_annealing`) instead fixes the variants
first and fills them one after the other; it finds less and, overloaded, gives up early.
"""

import random
from collections.abc import Callable

import numpy as np

from edgebox.planning.mapping_exact import best_groups
from edgebox.planning.mapping_fill import columns, fullest
from edgebox.planning.mapping_moves import improve
from edgebox.planning.mapping_problem import Mapping, MappingProblem
from edgebox.planning.mapping_splits import split
from edgebox.planning.mapping_table import Floats, Ints, MappingTable
from edgebox.planning.mapping_warm import kept_mapping, settled

BETTER_BY = 1.005
"""A new mapping must be worth this many times the one in force."""

_EXACT_CAMERAS = 12
_EXACT_CAMERAS_BY_PAIR = 14
_ELEMENTS = 1 << 16
"""About how many numbers one step may work on: a fraction of a millisecond."""


def fast_mapping(
    problem: MappingProblem,
    rng: random.Random,
    *,
    should_stop: Callable[[], bool],
    iterations_max: int = 100_000,
    previous: Mapping | None = None,
    better_by: float = BETTER_BY,
) -> Mapping:
    """Find a mapping: most cameras, then the most accuracy.

    Args:
        problem: what is to be mapped.
        rng: of all chance.
        should_stop: asked between steps; a first answer is always found.
        iterations_max: bound on the steps after the first answer.
        previous: the mapping in force, for a problem with the same workers, variants and cameras
            (as far as they are still there, numbered as in `problem`).
        better_by: a mapping that serves no more cameras than the one in force, as far as that is
            still feasible, replaces it only if its objective is larger by this factor.
    """
    table = MappingTable(problem)
    kept = None if previous is None else kept_mapping(problem, previous)
    if not len(table):
        return table.mapping([])
    search = _Search(table, problem.workers, rng, should_stop)
    if not search.solve_exactly():
        if kept is not None:
            search.start_from(kept)
        search.start()
        search.run(iterations_max)
    found = table.mapping(search.best_groups())
    return found if kept is None else settled(problem, kept, found, better_by)


class _Search:
    """The best groups so far, and how to find better ones."""

    def __init__(
        self,
        table: MappingTable,
        workers: int,
        rng: random.Random,
        should_stop: Callable[[], bool],
    ) -> None:
        self._table = table
        self._n = len(table)
        self._workers = min(workers, self._n)
        self._rng = np.random.default_rng(rng.getrandbits(64))
        self._should_stop = should_stop
        self._all: Ints = np.arange(self._n)
        self._longest = self._group_size_at_most()
        tolerance = table.tolerance[:, :-1].astype(np.float64)
        scale = np.maximum(1.0, tolerance.max(axis=0))
        self._tolerance: Floats = tolerance / scale
        """(n, v) between 0 and 1."""
        self._mean: Floats = self._tolerance.mean(axis=1)
        rates = table.units.astype(np.float64)
        self._rate: Floats = rates / rates.max()
        self._worker: Ints = np.full(self._n, self._workers)
        self._score = 0.0
        self._best, self._best_score = self._worker, 0.0
        self._bound = self._score_at_most()

    def best_groups(self) -> list[Ints]:
        """Return the cameras of each worker in the best mapping found."""
        return [np.flatnonzero(self._best == at) for at in range(self._workers)]

    def solve_exactly(self) -> bool:
        """Find the optimum where looking at all subsets takes no longer than searching."""
        if self._workers > 2 or self._n > _EXACT_CAMERAS_BY_PAIR:
            return False
        self._take(best_groups(self._table, self._all, self._workers))
        return True

    def start_from(self, mapping: Mapping) -> None:
        """Begin with a mapping of feasible groups."""
        place = {int(camera): at for at, camera in enumerate(self._table.cameras)}
        busy = [worker.cameras for worker in mapping.workers if worker.cameras]
        self._take([np.array([place[c] for c in cameras]) for cameras in busy])
        self._improve_all()

    def start(self) -> None:
        """Cut the orders that are good by themselves; fill up if that leaves cameras out."""
        orders = self._plain_orders()
        rows = max(1, _ELEMENTS // self._elements(self._n))
        for at in range(0, len(orders), rows):
            score, groups = split(
                self._table, orders[at : at + rows], self._workers, self._longest
            )
            if score > self._score:
                self._take(groups)
            if self._should_stop():
                return
        self._improve_all()
        if (self._worker == self._workers).any() and not self._should_stop():
            self._fill()

    def run(self, iterations_max: int) -> None:
        """Take groups apart and cut them anew until time is up or nothing better can exist."""
        stale = 0
        for at in range(iterations_max):
            if self._best_score >= self._bound - 1e-6 or self._should_stop():
                return
            if stale >= 30 + 2 * self._n:
                stale = 0
                self._restart()
                continue
            before = self._best_score
            self._recut()
            stale = 0 if self._best_score > before else stale + 1

    # -- steps --------------------------------------------------------------------------------

    def _recut(self) -> None:
        """Take a few groups with alike cameras apart, with some that are not served."""
        chosen = self._alike()
        members = np.flatnonzero(np.isin(self._worker, chosen))
        out = np.flatnonzero(self._worker == self._workers)
        room = max(2, 2 * self._longest)
        if len(out) > room:
            out = self._rng.choice(out, room, replace=False)
        cameras = np.concatenate((members, out))
        if len(cameras) < 2:
            return
        now = sum(self._table.value(np.flatnonzero(self._worker == at)) for at in chosen)
        if len(cameras) <= _EXACT_CAMERAS and len(chosen) <= 2 and self._rng.random() < 0.5:
            groups = best_groups(self._table, cameras, len(chosen))
            score = sum(self._table.value(group) for group in groups)
        else:
            rows = int(np.clip(_ELEMENTS // self._elements(len(cameras)), 1, 24))
            orders = cameras[self._perturbed(cameras, rows)]
            score, groups = split(self._table, orders, len(chosen), self._longest)
        if score < now - 1e-7 and (score < now - 0.03 * self._table.each or self._rng.random() > 0.03):
            return
        self._worker[members] = self._workers
        for at, group in zip(chosen, groups, strict=False):
            self._worker[group] = at
        self._score += score - now
        if score != now:
            self._improve(cameras, chosen)

    def _restart(self) -> None:
        """Begin anew from a noisy order of all, or from the best."""
        if self._rng.random() < 0.5:
            self._worker, self._score = self._best.copy(), self._best_score
            return
        rows = int(np.clip(_ELEMENTS // self._elements(self._n), 1, 8))
        orders = self._perturbed(self._all, rows)
        self._take(split(self._table, orders, self._workers, self._longest)[1])
        self._improve_all()

    def _fill(self) -> None:
        """Serve as many as can be, whatever the accuracy.

        Workers are made as full as possible, one after the other, on the least accurate variant:
        first with all cameras, then with those of the smallest rates, as many as all fit.
        """
        units = self._table.units
        by_rate = np.argsort(units, kind="stable")
        low, high = 0, self._n
        tried = self._n
        while low < high and not self._should_stop():
            served = self._packed(by_rate[:tried])
            if sum(map(len, served)) > int((self._worker < self._workers).sum()):
                self._take(served)
                self._improve_all()
            if sum(map(len, served)) == tried:
                low = tried
            else:
                high = tried - 1
            tried = (low + high + 1) // 2

    def _packed(self, cameras: Ints) -> list[Ints]:
        table = self._table
        capacity = np.array([0, *(c.capacity for c in table.configurations[-1])])
        limits = capacity[table.tolerance[:, -2]]
        step = columns(table.units[cameras].tolist(), int(capacity[-1]))
        groups = []
        left = cameras
        for _ in range(self._workers):
            rates = -(-table.units[left] // step)
            chosen = fullest(rates.tolist(), (limits[left] // step).tolist())
            if not chosen:
                break
            groups.append(left[chosen])
            left = np.delete(left, chosen)
        return groups

    # -- parts of steps -----------------------------------------------------------------------

    def _alike(self) -> list[int]:
        """Return two or three workers whose cameras tolerate about the same."""
        count = min(self._workers, int(self._rng.integers(2, 4)))
        if count == self._workers:
            return list(range(self._workers))
        mean = np.zeros(self._workers + 1)
        sizes = np.bincount(self._worker, minlength=self._workers + 1)
        np.add.at(mean, self._worker, self._mean)
        mean = mean[:-1] / np.maximum(1, sizes[:-1])
        noise = self._rng.normal(0.0, self._rng.choice([0.0, 0.05, 0.3]), self._workers)
        ranked = np.argsort(mean + noise)
        first = int(self._rng.integers(0, self._workers - count + 1))
        return [int(at) for at in ranked[first : first + count]]

    def _perturbed(self, cameras: Ints, rows: int) -> Ints:
        """Return (rows, m) places in `cameras`: noisy orders by tolerance, high rates last."""
        variant = self._rng.integers(0, self._tolerance.shape[1], rows)
        one = self._tolerance[cameras][:, variant].T
        mixed = self._rng.random((rows, 1))
        key = mixed * self._mean[cameras] + (1 - mixed) * one
        key -= self._rng.choice([0.0, 0.1, 0.5, 2.0], (rows, 1)) * self._rate[cameras]
        noise = self._rng.choice([0.03, 0.1, 0.3, 1.0], (rows, 1))
        key += noise * self._rng.standard_normal(key.shape)
        return np.argsort(-key, axis=1)

    def _plain_orders(self) -> Ints:
        """Return (rows, n) orders of all cameras that are good by themselves."""
        last = self._tolerance.shape[1] - 1
        keys = [self._mean]
        keys += [self._tolerance[:, at] for at in sorted({0, last // 3, 2 * last // 3, last})]
        keys.append((self._tolerance > 0).mean(axis=1))
        keys += [self._tolerance[:, last] - weight * self._rate for weight in (0.1, 0.5, 3.0)]
        # Equal keys: by mean tolerance, then by rate.
        tie = 1e-3 * self._mean - 1e-6 * self._rate
        return np.argsort(-(np.stack(keys) + tie), axis=1, kind="stable")

    def _improve_all(self) -> None:
        self._improve(self._all, list(range(self._workers)))

    def _improve(self, cameras: Ints, workers: list[int]) -> None:
        """Improve some workers with all their cameras; then see whether this is the best."""
        place = np.full(self._workers + 1, len(workers))
        place[workers] = np.arange(len(workers))
        local = place[self._worker[cameras]]
        improve(self._table, cameras, local, len(workers))
        self._worker[cameras] = np.array([*workers, self._workers])[local]
        self._note()

    def _take(self, groups: list[Ints]) -> None:
        self._worker = np.full(self._n, self._workers)
        for at, group in enumerate(groups):
            self._worker[group] = at
        self._note()

    def _note(self) -> None:
        groups = (np.flatnonzero(self._worker == at) for at in range(self._workers))
        self._score = sum(self._table.value(group) for group in groups)
        if self._score > self._best_score:
            self._best, self._best_score = self._worker.copy(), self._score

    def _elements(self, cameras: int) -> int:
        return max(1, cameras * min(self._longest, cameras) * self._table.tolerance.shape[1])

    def _group_size_at_most(self) -> int:
        """Return how many cameras a worker may have: what the fastest variant bears, for many
        workers not much more than their share."""
        capacity = max(of[-1].capacity for of in self._table.configurations)
        bears = int(np.searchsorted(np.cumsum(np.sort(self._table.units)), capacity, side="right"))
        share = -(-self._n // self._workers)
        return max(1, min(bears, self._n, max(16, 3 * share)))

    def _score_at_most(self) -> float:
        """Return what would be reached if each camera had a worker for itself."""
        table = self._table
        alone = table.values(table.tolerance, table.units, 1)
        return float(alone.sum())
