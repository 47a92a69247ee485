"""Cameras that come back from a box are not sent there again at once."""

import random

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxName
from edgebox.fleet.redirect import redirect_connected, redirect_hello
from edgebox.fleet.returned_cameras import AVOIDED_NS, BACK_WITHIN_NS, ReturnedCameras
from tests.fleet.test_redirect import box, camera, known

GATE, YARD = CameraId("gate"), CameraId("yard")
ONE, TWO = BoxName("one"), BoxName("two")


def test_a_camera_that_comes_back_avoids_that_box_for_a_while() -> None:
    returned = ReturnedCameras()
    returned.sent(GATE, ONE, 0)
    returned.sent(YARD, ONE, 0)
    assert returned.avoided(GATE, 1) == frozenset()
    assert returned.came(GATE, 1, 1) == ONE
    assert returned.avoided(GATE, 1) == {ONE}
    assert returned.avoided(YARD, 1) == frozenset()
    assert returned.came(YARD, 1, 2) is None, "that is no news"
    assert returned.avoided(YARD, 2) == {ONE}
    assert returned.avoided(GATE, AVOIDED_NS + 1) == {ONE}
    assert returned.avoided(GATE, AVOIDED_NS + 2) == frozenset()
    returned.sent(GATE, ONE, AVOIDED_NS + 3)
    assert returned.came(GATE, 1, AVOIDED_NS + 4) == ONE


def test_one_that_was_served_there_or_sent_on_has_not_come_back() -> None:
    returned = ReturnedCameras()
    returned.sent(GATE, ONE, 0)
    assert returned.came(GATE, 1, BACK_WITHIN_NS + 1) is None
    for redirects in (0, 2):  # it was welcomed meanwhile; that box sent it on
        returned.sent(GATE, ONE, 0)
        assert returned.came(GATE, redirects, 1) is None
    assert returned.avoided(GATE, 1) == frozenset()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([GATE, YARD]), st.sampled_from([ONE, TWO]), st.integers(0, AVOIDED_NS)
        ),
        max_size=50,
    )
)
def test_what_is_old_is_forgotten(moves: list[tuple[CameraId, BoxName, int]]) -> None:
    returned = ReturnedCameras()
    now_ns = 0
    for of, to, later_ns in moves:
        now_ns += later_ns
        returned.sent(of, to, now_ns)
        returned.came(of, 1, now_ns)
        assert to in returned.avoided(of, now_ns)
        back_ns = [at_ns for cameras in returned._back.values() for at_ns in cameras.values()]
        assert all(at_ns >= now_ns - AVOIDED_NS for at_ns in back_ns)
        assert all(returned._back.values()), "a box from which nobody came is kept"


def test_a_camera_is_sent_to_no_box_that_it_avoids() -> None:
    here, there = box("here", load=0.9), box("there")
    avoiding = camera()
    sent = redirect_hello(avoiding, here, known(there), 0, random.Random(1))
    assert sent is not None
    avoiding = type(avoiding)(
        avoiding.camera, avoiding.service, avoiding.rate_hz, avoided=frozenset([there.box])
    )
    assert redirect_hello(avoiding, here, known(there), 0, random.Random(1)) is None
    assert redirect_connected(avoiding, here, known(there), 0, random.Random(1)) is None
