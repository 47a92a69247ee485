"""Decides which camera should change its worker, or its place with another one's. Pure."""

import numpy as np

from edgebox.planning.mapping_table import Floats, Ints, MappingTable, Tolerances

GAIN_MIN = 1e-7
"""What is less may be an error of floating-point sums."""


def improve(table: MappingTable, cameras: Ints, worker: Ints, workers: int) -> None:
    """Move and swap cameras until neither brings anything.

    In each round all moves to another worker and all swaps of two cameras are valued at once, and
    the best of them applied whose workers no better one has changed. O(m^2 v) a round.

    Args:
        table: what sets of cameras are worth.
        cameras: (m,) those that may move; whoever shares a worker with them is among them.
        worker: (m,) where each is, 0 to `workers` - 1, `workers` if not served; is changed.
        workers: how many there are.
    """
    while len(cameras):
        gains = _Gains(table, cameras, worker, workers)
        if not _apply(gains.moves(), gains.swaps(), worker, workers):
            return


class _Gains:
    """What each move and each swap would bring."""

    def __init__(self, table: MappingTable, cameras: Ints, worker: Ints, workers: int) -> None:
        self._table, self._worker, self._workers = table, worker, workers
        self._tolerance, self._units = table.tolerance[cameras], table.units[cameras]
        self._load: Ints = np.zeros(workers, np.int64)
        self._count: Ints = np.zeros(workers, np.int64)
        most = np.iinfo(np.int16).max
        self._least = np.full((workers, self._tolerance.shape[1]), most, np.int16)
        self._others = np.full(self._tolerance.shape, most, np.int16)
        """(m, v + 1) the least tolerance of those that share a camera's worker."""
        for at in range(workers):
            self._gather(at, np.flatnonzero(worker == at))
        served = worker < workers
        self._now = np.zeros(workers + 1)
        self._now[:workers] = table.values(self._least, self._load, self._count)
        self._served = np.flatnonzero(served)
        beside = worker[self._served]
        self._left = np.zeros(len(cameras))
        self._left[self._served] = table.values(
            self._others[self._served],
            self._load[beside] - self._units[self._served],
            self._count[beside] - 1,
        )

    def _gather(self, at: int, members: Ints) -> None:
        if not len(members):
            return
        of = self._tolerance[members]
        self._load[at] = self._units[members].sum()
        self._count[at] = len(members)
        if len(members) == 1:
            self._least[at] = of[0]
            return
        lowest = np.partition(of, 1, axis=0)
        self._least[at] = lowest[0]
        self._others[members] = np.where(of == lowest[0], lowest[1], lowest[0])

    def moves(self) -> Floats:
        """Return (m, workers): the gain if a camera goes to a worker."""
        joined = self._table.values(
            np.minimum(self._tolerance[:, None], self._least),
            self._units[:, None] + self._load,
            self._count + 1,
        )
        gains: Floats = joined - self._now[:-1] + (self._left - self._now[self._worker])[:, None]
        gains[self._served, self._worker[self._served]] = -np.inf
        return gains

    def swaps(self) -> Floats:
        """Return (m, m): the gain if two cameras change places."""
        m, served = len(self._worker), self._served
        tolerance: Tolerances = np.minimum(self._others[served][:, None], self._tolerance)
        at = self._worker[served]
        replaced = np.zeros((m, m))
        replaced[served] = self._table.values(
            tolerance,
            (self._load[at] - self._units[served])[:, None] + self._units,
            self._count[at][:, None],
        )
        now = self._now[self._worker]
        gains = replaced + replaced.T
        gains -= now
        gains -= now[:, None]
        gains[self._worker[:, None] == self._worker] = -np.inf
        return gains


def _apply(moves: Floats, swaps: Floats, worker: Ints, workers: int) -> bool:
    """Apply the best moves and swaps, each worker changed once; False: there are none."""
    cameras = len(worker)
    gains = np.concatenate((moves.ravel(), np.triu(swaps, 1).ravel()))
    good = np.flatnonzero(gains > GAIN_MIN)
    if not len(good):
        return False
    changed: set[int] = set()
    moved: set[int] = set()
    for at in good[np.argsort(-gains[good], kind="stable")].tolist():
        if at < moves.size:
            one, two = at // workers, -1
            goes, comes = at % workers, workers
        else:
            one, two = divmod(at - moves.size, cameras)
            goes, comes = int(worker[two]), int(worker[one])
        touched = {goes, int(worker[one])} - {workers}
        if touched & changed or one in moved or two in moved:
            continue
        worker[one] = goes
        moved.add(one)
        if two >= 0:
            worker[two] = comes
            moved.add(two)
        changed |= touched
        if len(changed) == workers:
            break
    return True
