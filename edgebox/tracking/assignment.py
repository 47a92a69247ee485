"""Owns the assignment of detections to tracks at the least total cost.

Pure. The solver is `lapx`, Jonker and Volgenant's algorithm (1987) in C++. Most pairs in a street
have no rival; they are taken without the solver, which changes no result.
"""

import lap
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
CONTESTED_MAX = 4_096
"""Possible pairs with rivals from which the cheapest pairs are taken first, without the solver:
64 objects, each of which may be any of the 64 others. A crowd of 200 that walk side by side has a
tenth of it."""

ROUNDS_MAX = 16
"""Rounds of `_cheapest_first`. Pictures of objects that differ need about five."""


def _cheapest_first(cost: Floats, limit: float) -> tuple[Indices, Indices]:
    """Return pairs that cost less than `limit`, the cheapest first, each row and column once.

    Where nearly all overlap nearly all, no assignment says which is which, and the best one takes
    tens of milliseconds. Each round takes all pairs that are the cheapest of their row and column.
    """
    at, partners = np.arange(len(cost)), np.arange(cost.shape[1])
    # Of equal pairs each row prefers another column, so that they are taken in one round.
    cost = cost + 1e-9 * ((partners[None, :] - at[:, None]) % len(partners))
    rows, columns = [], []
    for _ in range(min(*cost.shape, ROUNDS_MAX)):
        best = cost.argmin(axis=1)
        mutual = (cost.argmin(axis=0)[best] == at) & (cost[at, best] < limit)
        if not mutual.any():
            break
        rows.append(at[mutual])
        columns.append(best[mutual])
        cost[at[mutual]] = cost[:, best[mutual]] = np.inf
    return np.concatenate(rows), np.concatenate(columns)


def assign(cost: Floats, limit: float) -> tuple[Indices, Indices]:
    """Return the pairs (rows, columns) of the best assignment, in rising order of the rows.

    Beyond `CONTESTED_MAX` contested pairs it is not the best one: see `_cheapest_first`.

    Every row and column is in one pair at most, and no pair costs `limit` or more. Of all such
    sets of pairs, the one with the least sum of `cost - limit` is returned: another pair is
    worth as much as it is cheaper than the limit.

    Args:
        cost: (n, m), finite.
        limit: pairs must cost less than this.
    """
    possible = cost < limit
    rivals = possible.sum(axis=1)[:, None] + possible.sum(axis=0)[None, :]
    rows, columns = np.nonzero(possible & (rivals == 2))
    contested_rows, contested_columns = np.nonzero(possible & (rivals > 2))
    if not len(contested_rows):
        return rows, columns
    left, right = np.unique(contested_rows), np.unique(contested_columns)
    part = np.where(possible, cost, limit + 1.0)[np.ix_(left, right)]
    if len(contested_rows) > CONTESTED_MAX:
        matched, partners = _cheapest_first(part, limit)
    else:
        _, column_of, _ = lap.lapjv(part, extend_cost=True, cost_limit=limit)
        matched = np.nonzero(column_of >= 0)[0]
        partners = column_of[matched]
    rows = np.concatenate((rows, left[matched]))
    columns = np.concatenate((columns, right[partners]))
    allowed = possible[rows, columns]
    rows, columns = rows[allowed], columns[allowed]
    order = np.argsort(rows)
    return rows[order], columns[order]
