"""Which of two streams is read."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.ingest.stream_choice import SETTLED_NS, StreamChoice

SIZES = st.tuples(st.integers(1, 4000), st.integers(1, 4000))


@given(SIZES, SIZES, st.lists(st.integers(1, SETTLED_NS), max_size=30))
def test_a_stream_that_is_too_small_is_never_wanted(
    sub_px: tuple[int, int], advised_px: tuple[int, int], steps_ns: list[int]
) -> None:
    choice, at_ns = StreamChoice(sub_px=sub_px), 0
    too_small = advised_px[0] > sub_px[0] or advised_px[1] > sub_px[1]
    for step_ns in steps_ns:
        at_ns += step_ns
        choice.reading = choice.wanted(advised_px, at_ns)
        assert not (too_small and choice.reading == "sub")
    if not too_small and at_ns - (steps_ns or [0])[0] >= SETTLED_NS:
        assert choice.reading == "sub"


def test_the_smaller_stream_is_wanted_once_it_has_been_enough_for_a_while() -> None:
    choice = StreamChoice(sub_px=(640, 360))
    assert choice.wanted((640, 360), 0) == "main"
    assert choice.wanted((640, 360), SETTLED_NS - 1) == "main"
    assert choice.wanted((641, 360), SETTLED_NS) == "main"  # it begins anew
    assert choice.wanted((640, 360), SETTLED_NS + 1) == "main"
    assert choice.wanted((640, 360), 2 * SETTLED_NS + 1) == "sub"


def test_a_smaller_stream_that_fails_is_tried_again_later() -> None:
    choice = StreamChoice(sub_px=(640, 360), reading="sub")
    choice.failed(5)
    assert choice.wanted((320, 180), 5 + SETTLED_NS - 1) == "main"
    assert choice.wanted((320, 180), 5 + SETTLED_NS) == "sub"
