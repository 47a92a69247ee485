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
from edgebox.planning.mapping_fill import packed
from edgebox.planning.mapping_moves import GAIN_MIN, improve
from edgebox.planning.mapping_orders import Orders
from edgebox.planning.mapping_packing import CAMERAS_MAX, Packing
from edgebox.planning.mapping_pairs import share_out
from edgebox.planning.mapping_problem import Mapping, MappingProblem
from edgebox.planning.mapping_single import best_single
from edgebox.planning.mapping_splits import split
from edgebox.planning.mapping_table import Ints, MappingTable
from edgebox.planning.mapping_warm import kept_mapping, settled

BETTER_BY = 1.005
"""A new mapping must be worth this many times the one in force."""

_EXACT_CAMERAS = 13
_FREE, _FREE_OF_TWO = 8, 11
"""How many cameras two workers share out anew in one step."""
_SHARING, _SHARING_OF_TWO = 0.2, 0.6
"""How often a step shares two workers' cameras out anew, and where there are only two."""
_PACKING = 0.5
"""How often a step packs a few workers anew while cameras are left out."""
_TRIES_ALL, _TRIES_FEW = 2_000, 300
"""How many partial packings are looked at, of all workers and of a few."""
_ROWS = 16
"""How many orders are cut in one step."""
_TEMP = 0.005
_RA=.3
_RB=.9
_STALE = 1
"""How often a step is taken that makes matters worse."""
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
        if not search.pack_all():
            search.run(iterations_max)
    found = table.mapping(search.best)
    return found if kept is None else settled(problem, kept, found, better_by)


class Allowance:
    """Says when a part of the search has had its share, by count and by the caller's word."""

    def __init__(self, count: int, should_stop: Callable[[], bool]) -> None:
        self._left = count
        self._should_stop = should_stop
        self.spent = False

    def __call__(self) -> bool:
        """Count one try; True: no further one."""
        self._left -= 1
        self.spent = self.spent or self._left < 0 or self._should_stop()
        return self.spent


