"""Decides which cameras one worker serves best: all there is to decide for one. Pure."""

import numpy as np

from edgebox.planning.mapping_fill import column_units
from edgebox.planning.mapping_table import Ints, MappingTable

_COLUMNS_MAX = 1 << 16


def best_single(table: MappingTable, cameras: Ints) -> Ints:
    """Return the cameras that one worker serves best, of some.

    For a variant and a batch size, the smallest rates give the largest number of cameras; among
    sets of that many, the largest total rate that fits is found by dynamic programming over sums,
    the sums that k cameras can have being the bits of one integer. Exact up to the rounding of
    rates to columns, see `column_units`. O(c n^2 capacity / 64) for c configurations at worst;
    those that cannot beat the best so far are passed over.
    """
    best, chosen = 0.0, cameras[:0]
    for column, at in _promising(table, cameras):
        eligible = cameras[table.tolerance[cameras, column] > at]
        eligible = eligible[np.argsort(table.units[eligible], kind="stable")]
        capacity = table.configurations[column][at].capacity
        count = int(np.searchsorted(np.cumsum(table.units[eligible]), capacity, side="right"))
        accuracy = float(table.accuracy[column])
        largest = min(capacity, int(table.units[eligible[len(eligible) - count :]].sum()))
        if count == 0 or table.worth(count, largest, accuracy) <= best:
            continue
        group = _fullest_of(table, eligible, count, capacity)
        value = table.value(group)
        if value > best:
            best, chosen = value, group
    return chosen


def most_cameras(table: MappingTable, cameras: Ints) -> Ints:
    """Return the smallest rates of some cameras, as many as one worker can serve. O(c n)."""
    rising = cameras[np.argsort(table.units[cameras], kind="stable")]
    best = cameras[:0]
    for column, configurations in enumerate(table.configurations):
        capacity = np.array([of.capacity for of in configurations])
        tolerated = table.tolerance[rising, column][:, None] > np.arange(len(capacity))
        load = np.cumsum(np.where(tolerated, table.units[rising][:, None], 0), axis=0)
        served = tolerated & (load <= capacity)
        at = int(served.sum(axis=0).argmax())
        group = rising[served[:, at]]
        if len(group) > len(best):
            best = group
    return best


def _promising(table: MappingTable, cameras: Ints) -> list[tuple[int, int]]:
    """Return the (column, configuration) pairs, those that could be worth most first."""
    ranked = []
    for column, configurations in enumerate(table.configurations):
        for at, configuration in enumerate(configurations):
            units = np.sort(table.units[cameras[table.tolerance[cameras, column] > at]])
            count = int(np.searchsorted(np.cumsum(units), configuration.capacity, side="right"))
            load = min(configuration.capacity, int(units[len(units) - count :].sum()))
            ranked.append((table.worth(count, load, float(table.accuracy[column])), column, at))
    return [(column, at) for _, column, at in sorted(ranked, reverse=True)]


def _fullest_of(table: MappingTable, eligible: Ints, count: int, capacity: int) -> Ints:
    """Return the set of so many cameras with the largest rate that fits; rates are rising."""
    units = table.units[eligible]
    if int(units[len(units) - count :].sum()) <= capacity:
        return eligible[len(eligible) - count :]
    step = column_units(table, _COLUMNS_MAX)
    rates = (-(-units // step)).tolist()
    limit = (2 << (capacity // step)) - 1
    # rows[i][k]: the sums that k of the first i cameras can have
    rows = [[1] + [0] * count]
    for rate in rates:
        before = rows[-1]
        rows.append(
            [1, *(before[k] | ((before[k - 1] << rate) & limit) for k in range(1, count + 1))]
        )
    if not rows[-1][count]:
        return eligible[:count]  # it fits only without the rounding up
    load, left, chosen = rows[-1][count].bit_length() - 1, count, []
    for at in range(len(rates), 0, -1):
        if not rows[at - 1][left] >> load & 1:
            chosen.append(at - 1)
            load, left = load - rates[at - 1], left - 1
    return eligible[chosen]
