"""Owns the assignment of detections to tracks at the least total cost.

Pure. The solver is `lapx`, Jonker and Volgenant's algorithm (1987) in C++. Most pairs in a street
have no rival; they are taken without the solver, which changes no result.
"""

import lap
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def assign(cost: Floats, limit: float) -> tuple[Indices, Indices]:
    """Return the pairs (rows, columns) of the best assignment, in rising order of the rows.

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
    _, column_of, _ = lap.lapjv(part, extend_cost=True, cost_limit=limit)
    matched = np.nonzero(column_of >= 0)[0]
    rows = np.concatenate((rows, left[matched]))
    columns = np.concatenate((columns, right[column_of[matched]]))
    allowed = possible[rows, columns]
    rows, columns = rows[allowed], columns[allowed]
    order = np.argsort(rows)
    return rows[order], columns[order]
