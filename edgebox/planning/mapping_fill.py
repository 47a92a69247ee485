"""Decides how full a worker can be made: the largest rate one variant can be given. Pure.

Source: Jellyfish, section 4.2, Algorithm 1 (client-DNN mapping) and its figure 8. Edgebox keeps
each row of the paper's table of reachable rates as the bits of one integer.
"""

import random
from collections.abc import Sequence

import numpy as np

from edgebox.planning.mapping_table import Ints, MappingTable

_COLUMNS_MAX = 4096


def fullest(
    rates: Sequence[int], limits: Sequence[int], rng: random.Random | None = None
) -> list[int]:
    """Return which cameras make one variant's load the largest.

    Taking a camera limits the load to the capacity of the largest batch that its budget bears, so
    rows go by falling limit and each keeps the sums up to its own. O(n capacity / 64).

    Args:
        rates: of each camera, in columns, above 0.
        limits: the capacity of the largest batch its budget bears, in columns; 0: it cannot.
        rng: chooses among equally full ways, as in the paper; None: the cameras with high limits.
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
        if having and (not without or (rng is not None and rng.random() < 0.5)):
            chosen.append(at)
            load -= rates[at]
    return chosen


def packed(
    table: MappingTable,
    cameras: Ints,
    variants: Sequence[int],
    rng: random.Random | None = None,
) -> list[Ints]:
    """Return groups: workers made as full as possible, one after the other, on given variants.

    Args:
        table: what cameras tolerate; its columns are the variants.
        cameras: those to choose from.
        variants: one for each worker, in the order in which they are filled.
        rng: chooses among equally full ways; None: those that tolerate most.
    """
    step = column_units(table)
    rates = -(-table.units // step)
    total = int(rates.sum()) * step
    groups = []
    for variant in variants:
        capacity = np.array([0, *(c.capacity for c in table.configurations[variant])])
        limits = (np.minimum(capacity, total) // step)[table.tolerance[cameras, variant]]
        chosen = fullest(rates[cameras].tolist(), limits.tolist(), rng)
        groups.append(cameras[chosen])
        cameras = np.delete(cameras, chosen)
    return groups


def column_units(table: MappingTable, columns_max: int = _COLUMNS_MAX) -> int:
    """Return how many rate units one column of the table of reachable rates stands for.

    The greatest that divides all rates, unless that makes more than `columns_max` columns: then
    rates are rounded up to columns, and what is found is feasible, but perhaps not the fullest.
    """
    highest = max(of[-1].capacity for of in table.configurations)
    capacity = min(highest, int(table.units.sum()))
    exact = int(np.gcd.reduce(table.units))
    return exact if capacity // exact < columns_max else -(-capacity // columns_max)