class _Search:
    """The groups at hand, the best so far, and how to find better ones."""

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
        self._orders = Orders(table, self._rng)
        self._longest = self._group_size_at_most()
        self._bound = self._score_at_most()
        self._all: Ints = np.arange(self._n)
        nobody = self._all[:0]
        self._groups = [nobody] * self._workers
        self._out = self._all
        self._values = [0.0] * self._workers
        self._version = 0
        self._changed = [0] * (self._workers + 1)
        """The version that last changed each worker and, at the end, who is out."""
        self._shared: dict[tuple[int, int], int] = {}
        """The version at which two workers were found to share their cameras as well as can be."""
        self.best, self._best_score = self._groups, 0.0

    def solve_exactly(self) -> bool:
        """Find the optimum where looking at all subsets takes no longer than searching."""
        if self._workers <= 2 and self._n <= _EXACT_CAMERAS:
            self._take(best_groups(self._table, self._all, self._workers))
        elif self._workers == 1:
            self._take([best_single(self._table, self._all)])
            self._improve([0])
        else:
            return False
        return True

    def start_from(self, mapping: Mapping) -> None:
        """Begin with a mapping of feasible groups."""
        place = {int(camera): at for at, camera in enumerate(self._table.cameras)}
        busy = [worker.cameras for worker in mapping.workers if worker.cameras]
        self._take([np.array([place[c] for c in cameras]) for cameras in busy])
        self._improve(list(range(self._workers)))

    def start(self) -> None:
        """Cut the orders that are good by themselves; fill up if that leaves cameras out."""
        orders = self._orders.plain()
        rows = self._rows(self._n, len(orders))
        for at in range(0, len(orders), rows):
            self._split_all(orders[at : at + rows])
            if self._should_stop():
                return
        self._improve(list(range(self._workers)))
        if len(self._out) and not self._should_stop():
            self._fill()

    def pack_all(self) -> bool:
        """Search all packings, if cameras are left out and are few; True: it is the optimum."""
        if not len(self._out) or self._n > (62 if self._workers <= 2 else CAMERAS_MAX) or self._should_stop():
            return False
        packing = Packing(self._table, self._all)
        allowed = Allowance(_TRIES_ALL, self._should_stop)
        found = packing.best(self._workers, self._best_score, allowed)
        if found is not None:
            self._take(found[1])
        return packing.complete and not allowed.spent

    def run(self, iterations_max: int) -> None:
        """Improve a few groups at a time until time is up or nothing better can exist."""
        since = 0
        sharing = _SHARING_OF_TWO if self._workers == 2 else _SHARING
        for _ in range(iterations_max):
            if self._best_score >= self._bound - GAIN_MIN or self._should_stop():
                return
            before = self._best_score
            pair = self._unsettled_pair() if self._rng.random() < sharing else None
            if len(self._out) and self._rng.random() < _PACKING:
                self._pack()
            elif pair is not None:
                self._share_out(*pair)
            elif since > _STALE:
                self._restart()
                since = 0
            else:
                self._recut()
            since = 0 if self._best_score > before else since + 1

    # -- steps --------------------------------------------------------------------------------

    def _share_out(self, one: int, two: int) -> None:
        """Share some of two workers' cameras, and of those not served, out anew."""
        a, b = self._groups[one], self._groups[two]
        of, out = np.concatenate((a, b)), self._out
        most = _FREE_OF_TWO if self._workers == 2 else _FREE
        spare = max(most - len(of), most // 3)
        if len(out) > spare:
            out = self._rng.choice(out, spare, replace=False)
        inner = most - len(out)
        free, kept_a, kept_b = of, a[:0], b[:0]
        whole = len(of) <= inner and len(out) == len(self._out)
        if len(of) > inner:
            chosen = self._rng.permutation(len(of)) < inner
            free = of[chosen]
            kept_a, kept_b = a[~chosen[: len(a)]], b[~chosen[len(a) :]]
        now = self._values[one] + self._values[two]
        free = np.concatenate((free, out))
        score, new_a, new_b = share_out(self._table, free, kept_a, kept_b)
        if score > now + GAIN_MIN:
            self._set([one, two], [new_a, new_b])
        if whole:
            self._shared[one, two] = self._version

    def _pack(self) -> None:
        """Pack a few workers anew, with some of the cameras that are not served."""
        chosen = self._alike()
        while sum(len(self._groups[at]) for at in chosen) > CAMERAS_MAX - 2:
            chosen.pop()
        if not chosen:
            return
        cameras = np.concatenate([self._groups[at] for at in chosen])
        room = min(len(self._out), CAMERAS_MAX - len(cameras))
        out = self._rng.choice(self._out, room, replace=False)
        now = sum(self._values[at] for at in chosen)
        packing = Packing(self._table, np.concatenate((cameras, out)))
        allowed = Allowance(_TRIES_FEW, self._should_stop)
        found = packing.best(len(chosen), now, allowed)
        if found is not None:
            groups = found[1]
            self._set(chosen, [*groups, *[self._all[:0]] * (len(chosen) - len(groups))])

    def _recut(self) -> None:
        """Take a few groups with alike cameras apart, with some that are not served."""
        chosen = self._alike()
        out = self._out
        if len(out) > 2 * self._longest:
            out = self._rng.choice(out, 2 * self._longest, replace=False)
        cameras = np.concatenate([*(self._groups[at] for at in chosen), out])
        if len(cameras) < 2:
            return
        orders = cameras[self._orders.perturbed(cameras, self._rows(len(cameras), _ROWS))]
        score, groups = split(self._table, orders, len(chosen), self._longest)
        now = sum(self._values[at] for at in chosen)
        worse = now - score
        if worse > 0 and self._rng.random() > np.exp(-worse / (_TEMP * (self._best_score % self._table.each))):
            return
        groups += [self._all[:0]] * (len(chosen) - len(groups))
        self._set(chosen, groups)
        if worse:
            self._improve(chosen)

    def _restart(self) -> None:
        """Begin anew from the best, or from a noisy order of all."""
        chance = self._rng.random()
        if chance < _RA:
            self._take(self.best)
        elif chance < _RB:
            self._refill()
        else:
            self._take([])
            self._split_all(self._orders.perturbed(self._all, self._rows(self._n, 8)))
            self._improve(list(range(self._workers)))

    def _refill(self) -> None:
        """Fill the best mapping's variants, one or two of them changed by a step, from scratch."""
        variants = np.array([self._table.choice(of) for of in self.best if len(of)])
        for at in self._rng.integers(0, len(variants), 2):
            variants[at] += self._rng.integers(-1, 2)
        variants = np.sort(np.clip(variants, 0, len(self._table.variants) - 1))
        shuffled = self._rng.permutation(self._n)
        self._take(packed(self._table, shuffled, variants.tolist()))
        self._improve(list(range(self._workers)))

    def _fill(self) -> None:
        """Serve as many as can be, whatever the accuracy.

        Workers are made as full as possible, one after the other, on the least accurate variant:
        first with all cameras, then with those of the smallest rates, as many as all fit.
        """
        last = len(self._table.variants) - 1
        by_rate = np.argsort(self._table.units, kind="stable")
        low, high, tried = 0, self._n, self._n
        while low < high and not self._should_stop():
            groups = packed(self._table, by_rate[:tried], [last] * self._workers)
            served = sum(map(len, groups))
            if served > self._n - len(self._out):
                self._take(groups)
                self._improve(list(range(self._workers)))
            if served == tried:
                low = tried
            else:
                high = tried - 1
            tried = (low + high + 1) // 2

    # -- parts of steps -----------------------------------------------------------------------

    def _unsettled_pair(self) -> tuple[int, int] | None:
        """Return two workers that may not share their cameras as well as can be."""
        for _ in range(6):
            one, two = sorted(self._rng.choice(self._workers, 2, replace=False).tolist())
            changed = max(self._changed[one], self._changed[two], self._changed[-1])
            if self._shared.get((one, two), -1) < changed:
                return one, two
        return None

    def _split_all(self, orders: Ints) -> None:
        score, groups = split(self._table, orders, self._workers, self._longest)
        if score > sum(self._values):
            self._take(groups)

    def _alike(self) -> list[int]:
        """Return two or three workers whose cameras tolerate about the same."""
        count = min(self._workers, int(self._rng.integers(2, 4)))
        if count == self._workers:
            return list(range(self._workers))
        mean = self._orders.mean
        means = [float(mean[of].mean()) if len(of) else 0.0 for of in self._groups]
        noise = self._rng.normal(0.0, self._rng.choice([0.0, 0.05, 0.3]), self._workers)
        ranked = np.argsort(means + noise).tolist()
        first = int(self._rng.integers(0, self._workers - count + 1))
        return list(ranked[first : first + count])

    def _improve(self, workers: list[int]) -> None:
        """Improve some workers with all their cameras and those not served."""
        groups = [*(self._groups[at] for at in workers), self._out]
        cameras = np.concatenate(groups)
        at = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        if improve(self._table, cameras, at, len(workers)):
            self._set(workers, [cameras[at == k] for k in range(len(workers))])

    def _take(self, groups: list[Ints]) -> None:
        missing = self._workers - len(groups)
        self._set(list(range(self._workers)), [*groups, *[self._all[:0]] * missing])

    def _set(self, workers: list[int], groups: list[Ints]) -> None:
        """Give some workers other cameras, and see whether all are now the best."""
        self._groups = list(self._groups)
        self._version += 1
        for at, group in zip(workers, groups, strict=True):
            self._groups[at] = group
            self._values[at] = self._table.value(group)
            self._changed[at] = self._version
        served = np.zeros(self._n, np.bool_)
        served[np.concatenate(self._groups)] = True
        out = np.flatnonzero(~served)
        if len(out) != len(self._out) or (out != self._out).any():
            self._out = out
            self._changed[-1] = self._version
        score = sum(self._values)
        if score > self._best_score:
            self.best, self._best_score = self._groups, score

    def _rows(self, cameras: int, most: int) -> int:
        """Return how many orders one step may try."""
        elements = cameras * min(self._longest, cameras) * self._table.tolerance.shape[1]
        return min(most, max(1, _ELEMENTS // elements))

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
        return float(table.values(table.tolerance, table.units, 1).sum())
