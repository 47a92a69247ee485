"""Decides how workers are best packed where each can only take few of the cameras. Pure.

Under overload little fits onto a worker, so all sets that do can be listed, and the best disjoint
ones found by branch and bound. Where much fits, lists grow too long and other ways are better.
"""

from collections.abc import Callable

import numpy as np

from edgebox.planning.mapping_exact import best_within
from edgebox.planning.mapping_moves import GAIN_MIN
from edgebox.planning.mapping_table import Floats, Ints, MappingTable

_SETS_MAX = 4000

Found = tuple[float, list[int]]
"""A value and the masks of the groups that have it together."""


def cameras_max(workers: int) -> int:
    """Return among how many cameras packings can be searched: for three workers and more, a table
    of all their subsets is needed."""
    return 16 if workers > 2 else 62


class Packing:
    """All sets of some cameras that one worker can serve."""

    def __init__(self, table: MappingTable, cameras: Ints) -> None:
        """List the sets, the smallest first; `complete` says whether there were not too many."""
        self._cameras = cameras
        self._bits = np.arange(len(cameras))
        tolerance, units = table.tolerance[cameras], table.units[cameras]
        masks, least, load = 1 << self._bits, tolerance, units
        last = self._bits
        values = table.values(least, load, 1)
        all_masks, all_values = [masks], [values]
        listed = len(masks)
        count = 1
        while len(masks) and listed <= _SETS_MAX:
            count += 1
            row, added = np.nonzero(self._bits > last[:, None])
            least = np.minimum(least[row], tolerance[added])
            load = load[row] + units[added]
            values = table.values(least, load, count)
            good = np.isfinite(values)
            masks = (masks[row] | (1 << added))[good]
            least, load, last, values = least[good], load[good], added[good], values[good]
            all_masks.append(masks)
            all_values.append(values)
            listed += len(masks)
        self.complete = listed <= _SETS_MAX
        falling = np.argsort(-(values := np.concatenate(all_values)), kind="stable")
        self._masks: Ints = np.concatenate(all_masks)[falling]
        self._values: Floats = values[falling]

    def best(
        self, workers: int, floor: float, should_stop: Callable[[], bool]
    ) -> tuple[float, list[Ints]] | None:
        """Return the value and the groups of the best packing; None: none is worth more than floor.

        Exact unless it was told to stop. The groups are searched from the most valuable down: one
        that is to be followed by k - 1 others, none of them worth more than the best that is left,
        need not be tried when all k together cannot exceed what has been found.
        """
        if not self.complete:
            return None
        if workers > 2:
            alone = np.zeros(1 << len(self._cameras))
            alone[self._masks] = self._values
            self._within = best_within(alone)
        full = (1 << len(self._cameras)) - 1
        if workers == 2:
            found = self._two(floor + GAIN_MIN)
        else:
            found = self._search(full, workers, floor + GAIN_MIN, np.inf, should_stop)
        if found is None:
            return None
        score, masks = found
        return score, [self._cameras[(mask >> self._bits) & 1 == 1] for mask in masks]

    def _search(
        self,
        free: int,
        workers: int,
        floor: float,
        ceiling: float,
        should_stop: Callable[[], bool],
    ) -> Found | None:
        """Find the best groups of the free cameras, worth more than floor, each at most ceiling."""
        fitting = ((self._masks & ~free) == 0) & (self._values <= ceiling)
        if workers > 1:
            fitting &= self._values * workers > floor
        masks, values = self._masks[fitting], self._values[fitting]
        if not len(masks):
            return None
        if workers == 1:
            return (float(values[0]), [int(masks[0])]) if values[0] > floor else None
        rest = self._within[free & ~masks]
        if workers == 2:
            bounds = values + rest
            at = int(bounds.argmax())
            if bounds[at] <= floor:
                return None
            mask = int(masks[at])
            left = self._search(free & ~mask, 1, -1.0, np.inf, should_stop)
            return float(bounds[at]), [mask, *(left[1] if left else [])]
        bounds = values + (workers - 1) * np.minimum(values, rest)
        best: Found | None = None
        for at in np.argsort(-bounds, kind="stable").tolist():
            if bounds[at] <= floor or should_stop():
                break
            mask, value = int(masks[at]), float(values[at])
            if value > floor:
                floor, best = value, (value, [mask])
            below = self._search(free & ~mask, workers - 1, floor - value, value, should_stop)
            if below is not None:
                floor = below[0] + value
                best = floor, [mask, *below[1]]
        return best

    def _two(self, floor: float) -> Found | None:
        """Find the best two groups of all, without a table of every subset."""
        best: Found | None = None
        for at, (mask, value) in enumerate(zip(self._masks.tolist(), self._values, strict=True)):
            if 2 * value <= floor:
                break
            beside = (self._masks[at:] & mask) == 0
            other = at + int(beside.argmax())
            more = beside[other - at]
            both = float(value + self._values[other]) if more else float(value)
            if both > floor:
                floor = both
                best = both, [mask, int(self._masks[other])] if more else [mask]
        return best
