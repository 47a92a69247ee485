"""Tickets of a fleet: only its boxes make them, for one camera or box, for a while."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.access import Login
from edgebox.fleet.replicated_settings import TOMBSTONE_MS
from edgebox.fleet.ticket import (
    BOX_TICKET_S,
    CAMERA_TICKET_S,
    LOGIN_S,
    PREFIX,
    _signed,
    answer_signature,
    box_ticket,
    camera_ticket,
    has_ended,
    is_box_ticket,
    read_camera_ticket,
)
from edgebox.storage.access_store import REVOKED_KEPT_MS

SECRET, NOW_S = "a secret of some length", 1_700_000_000.0
LOGIN = Login("5c1e7a90", round(NOW_S))
NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)


@given(NAMES)
def test_a_ticket_names_its_camera_until_it_ends(name: str) -> None:
    ticket = camera_ticket(SECRET, name, LOGIN, NOW_S)
    assert read_camera_ticket(SECRET, ticket, NOW_S) == (name, LOGIN)
    assert read_camera_ticket(SECRET, ticket, NOW_S + CAMERA_TICKET_S + 1) is None
    assert read_camera_ticket("another secret, as long", ticket, NOW_S) is None
    assert not is_box_ticket(SECRET, ticket, NOW_S)
    assert ticket.isascii()
    assert " " not in ticket


@given(NAMES, st.text(max_size=20))
def test_a_ticket_names_the_login_that_it_descends_from_and_ends_with_it(
    name: str, token: str
) -> None:
    login = Login(token, round(NOW_S))
    late_s = NOW_S + LOGIN_S - 60
    ticket = camera_ticket(SECRET, name, login, late_s)
    assert read_camera_ticket(SECRET, ticket, late_s) == (name, login)
    assert read_camera_ticket(SECRET, ticket, late_s + 60) is None
    assert not has_ended(login, late_s)
    assert has_ended(login, late_s + 60)


def test_boxes_remember_a_revoked_token_longer_than_any_ticket_lasts() -> None:
    assert min(TOMBSTONE_MS, REVOKED_KEPT_MS) > (LOGIN_S + BOX_TICKET_S) * 1000


def test_a_ticket_of_another_release_is_none() -> None:
    for said in ("gate", "1.gate", "x.5c.gate", "1.x.gate", "1.ff.gate"):
        ticket = _signed(SECRET, f"login.{round(NOW_S) + 60}.{said}")
        assert read_camera_ticket(SECRET, ticket, NOW_S) is None


@given(NAMES)
def test_a_ticket_that_names_no_login_is_of_another_kind(name: str) -> None:
    """Boxes that know only such tickets would take all that follows the end as a name."""
    unlike = _signed(SECRET, f"camera.{round(NOW_S) + 60}.{name}")
    assert read_camera_ticket(SECRET, unlike, NOW_S) is None
    ticket = camera_ticket(SECRET, name, LOGIN, NOW_S)
    kind = ticket.removeprefix(PREFIX).split(".")[1]
    assert kind not in ("camera", "box")


@given(st.text(max_size=40))
def test_a_box_shows_a_ticket_of_its_own_kind(name: str) -> None:
    ticket = box_ticket(SECRET, name, NOW_S)
    assert is_box_ticket(SECRET, ticket, NOW_S)
    assert not is_box_ticket(SECRET, ticket, NOW_S + BOX_TICKET_S + 1)
    assert read_camera_ticket(SECRET, ticket, NOW_S) is None
    assert ticket.isascii()
    assert " " not in ticket


@given(st.text(max_size=80), st.booleans())
def test_nothing_else_is_a_ticket(text: str, with_prefix: bool) -> None:
    forged = (PREFIX if with_prefix else "") + text
    assert read_camera_ticket(SECRET, forged, NOW_S) is None
    assert not is_box_ticket(SECRET, forged, NOW_S)


@given(NAMES, st.integers(0, 400), st.characters(codec="ascii"))
def test_a_changed_ticket_is_none(name: str, at: int, letter: str) -> None:
    ticket = camera_ticket(SECRET, name, LOGIN, NOW_S)
    at %= len(ticket)
    changed = ticket[:at] + letter + ticket[at + 1 :]
    if changed != ticket:
        assert read_camera_ticket(SECRET, changed, NOW_S) is None


def test_an_answer_belongs_to_one_question() -> None:
    one, other = box_ticket(SECRET, "a", NOW_S), box_ticket(SECRET, "a", NOW_S + 1)
    assert answer_signature(SECRET, one, b"{}") != answer_signature(SECRET, other, b"{}")
    assert answer_signature(SECRET, one, b"{}") != answer_signature(SECRET, one, b"[]")
