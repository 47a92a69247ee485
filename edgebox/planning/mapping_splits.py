"""Decides how an order of cameras is best cut into groups, for many orders at once. Pure.

Cameras that stand beside each other in a good order (the most tolerant first, say) belong on one
worker. For a given order, the best groups of neighbours are found by dynamic programming; what
lies between two groups is not served.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from edgebox.planning.mapping_table import Floats, Ints, MappingTable


def split(
    table: MappingTable, orders: Ints, workers: int, longest: int
) -> tuple[float, list[Ints]]:
    """Return the value and the groups of the best cut of the best order.

    With f_k(e) for the best of the first e cameras on k workers, f_k(e) is the largest of
    f_k(e - 1), f_(k-1)(e) and, over the length l of the last group, f_(k-1)(e - l) + its value.
    O(o m l (v + K)) for o orders of m cameras.

    Args:
        table: what sets of cameras are worth.
        orders: (o, m) cameras.
        workers: how many groups there may be.
        longest: how many cameras a group may have.
    """
    count, size = orders.shape
    longest = min(longest, size)
    values = _values(table, orders, longest)
    best = np.zeros((workers + 1, count, size + 1))
    padded = np.full((count, longest + size), -np.inf)
    for k in range(1, workers + 1):
        padded[:, longest:] = best[k - 1, :, :-1]
        # (o, e, l): the value before a group of l + 1 cameras that ends with e
        before = sliding_window_view(padded, longest, axis=1)[:, 1:, ::-1]
        ends = (before + values).max(axis=2)
        np.maximum(ends, best[k - 1, :, 1:], out=ends)
        best[k, :, 1:] = np.maximum.accumulate(np.maximum(ends, 0.0), axis=1)
    row = int(best[workers, :, -1].argmax())
    return float(best[workers, row, -1]), _groups(orders[row], values[row], best[:, row])


def _values(table: MappingTable, orders: Ints, longest: int) -> Floats:
    """Return (o, m, l): what the l + 1 cameras that end with the m-th are worth together."""
    count, size = orders.shape
    columns = table.tolerance.shape[1]
    tolerance = np.zeros((longest, count, size, columns), np.int16)
    tolerance[:, :, :, -1] = 1
    own = table.tolerance[orders]
    tolerance[0] = own
    for at in range(1, longest):
        np.minimum(tolerance[at - 1, :, :-1], own[:, 1:], out=tolerance[at, :, 1:])
        tolerance[at, :, :at] = 0
        tolerance[at, :, :at, -1] = 1
    total = np.zeros((count, size + 1), np.int64)
    np.cumsum(table.units[orders], axis=1, out=total[:, 1:])
    ends = np.arange(1, size + 1)
    lengths = np.arange(1, longest + 1)[:, None, None]
    load = total[:, 1:] - total[:, np.maximum(ends - lengths[:, 0], 0)].transpose(1, 0, 2)
    return np.ascontiguousarray(table.values(tolerance, load, lengths).transpose(1, 2, 0))


def _groups(order: Ints, values: Floats, best: Floats) -> list[Ints]:
    """Walk back through the tables of one order; (m, l) values, (K + 1, m + 1) best."""
    groups = []
    end = len(order)
    for k in range(len(best) - 1, 0, -1):
        while end > 0 and best[k, end - 1] == best[k, end]:
            end -= 1
        if end == 0:
            break
        if best[k - 1, end] == best[k, end]:
            continue
        lengths = min(end, values.shape[1])
        ways = best[k - 1, end - lengths : end][::-1] + values[end - 1, :lengths]
        length = int(ways.argmax()) + 1
        groups.append(order[end - length : end])
        end -= length
    return groups
