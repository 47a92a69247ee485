"""Decides how full a worker can be made: the largest rate one variant can be given. Pure.

Source: Jellyfish, section 4.2, Algorithm 1 (client-DNN mapping) and its figure 8. Edgebox keeps
each row of the paper's table of reachable rates as the bits of one integer.
"""

import math
import random
from collections.abc import Sequence

import numpy as np

from edgebox.planning.mapping_table import Ints, MappingTable

COLUMNS_MAX = 4096


def columns(units: Sequence[int], capacity: int) -> int:
    """Return how many rate units one column of the table stands for.

    The greatest that divides all rates, unless that makes more than `COLUMNS_MAX` columns: then
    rates must be rounded up to columns and what is found is feasible, but perhaps not the fullest.
    """
    exact = math.gcd(*units) if units else 1
    return max(1, exact if capacity // max(1, exact) < COLUMNS_MAX else -(-capacity // COLUMNS_MAX))


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
        having = load >= rates[at] and load <= limits[at] and rows[row - 1] >> (load - rates[at]) & 1
        if having and (not without or (rng is not None and rng.random() < 0.5)):
            chosen.append(at)
            load -= rates[at]
    return chosen


def packed(table: MappingTable, cameras: Ints, workers: int) -> list[Ints]:
    """Return groups: workers made as full as possible, one by one, on the least accurate variant.

    Args:
        table: what cameras tolerate.
        cameras: those to choose from.
        workers: how many groups there may be.
    """
    capacity = np.array([0, *(c.capacity for c in table.configurations[-1])])
    step = columns(table.units[cameras].tolist(), int(capacity[-1]))
    rates = -(-table.units // step)
    limits = capacity[table.tolerance[:, -2]] // step
    groups = []
    for _ in range(workers):
        chosen = fullest(rates[cameras].tolist(), limits[cameras].tolist())
        if not chosen:
            break
        groups.append(cameras[chosen])
        cameras = np.delete(cameras, chosen)
    return groups
