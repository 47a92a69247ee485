"""Messages about other boxes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.link.failover import BOXES_MAX
from edgebox.link.fleet_messages import BoxPlace, OtherBoxes, Redirect
from edgebox.link.messages import Hello, decode_from_box, decode_from_camera

PRINTABLE = st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)
TEXTS = st.text(PRINTABLE, max_size=100)
PLACES = st.builds(
    BoxPlace,
    st.text(PRINTABLE, min_size=1, max_size=50),
    st.none() | st.text(PRINTABLE, min_size=1, max_size=64),
)


@given(PLACES, TEXTS, TEXTS)
def test_a_redirect_is_read_as_it_was_written(place: BoxPlace, ticket: str, reason: str) -> None:
    message = Redirect(place, ticket, reason)
    assert decode_from_box(message.encode()) == message


@given(st.lists(PLACES, max_size=BOXES_MAX), TEXTS)
def test_other_boxes_are_read_as_they_were_written(places: list[BoxPlace], ticket: str) -> None:
    message = OtherBoxes(tuple(places), ticket)
    assert decode_from_box(message.encode()) == message


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "redirect"}',
        '{"type": "redirect", "address": ""}',
        '{"type": "redirect", "address": 7}',
        '{"type": "boxes", "boxes": [7]}',
        '{"type": "boxes", "boxes": [{"address": ""}]}',
    ],
)
def test_a_wrong_message_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        decode_from_box(text)


def test_a_hello_says_whether_its_camera_follows_redirects() -> None:
    assert "redirects" not in Hello("gate", 640, 360).encode().decode()
    for redirects in (0, 2):
        hello = decode_from_camera(Hello("gate", 640, 360, redirects=redirects).encode())
        assert isinstance(hello, Hello)
        assert hello.redirects == redirects
