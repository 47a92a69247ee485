"""The assignment against a search of everything."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.tracking.assignment import assign


def _best(cost: np.ndarray, limit: float) -> float:
    """Return the least sum of `cost - limit` over all sets of pairs."""
    rows, columns = cost.shape
    best = 0.0
    for count in range(1, min(rows, columns) + 1):
        for some in itertools.combinations(range(rows), count):
            for others in itertools.permutations(range(columns), count):
                pairs = [cost[r, c] for r, c in zip(some, others, strict=True)]
                if all(pair < limit for pair in pairs):
                    best = min(best, sum(pairs) - limit * count)
    return best


@given(st.data(), st.integers(0, 4), st.integers(0, 4), st.sampled_from((0.3, 0.8, 1.0)))
def test_no_other_assignment_is_better(
    data: st.DataObject, rows: int, columns: int, limit: float
) -> None:
    values = data.draw(st.lists(st.floats(-1, 3), min_size=rows * columns, max_size=rows * columns))
    cost = np.array(values, np.float64).reshape(rows, columns)
    left, right = assign(cost, limit)
    assert len(set(left.tolist())) == len(left) == len(right) == len(set(right.tolist()))
    assert (cost[left, right] < limit).all()
    assert abs(float((cost[left, right] - limit).sum()) - _best(cost, limit)) < 1e-9


def test_a_detour_is_taken_where_both_gain() -> None:
    cost = np.array([[0.1, 0.2], [0.15, 0.9]])
    rows, columns = assign(cost, 0.8)
    assert rows.tolist() == [0, 1]
    assert columns.tolist() == [1, 0]


@given(st.integers(0, 2**32 - 1), st.integers(80, 120), st.integers(80, 120))
def test_where_all_are_rivals_the_cheapest_pairs_come_first(
    seed: int, rows: int, columns: int
) -> None:
    cost = np.random.default_rng(seed).random((rows, columns))
    left, right = assign(cost, 0.8)
    assert len(set(left.tolist())) == len(left) == len(right) == len(set(right.tolist()))
    assert (cost[left, right] < 0.8).all()
    assert cost.argmin() in left * columns + right
    # Each pair is the cheapest that is possible without those that are cheaper still.
    taken = np.sort(cost[left, right])
    free_rows, free_columns = np.ones(rows, bool), np.ones(columns, bool)
    for value in taken[: len(taken) // 2]:
        possible = cost[free_rows][:, free_columns]
        assert value == possible.min()
        [row], [column] = np.nonzero(cost == value)
        free_rows[row] = free_columns[column] = False


def test_equal_pairs_take_one_round() -> None:
    left, right = assign(np.zeros((100, 90)), 0.5)
    assert len(left) == len(right) == len(set(right.tolist())) == 90
