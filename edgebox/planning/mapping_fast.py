"""Decides the mapping within a time budget: edgebox's own solver of P1, close to optimal. Pure.

P1 is a partition problem: what a worker is worth depends only on the set of its cameras. So
orders of the cameras are cut into groups by dynamic programming, the groups improved by moves and
swaps, and then, as long as the caller lets it, a few workers at a time are arranged anew in one
of four ways. Jellyfish's own solver (`mapping_annealing`) looks only at mappings that fill one
variant after the other; it finds less and, overloaded, gives up early. Limits: optimal for one
worker, for two with few cameras, and where little fits; elsewhere nothing is proved.
"""

import random
from collections.abc import Callable

import numpy as np

from edgebox.planning.mapping_exact import best_groups
from edgebox.planning.mapping_fill import packed
from edgebox.planning.mapping_moves import GAIN_MIN, improve
from edgebox.planning.mapping_orders import Orders
from edgebox.planning.mapping_packing import Packing, cameras_max
from edgebox.planning.mapping_pairs import share_out
from edgebox.planning.mapping_problem import Mapping, MappingProblem
from edgebox.planning.mapping_single import best_single, most_cameras
from edgebox.planning.mapping_splits import split
from edgebox.planning.mapping_state import MappingState
from edgebox.planning.mapping_table import Ints, MappingTable
from edgebox.planning.mapping_warm import kept_mapping, settled

BETTER_BY = 1.005
"""A new mapping must be worth this many times the one in force."""

