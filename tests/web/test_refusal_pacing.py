"""Refusals come at once; who asks again at once is read later and later."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.web.refusal_pacing import REST_MAX_S, REST_MIN_S, Rests


def test_each_refusal_in_a_row_doubles_the_rest_up_to_its_limit() -> None:
    rests, now_s, found = Rests(), 100.0, []
    for _ in range(9):
        assert rests.left_s("a", now_s) == 0
        rests.refused("a", now_s)
        left_s = rests.left_s("a", now_s)
        found.append(round(left_s, 9))
        now_s += left_s + 1e-9
    assert found[:3] == [REST_MIN_S, 2 * REST_MIN_S, 4 * REST_MIN_S]
    assert found[-2:] == [REST_MAX_S, REST_MAX_S]
    rests.answered("a")
    rests.refused("a", now_s)
    assert round(rests.left_s("a", now_s), 9) == REST_MIN_S, "an answer ends the row"


def test_an_old_refusal_is_no_row() -> None:
    rests = Rests()
    for at_s in (0.0, 0.1, 0.2):
        rests.refused("a", at_s)
    rests.refused("a", 3600.0)
    assert round(rests.left_s("a", 3600.0), 9) == REST_MIN_S


def test_no_other_connection_rests() -> None:
    rests = Rests()
    rests.refused("a", 5.0)
    assert rests.left_s("b", 5.0) == 0


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 0.5)), max_size=200))
def test_connections_that_were_refused_long_ago_are_forgotten(
    refused: list[tuple[int, float]],
) -> None:
    rests, now_s, latest = Rests(), 0.0, {}
    for connection, later_s in refused:
        now_s += later_s
        rests.refused(connection, now_s)
        latest[connection] = now_s
    assert len(rests) <= sum(1 for at_s in latest.values() if at_s > now_s - 2 * REST_MAX_S)
