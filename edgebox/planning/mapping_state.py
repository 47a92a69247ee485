"""Owns the groups that a search has at hand, and the best it has seen. Pure."""

import numpy as np

from edgebox.planning.mapping_table import Floats, Ints, MappingTable


class MappingState:
    """Which cameras each worker has; groups are replaced, never changed in place."""

    def __init__(self, table: MappingTable, workers: int) -> None:
        self._table = table
        self.groups: list[Ints] = [np.arange(0)] * workers
        self.out: Ints = np.arange(len(table))
        """The cameras that no worker has."""
        self.best, self.best_score = self.groups, 0.0
        self._values: Floats = np.zeros(workers)
        self._version = 0
        self._changed = [0] * workers
        self._out_changed = 0
        self._settled: dict[tuple[int, int], int] = {}

    @property
    def score(self) -> float:
        """What all groups are worth together."""
        return float(self._values.sum())

    def value(self, workers: list[int]) -> float:
        """Return what some workers' groups are worth."""
        return float(self._values[workers].sum())

    def cameras(self, workers: list[int]) -> Ints:
        """Return the cameras of some workers, one worker's after the other's."""
        return np.concatenate([self.groups[at] for at in workers])

    def take(self, groups: list[Ints]) -> None:
        """Replace all groups; workers beyond them get none."""
        self.replace(list(range(len(self.groups))), groups)

    def replace(self, workers: list[int], groups: list[Ints]) -> None:
        """Replace some workers' groups, with none where there are fewer groups than workers."""
        self.groups = list(self.groups)
        self._version += 1
        groups = groups + [np.arange(0)] * (len(workers) - len(groups))
        for at, group in zip(workers, groups, strict=True):
            self.groups[at] = group
            self._values[at] = self._table.value(group)
            self._changed[at] = self._version
        unserved = np.ones(len(self._table), np.bool_)
        unserved[np.concatenate(self.groups)] = False
        out = np.flatnonzero(unserved)
        if not np.array_equal(out, self.out):
            self.out = out
            self._out_changed = self._version
        if self.score > self.best_score:
            self.best, self.best_score = self.groups, self.score

    def settle(self, one: int, two: int) -> None:
        """Note that two workers share their cameras, and those that are out, as well as can be."""
        self._settled[one, two] = self._version

    def is_settled(self, one: int, two: int) -> bool:
        """Say whether that was noted and nothing has changed since."""
        since = max(self._changed[one], self._changed[two], self._out_changed)
        return self._settled.get((one, two), -1) >= since