# How the search spends its time. All were chosen by trial on made-up problems of 2 to 16 workers.
_EXACT_CAMERAS = 13
"""Up to so many cameras of two workers, all subsets are looked at."""
_SHARE_OUT, _SHARE_OUT_OF_TWO, _SHARE_OUT_OF_MANY = 0.2, 0.6, 0.05
"""How often a step shares two workers' cameras out anew: among a few, of only two, of many."""
_FREE, _FREE_OF_TWO = 8, 11
"""How many cameras are free to go where they want in such a step."""
_PACK = 0.5
"""How often a step packs a few workers anew while cameras are left out."""
_PACKED_AT_ONCE = 24
"""Among how many cameras a few workers are packed."""
_REFILL, _REFILL_OF_MANY = 0.5, 0.9
"""How often a step refills workers, else it cuts a few anew."""
_MANY = 5
"""So many workers are many."""
_AS_IS = 0.5
"""Share of the orders to cut that are near the order at hand."""
_ORDERS = 16
"""How many orders are cut in one step."""
_FILLS = 32
"""In how many ways workers are filled while cameras are left out; more for many workers."""
_TRIES_ALL, _TRIES_FEW = 2_000, 300
"""How many partial packings are looked at, of all workers and of a few."""
_SWAPPED_AT_ONCE = 48
"""Among how many cameras all swaps are tried at once."""
_TEMPERATURE = 0.005
"""A step that loses this share of the accuracy is taken one time in e; one that loses a camera,
hardly ever."""
_STALE = 30
"""After so many steps without a new best, and more for many workers, the search starts anew."""
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
            but other budgets and rates; cameras may have been added at the end.
        better_by: a mapping that serves no more cameras than the one in force, as far as that is
            still feasible, replaces it only if its objective is larger by this factor.
    """
    table = MappingTable(problem)
    if not len(table):
        return table.mapping([])
    search = _Search(table, min(problem.workers, len(table)), rng, should_stop)
    if previous is None:
        search.solve(iterations_max)
        return table.mapping(search.best)
    kept = kept_mapping(problem, previous)
    place = {int(camera): at for at, camera in enumerate(table.cameras)}
    busy = [worker.cameras for worker in kept.workers if worker.cameras]
    search.begin_with([np.array([place[c] for c in cameras]) for cameras in busy])
    repaired = table.mapping(search.best)
    search.solve(iterations_max)
    return settled(problem, kept, [repaired, table.mapping(search.best)], better_by)


class Allowance:
    """Says when a part of a search has had its share, by count and by the caller's word."""

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
    """Ways to arrange some workers' cameras anew, and when to use which."""

    def __init__(
        self,
        table: MappingTable,
        workers: int,
        rng: random.Random,
        should_stop: Callable[[], bool],
    ) -> None:
        self._table, self._workers, self._should_stop = table, workers, should_stop
        self._chance = rng
        self._rng = np.random.default_rng(rng.getrandbits(64))
        self._orders = Orders(table, self._rng)
        self._longest = self._group_size_at_most()
        self._all: Ints = np.arange(len(table))
        self._state = MappingState(table, workers)

    @property
    def best(self) -> list[Ints]:
        """The cameras of each worker in the best mapping found."""
        return self._state.best

    def solve(self, iterations_max: int) -> None:
        """Find the best groups, or good ones."""
        if self._workers <= 2 and len(self._all) <= _EXACT_CAMERAS:
            self._state.take(best_groups(self._table, self._all, self._workers))
        elif self._workers == 1:
            self.begin_with([best_single(self._table, self._all)])
        else:
            self.begin()
            if not self.pack_all():
                self._fill_by_chance()
                self.run(iterations_max)

    def begin_with(self, groups: list[Ints]) -> None:
        """Begin with feasible groups, at most one for each worker."""
        self._state.take(groups)
        self._improve_all()

    def begin(self) -> None:
        """Cut the orders that are good by themselves; fill up if that leaves cameras out."""
        orders = self._orders.plain()
        rows = self._rows(len(self._all), len(orders))
        for at in range(0, len(orders), rows):
            self._cut_all(orders[at : at + rows])
            if self._should_stop():
                return
        self._improve_all()
        if len(self._state.out) and not self._should_stop():
            self._serve_most()
            self._fill()

    def pack_all(self) -> bool:
        """Search all packings, if cameras are left out and are few; True: it is the optimum."""
        few = len(self._all) <= cameras_max(self._workers)
        if not few or not len(self._state.out) or self._should_stop():
            return False
        packing = Packing(self._table, self._all)
        allowed = Allowance(_TRIES_ALL, self._should_stop)
        found = packing.best(self._workers, self._state.best_score, allowed)
        if found is not None:
            self._state.take(found[1])
        return packing.complete and not allowed.spent

    def run(self, iterations_max: int) -> None:
        """Arrange a few workers at a time anew until time is up or nothing better can exist."""
        bound = self._score_at_most() - GAIN_MIN
        patience = _STALE + _STALE // 8 * self._workers
        share_out_rate, refill_rate = _SHARE_OUT, _REFILL
        if self._workers == 2:
            share_out_rate = _SHARE_OUT_OF_TWO
        elif self._workers >= _MANY:
            share_out_rate, refill_rate = _SHARE_OUT_OF_MANY, _REFILL_OF_MANY
        stale = 0
        for _ in range(iterations_max):
            before = self._state.best_score
            if before >= bound or self._should_stop():
                return
            stale += 1
            if stale > patience:
                self._restart()
                stale = 0
            elif len(self._state.out) and self._rng.random() < _PACK:
                self._pack()
            elif self._rng.random() < share_out_rate:
                self._share_out()
            elif self._rng.random() < refill_rate:
                self._refill()
            else:
                self._recut()
            if self._state.best_score > before:
                stale = 0

    # -- steps --------------------------------------------------------------------------------

    def _share_out(self) -> None:
        """Share some of two workers' cameras, and of those left out, out anew."""
        pair = self._unsettled_pair()
        if pair is None:
            return
        a, b = (self._state.groups[at] for at in pair)
        free, out = np.concatenate((a, b)), self._state.out
        most = _FREE_OF_TWO if self._workers == 2 else _FREE
        spare = max(most - len(free), most // 3)
        every = len(free) + len(out) <= most
        if len(out) > spare:
            out = self._rng.choice(out, spare, replace=False)
        kept_a, kept_b = a[:0], b[:0]
        if len(free) + len(out) > most:
            chosen = self._rng.permutation(len(free)) < most - len(out)
            kept_a, kept_b = a[~chosen[: len(a)]], b[~chosen[len(a) :]]
            free = free[chosen]
        score, *groups = share_out(self._table, np.concatenate((free, out)), kept_a, kept_b)
        if score > self._state.value(list(pair)) + GAIN_MIN:
            self._state.replace(list(pair), groups)
        if every:
            self._state.settle(*pair)

    def _pack(self) -> None:
        """Pack a few workers anew, with some of the cameras that are left out."""
        chosen = self._alike()
        most = min(_PACKED_AT_ONCE, cameras_max(len(chosen)))
        while chosen and len(self._state.cameras(chosen)) > most - 2:
            chosen.pop()
        if not chosen:
            return
        cameras, out = self._state.cameras(chosen), self._state.out
        # Small rates are served more easily.
        effort = np.log(self._table.units[out]) + self._rng.normal(0.0, 0.5, len(out))
        out = out[np.argsort(effort)[: most - len(cameras)]]
        packing = Packing(self._table, np.concatenate((cameras, out)))
        allowed = Allowance(_TRIES_FEW, self._should_stop)
        found = packing.best(len(chosen), self._state.value(chosen), allowed)
        if found is not None:
            self._state.replace(chosen, found[1])

    def _recut(self) -> None:
        """Line the cameras of a few alike workers up, with some that are left out, and cut."""
        chosen, out = self._alike(), self._state.out
        if len(out) > 2 * self._longest:
            out = self._rng.choice(out, 2 * self._longest, replace=False)
        cameras = np.concatenate((self._state.cameras(chosen), out))
        if not len(cameras):
            return
        orders = self._orders.perturbed(cameras, self._rows(len(cameras), _ORDERS), _AS_IS)
        score, groups = split(self._table, cameras[orders], len(chosen), self._longest)
        loss = self._state.value(chosen) - score
        if self._accepts(loss):
            self._state.replace(chosen, groups)
            if loss:
                self._improve(chosen)

    def _refill(self) -> None:
        """Step some workers' variants up or down and fill them in turn, as Jellyfish does."""
        count = min(self._workers, int(self._rng.integers(2, self._workers + 1)))
        chosen = self._rng.choice(self._workers, count, replace=False).tolist()
        cameras = np.concatenate((self._state.cameras(chosen), self._state.out))
        if not len(cameras):
            return
        last = len(self._table.variants) - 1
        groups = [self._state.groups[at] for at in chosen]
        variants = [self._table.choice(group) if len(group) else last for group in groups]
        stepped = np.sort(np.clip(variants + self._rng.integers(-1, 2, count), 0, last))
        groups = packed(self._table, self._rng.permutation(cameras), stepped.tolist())
        now = self._state.value(chosen)
        if self._worth(groups) < now:
            groups = self._improved(groups, cameras)
        if self._accepts(now - self._worth(groups)):
            self._state.replace(chosen, groups)

    def _restart(self) -> None:
        """Begin anew, mostly from the best, now and then from a noisy order of all."""
        if self._rng.random() < 0.7:
            self._state.take(self._state.best)
        else:
            self._state.take([])
            self._cut_all(self._orders.perturbed(self._all, self._rows(len(self._all), 8)))
            self._improve_all()

    def _fill_by_chance(self) -> None:
        """Fill the workers in many of the equally full ways; one may serve more cameras."""
        variants = [len(self._table.variants) - 1] * self._workers
        by_rate = np.lexsort((-self._orders.mean, self._table.units))
        for _ in range(_FILLS + _FILLS // 8 * self._workers):
            if self._should_stop() or not len(self._state.out):
                return
            # Sometimes only from the small rates, a few more of them than are served now.
            served = len(self._all) - len(self._state.out)
            few = served + int(self._rng.integers(1, 2 + served // 3))
            cameras = by_rate[:few] if self._rng.random() < 0.5 else self._all
            groups = packed(self._table, cameras, variants, self._chance)
            if sum(map(len, groups)) > served:
                self.begin_with(groups)

    def _serve_most(self) -> None:
        """Give one worker after the other the smallest rates, as many as it can serve."""
        left, groups = self._all, []
        for _ in range(self._workers):
            groups.append(most_cameras(self._table, left))
            left = np.setdiff1d(left, groups[-1], assume_unique=True)
        if self._worth(groups) > self._state.score:
            self._state.take(groups)
            self._improve_all()

    def _fill(self) -> None:
        """Serve as many as can be, whatever the accuracy.

        Workers are made as full as possible, one after the other, on the least accurate variant:
        first with all cameras, then with those of the smallest rates, as many as all fit.
        """
        variants = [len(self._table.variants) - 1] * self._workers
        by_rate = np.lexsort((-self._orders.mean, self._table.units))
        low, high = 0, len(self._all)
        tried = high
        while low < high and not self._should_stop():
            groups = packed(self._table, by_rate[:tried], variants)
            if self._worth(groups) > self._state.score:
                self._state.take(groups)
                self._improve_all()
            if sum(map(len, groups)) == tried:
                low = tried
            else:
                high = tried - 1
            tried = (low + high + 1) // 2

    # -- parts of steps -----------------------------------------------------------------------

    def _unsettled_pair(self) -> tuple[int, int] | None:
        """Return two workers that may not share their cameras as well as can be."""
        for _ in range(6):
            one, two = sorted(self._rng.choice(self._workers, 2, replace=False).tolist())
            if not self._state.is_settled(one, two):
                return one, two
        return None

    def _alike(self) -> list[int]:
        """Return two or three workers whose cameras tolerate about the same."""
        count = min(self._workers, int(self._rng.integers(2, 4)))
        tolerance = self._orders.mean
        means = [float(tolerance[of].mean()) if len(of) else 0.0 for of in self._state.groups]
        noise = self._rng.normal(0.0, self._rng.choice([0.0, 0.05, 0.3]), self._workers)
        ranked = np.argsort(means + noise).tolist()
        first = int(self._rng.integers(0, self._workers - count + 1))
        return [int(at) for at in ranked[first : first + count]]

    def _cut_all(self, orders: Ints) -> None:
        score, groups = split(self._table, orders, self._workers, self._longest)
        if score > self._state.score:
            self._state.take(groups)

    def _improve_all(self) -> None:
        """Improve all workers; where there are many cameras, some workers at a time."""
        at_once = max(2, self._workers * _SWAPPED_AT_ONCE // len(self._all))
        shuffled = self._rng.permutation(self._workers).tolist()
        for at in range(0, self._workers, at_once):
            self._improve(shuffled[at : at + at_once])

    def _improve(self, workers: list[int]) -> None:
        groups = [self._state.groups[at] for at in workers]
        cameras = np.concatenate([*groups, self._state.out])
        improved = self._improved(groups, cameras)
        if self._worth(improved) > self._state.value(workers):
            self._state.replace(workers, improved)

    def _improved(self, groups: list[Ints], cameras: Ints) -> list[Ints]:
        """Return groups after moves and swaps among some cameras, theirs and others."""
        worker = np.full(len(self._all), len(groups))
        for at, group in enumerate(groups):
            worker[group] = at
        worker = worker[cameras]
        improve(self._table, cameras, worker, len(groups))
        return [cameras[worker == at] for at in range(len(groups))]

    def _worth(self, groups: list[Ints]) -> float:
        return sum(self._table.value(group) for group in groups)

    def _accepts(self, loss: float) -> bool:
        """Say whether a step is taken that loses so much."""
        if loss <= 0:
            return True
        objective = self._state.best_score % self._table.each
        odds = np.exp(-loss / max(_TEMPERATURE * objective, GAIN_MIN))
        return bool(self._rng.random() < odds)

    # -- sizes --------------------------------------------------------------------------------

    def _rows(self, cameras: int, most: int) -> int:
        """Return how many orders one step may cut."""
        elements: int = cameras * min(self._longest, cameras) * self._table.tolerance.shape[1]
        return min(most, max(1, _ELEMENTS // elements))

    def _group_size_at_most(self) -> int:
        """Return how many cameras a worker may have when orders are cut.

        What the fastest variant bears; for many workers, not much more than their share.
        """
        capacity = max(of[-1].capacity for of in self._table.configurations)
        bears = int(np.searchsorted(np.cumsum(np.sort(self._table.units)), capacity, side="right"))
        share = -(-len(self._table) // self._workers)
        return max(1, min(bears, len(self._table), max(16, 3 * share)))

    def _score_at_most(self) -> float:
        """Return what would be reached if each camera had a worker for itself."""
        table = self._table
        return float(table.values(table.tolerance, table.units, 1).sum())
