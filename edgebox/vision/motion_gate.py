"""Decides which pictures of a scene that stands still are left out. Pure.

A picture is compared with the last one that passed, on a coarse grid of mean brightness: noise and
compression vanish in the mean of a cell, a thing that moves does not. What the whole picture has in
common (a cloud, the camera's exposure) does not count as motion. Slow changes add up, because the
comparison is with what passed, not with the picture before. The cost is O(cells).
"""

import numpy as np
from numpy.typing import NDArray

GRID_PX = (64, 36)
"""(width, height) of the grid."""
THRESHOLD = 6.0
"""Levels of 255 by which a cell must differ."""
CELLS_MIN = 1
"""So many cells must differ."""
STILL_PERIOD_NS = 1_000_000_000
"""A still scene has a picture at least so often."""
HOLD_NS = 1_000_000_000
"""After motion all pictures pass for so long: what comes to rest is seen at rest."""


class MotionGate:
    """The gate of one camera."""

    def __init__(self) -> None:
        """Begin with nothing seen: the first picture passes."""
        self._passed: NDArray[np.float32] | None = None
        self._passed_ns = 0
        self._moved_ns: int | None = None

    def passes(self, luma: NDArray[np.uint8], captured_ns: int) -> bool:
        """Return whether a picture is to be used, and remember it if so.

        Args:
            luma: (36, 64) its brightness on the grid, 0 to 255.
            captured_ns: when it was captured; instants rise.
        """
        now = luma.astype(np.float32)
        moves = self._passed is not None and moved(self._passed, now)
        if moves:
            self._moved_ns = captured_ns
        held = self._moved_ns is not None and captured_ns - self._moved_ns < HOLD_NS
        due = self._passed is None or captured_ns - self._passed_ns >= STILL_PERIOD_NS
        if not (moves or held or due):
            return False
        self._passed, self._passed_ns = now, captured_ns
        return True


def moved(before: NDArray[np.float32], now: NDArray[np.float32]) -> bool:
    """Return whether something has moved between two grids of brightness of the same shape."""
    if before.shape != now.shape:
        return True
    change = now - before
    change -= np.median(change)
    return int(np.count_nonzero(np.abs(change) > THRESHOLD)) >= CELLS_MIN
