"""Decides the mapping by looking at every subset of the cameras: the optimum, for few. Pure."""

from functools import cache

import numpy as np

from benchmarks.jellyfish.table import Floats, Ints, MappingTable
from edgebox.domain.errors import InvalidInputError
from edgebox.planning.mapping_problem import Mapping, MappingProblem

CAMERAS_MAX = 16
_HALF = 8


def exact_mapping(problem: MappingProblem) -> Mapping:
    """Find a mapping that no other one beats.

    The value of every subset on one worker is computed once; the best of two workers within a
    set is the best way to cut it in two, and so on by halves. O(2^n v) for one and two workers,
    O(3^n) for three and four (a few seconds at 16 cameras), O(3^n log K) beyond.

    Raises:
        InvalidInputError: more cameras than `CAMERAS_MAX` that some variant could serve.
    """
    table = MappingTable(problem)
    if len(table) > CAMERAS_MAX:
        raise InvalidInputError(
            f"the exact solver takes up to {CAMERAS_MAX} cameras, not {len(table)}"
        )
    return table.mapping(best_groups(table, np.arange(len(table)), problem.workers))


def best_groups(table: MappingTable, cameras: Ints, workers: int) -> list[Ints]:
    """Return the best groups, at most one per worker, that these few cameras can form."""
    if not len(cameras):
        return []
    subsets = _Subsets(table, cameras, min(workers, len(cameras)))
    full = (1 << len(cameras)) - 1
    members = np.arange(len(cameras))
    masks = subsets.cut(full, min(workers, len(cameras)))
    return [cameras[(mask >> members) & 1 == 1] for mask in masks]


@cache
def _subsets_of_half(mask: int) -> Ints:
    """Return the subsets of a set of few, rising."""
    halves = np.arange(1 << _HALF)
    subsets: Ints = halves[(halves & mask) == halves]
    return subsets


class _Subsets:
    """The best values of k workers within every subset, for those k that are needed."""

    def __init__(self, table: MappingTable, cameras: Ints, workers: int) -> None:
        self._n = len(cameras)
        self._single = _subset_values(table, cameras)
        self._best: dict[int, Floats] = {1: _best_within(self._single)}
        self._prepare((workers + 1) // 2)
        self._prepare(workers // 2)

    def cut(self, mask: int, workers: int) -> list[int]:
        """Return disjoint subsets of a set, one per busy worker, that are worth most."""
        if workers == 0 or mask == 0:
            return []
        if workers == 1:
            of = self._subsets(mask)
            best = int(of[self._single[of].argmax()])
            return [best] if best else []
        more, fewer = (workers + 1) // 2, workers // 2
        of = self._subsets(mask)
        both = self._best[more][of] + self._best[fewer][of][::-1]
        one = int(of[both.argmax()])
        return self.cut(one, more) + self.cut(mask ^ one, fewer)

    def _prepare(self, workers: int) -> None:
        if workers == 0 or workers in self._best:
            return
        more, fewer = (workers + 1) // 2, workers // 2
        self._prepare(more)
        self._prepare(fewer)
        a, b = self._best[more], self._best[fewer]
        best = np.empty(1 << self._n)
        for mask in range(1 << self._n):
            # The subsets of a set, backwards, are their complements within it.
            of = self._subsets(mask)
            best[mask] = (a[of] + b[of][::-1]).max()
        self._best[workers] = best

    def _subsets(self, mask: int) -> Ints:
        """Return the subsets of a set, rising."""
        low = _subsets_of_half(mask & ((1 << _HALF) - 1))
        high = _subsets_of_half(mask >> _HALF) << _HALF
        return (high[:, None] | low).ravel()


def _subset_values(table: MappingTable, cameras: Ints) -> Floats:
    """Return (2^n,): what each subset of some cameras is worth on a worker.

    Bit i of an entry's place stands for the i-th camera.
    """
    n = len(cameras)
    tolerance = np.empty((1 << n, table.tolerance.shape[1]), np.int16)
    load = np.empty(1 << n, np.int64)
    count = np.empty(1 << n, np.int64)
    tolerance[0] = np.iinfo(np.int16).max
    load[0] = count[0] = 0
    for bit, camera in enumerate(cameras.tolist()):
        without, having = slice(0, 1 << bit), slice(1 << bit, 2 << bit)
        np.minimum(tolerance[without], table.tolerance[camera], out=tolerance[having])
        np.add(load[without], table.units[camera], out=load[having])
        np.add(count[without], 1, out=count[having])
    return table.values(tolerance, load, count)


def _best_within(values: Floats) -> Floats:
    """Return (2^n,): of each set the value of its best subset."""
    best = values.copy()
    bit = 1
    while bit < len(best):
        pairs = best.reshape(-1, 2, bit)
        np.maximum(pairs[:, 1], pairs[:, 0], out=pairs[:, 1])
        bit *= 2
    return best
