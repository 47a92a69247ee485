"""Decides how two workers best share their cameras: all ways for a few that may change. Pure."""

import numpy as np

from edgebox.planning.mapping_exact import best_within, subset_values
from edgebox.planning.mapping_table import Ints, MappingTable


def share_out(
    table: MappingTable, free: Ints, first: Ints, second: Ints
) -> tuple[float, Ints, Ints]:
    """Return the value and the cameras of two workers after the best sharing out of some.

    O(2^f v) for f free cameras.

    Args:
        table: what sets of cameras are worth.
        free: those that may go to either worker or to none.
        first: those that the first worker keeps.
        second: those that the second one keeps.
    """
    one, two = subset_values(table, free, first), subset_values(table, free, second)
    # Backwards, sets become their complements: what the second worker may choose from.
    both = one + best_within(two)[::-1]
    mask = int(both.argmax())
    bits = np.arange(len(free))
    rest = len(both) - 1 - mask
    taken = rest
    if two[rest] != both[mask] - one[mask]:
        subsets = np.arange(len(both))
        allowed = (subsets & ~rest) == 0
        taken = int(np.where(allowed, two, -np.inf).argmax())
    return (
        float(both[mask]),
        np.concatenate((first, free[(mask >> bits) & 1 == 1])),
        np.concatenate((second, free[(taken >> bits) & 1 == 1])),
    )
