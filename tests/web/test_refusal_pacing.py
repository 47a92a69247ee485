"""Refusals have a budget; beyond it who asks again at once is read later and later."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.web.refusal_pacing import (
    COST_PER_S,
    HEAD_COST,
    REST_MAX_S,
    REST_MIN_S,
    WHOLE_COST,
    RefusalBudget,
    Rests,
)


def spent(now_s: float) -> RefusalBudget:
    return RefusalBudget(0.0, now_s)


def test_within_the_budget_no_connection_rests() -> None:
    rests = Rests(RefusalBudget(at_s=5.0))
    found = [rests.refused(WHOLE_COST, 5.0) for _ in range(COST_PER_S // WHOLE_COST)]
    assert not any(found)
    assert rests.refused(HEAD_COST, 5.0) == REST_MIN_S


def test_each_refusal_in_a_row_doubles_the_rest_up_to_its_limit() -> None:
    now_s, found = 100.0, []
    rests = Rests(spent(now_s))
    for _ in range(9):
        rests.budget.left, rests.budget.at_s = 0.0, now_s
        found.append(round(rests.refused(HEAD_COST, now_s), 9))
        now_s += found[-1]
    assert found[:3] == [REST_MIN_S, 2 * REST_MIN_S, 4 * REST_MIN_S]
    assert found[-2:] == [REST_MAX_S, REST_MAX_S]
    rests.answered()
    rests.budget.left, rests.budget.at_s = 0.0, now_s
    assert rests.refused(HEAD_COST, now_s) == REST_MIN_S, "an answer ends the row"


def test_an_old_refusal_is_no_row() -> None:
    rests = Rests(spent(0.0))
    for _ in range(3):
        rests.refused(HEAD_COST, 0.0)
    rests.budget.left, rests.budget.at_s = 0.0, 3600.0
    assert rests.refused(HEAD_COST, 3600.0) == REST_MIN_S


@given(
    st.lists(st.tuples(st.sampled_from((HEAD_COST, WHOLE_COST)), st.floats(0, 0.5)), max_size=300)
)
def test_no_more_is_spent_than_the_budget(refused: list[tuple[int, float]]) -> None:
    budget, now_s, used = RefusalBudget(), 0.0, 0
    for cost, later_s in refused:
        now_s += later_s
        used += cost if budget.spend(cost, now_s) else 0
    assert used <= COST_PER_S * (1 + now_s) + 1e-6
