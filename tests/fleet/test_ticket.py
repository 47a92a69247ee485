"""Tickets of a fleet: only its boxes make them, for one camera or box, for a while."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.fleet.ticket import (
    BOX_TICKET_S,
    CAMERA_TICKET_S,
    PREFIX,
    answer_signature,
    box_ticket,
    camera_of,
    camera_ticket,
    is_box_ticket,
)

SECRET, NOW_S = "a secret of some length", 1_700_000_000.0
NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)


@given(NAMES)
def test_a_ticket_names_its_camera_until_it_ends(name: str) -> None:
    ticket = camera_ticket(SECRET, name, NOW_S)
    assert camera_of(SECRET, ticket, NOW_S) == name
    assert camera_of(SECRET, ticket, NOW_S + CAMERA_TICKET_S + 1) is None
    assert camera_of("another secret, as long", ticket, NOW_S) is None
    assert not is_box_ticket(SECRET, ticket, NOW_S)
    assert ticket.isascii()
    assert " " not in ticket


@given(st.text(max_size=40))
def test_a_box_shows_a_ticket_of_its_own_kind(name: str) -> None:
    ticket = box_ticket(SECRET, name, NOW_S)
    assert is_box_ticket(SECRET, ticket, NOW_S)
    assert not is_box_ticket(SECRET, ticket, NOW_S + BOX_TICKET_S + 1)
    assert camera_of(SECRET, ticket, NOW_S) is None
    assert ticket.isascii()
    assert " " not in ticket


@given(st.text(max_size=80), st.booleans())
def test_nothing_else_is_a_ticket(text: str, with_prefix: bool) -> None:
    forged = (PREFIX if with_prefix else "") + text
    assert camera_of(SECRET, forged, NOW_S) is None
    assert not is_box_ticket(SECRET, forged, NOW_S)


@given(NAMES, st.integers(0, 400), st.characters(codec="ascii"))
def test_a_changed_ticket_is_none(name: str, at: int, letter: str) -> None:
    ticket = camera_ticket(SECRET, name, NOW_S)
    at %= len(ticket)
    changed = ticket[:at] + letter + ticket[at + 1 :]
    if changed != ticket:
        assert camera_of(SECRET, changed, NOW_S) is None


def test_an_answer_belongs_to_one_question() -> None:
    one, other = box_ticket(SECRET, "a", NOW_S), box_ticket(SECRET, "a", NOW_S + 1)
    assert answer_signature(SECRET, one, b"{}") != answer_signature(SECRET, other, b"{}")
    assert answer_signature(SECRET, one, b"{}") != answer_signature(SECRET, one, b"[]")
