"""Decides how full an executor can be made: the largest rate one variant can be given. Pure.

Source: Jellyfish, section 4.2, Algorithm 1 (client-DNN mapping) and its figure 8. Edgebox keeps
each row of the paper's table of reachable rates as the bits of one integer.
"""

from collections.abc import Callable, Sequence

import numpy as np

from edgebox.planning.option_table import Ints

_COLUMNS_MAX = 4096


def fullest(
    rates: Sequence[int], limits: Sequence[int], takes_equal: Callable[[], bool] = lambda: False
) -> list[int]:
    """Return which cameras make one variant's load the largest.

    Taking a camera limits the load to the capacity of the largest batch that its budget bears, so
    rows go by falling limit and each keeps the sums up to its own. O(n capacity / 64).

    Args:
        rates: of each camera, in columns, above 0.
        limits: the capacity of the largest batch its budget bears, in columns; 0: it cannot.
        takes_equal: says whether a camera is taken without which the load would be equally large;
            by default it is not, so that those with high limits are.
    """
    order = sorted((at for at in range(len(rates)) if rates[at] <= limits[at]),
                   key=lambda at: -limits[at])  # fmt: skip
    rows = [1]
    for at in order:
        before = rows[-1]
        rows.append(before | ((before << rates[at]) & ((2 << limits[at]) - 1)))
    load = rows[-1].bit_length() - 1
    chosen = []
    for row in range(len(order), 0, -1):
        at = order[row - 1]
        without = rows[row - 1] >> load & 1
        having = (
            load >= rates[at] and load <= limits[at] and rows[row - 1] >> (load - rates[at]) & 1
        )
        if having and (not without or takes_equal()):
            chosen.append(at)
            load -= rates[at]
    return chosen


def column_units(units: Ints, capacity: int) -> int:
    """Return how many rate units one column of the table of reachable rates stands for.

    The greatest that divides all rates, unless that makes more than `_COLUMNS_MAX` columns: then
    rates are rounded up to columns, and what is found is feasible, but perhaps not the fullest.

    Args:
        units: the rates, each above 0.
        capacity: the most that is to be filled.
    """
    capacity = min(capacity, int(units.sum()))
    exact = int(np.gcd.reduce(units, initial=0)) or 1
    return exact if capacity // exact < _COLUMNS_MAX else -(-capacity // _COLUMNS_MAX)
