"""Several deadlines as they are written: what is right is read, each mistake has its sentence."""

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import UtilityStep
from edgebox.link.deadlines import (
    LaterDeadlines,
    read_deadlines,
    to_later,
    to_steps,
    written_deadlines,
    written_steps,
)
from edgebox.link.messages import Hello, decode_from_camera
from tests.link.strategies import later_than


@given(st.floats(1, 1000).flatmap(lambda ms: st.tuples(st.just(ms), later_than(ms))))
def test_what_is_written_is_read(deadlines: tuple[float, LaterDeadlines]) -> None:
    written = written_deadlines(*deadlines)
    if not deadlines[1]:
        assert written == deadlines[0]
        written = [[deadlines[0], 1]]
    assert isinstance(written, list)
    assert read_deadlines(orjson.loads(orjson.dumps(written)), 1, 60_000) == deadlines


def test_steps_are_the_same_in_nanoseconds() -> None:
    assert to_steps(((300.0, 0.3),)) == (UtilityStep(300_000_000, 0.3),)
    assert to_later((UtilityStep(300_000_000, 0.3),)) == ((300.0, 0.3),)
    assert written_steps(100_000_000, (UtilityStep(300_000_000, 0.3),)) == [[100, 1], [300, 0.3]]
    assert written_steps(100_000_000, ()) == 100


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ([], "slo_ms must be a number from 1 to 60000, or a list of 1 to 4 pairs"),
        (
            [[at + 1, 1 / (at + 1)] for at in range(5)],
            "slo_ms must have at most 4 deadlines, not 5",
        ),
        ([100, 300], "slo_ms[0] must be a pair [deadline in ms, utility], not 100"),
        ([[100, 1, 2]], "slo_ms[0] must be a pair [deadline in ms, utility], not [100,1,2]"),
        ([["soon", 1]], 'slo_ms[0][0] must be a number from 1 to 60000, not "soon"'),
        ([[100, 1], [70_000, 0.3]], "slo_ms[1][0] must be a number from 1 to 60000, not 70000"),
        ([[True, 1]], "slo_ms[0][0] must be a number from 1 to 60000, not true"),
        ([[100, 1], [100, 0.3]], "slo_ms[1][0] must be above the deadline before it, 100, not 100"),
        (
            [[100, 0.7]],
            "slo_ms[0][1] must be 1, the utility of an answer by the first deadline, not",
        ),
        (
            [[100, 1], [300, 1]],
            "slo_ms[1][1] must be a utility above 0 and below the one before it",
        ),
        (
            [[100, 1], [300, 0]],
            "slo_ms[1][1] must be a utility above 0 and below the one before it",
        ),
        ([[100, 1], [300, None]], "slo_ms[1][1] must be a utility above 0"),
    ],
)
def test_every_mistake_has_its_own_sentence(written: object, complaint: str) -> None:
    fields = {"type": "hello", "versions": [1], "camera": "a", "width_px": 1, "height_px": 1}
    with pytest.raises(InvalidInputError, match="^hello." + re.escape(complaint)) as caught:
        decode_from_camera(orjson.dumps({**fields, "slo_ms": written}))
    assert ";" not in str(caught.value)


def test_a_mistake_in_them_comes_with_the_others() -> None:
    hello = '{"type":"hello","camera":"a","width_px":0,"height_px":1,"slo_ms":[[9,1],[8,0.5]]}'
    with pytest.raises(InvalidInputError, match=r"width_px .*; .*slo_ms\[1\]\[0\]"):
        decode_from_camera(hello)


def test_one_pair_is_a_plain_deadline() -> None:
    hello = Hello("a", 1, 1, slo_ms=100.0)
    text = hello.encode().replace(b'"slo_ms":100.0', b'"slo_ms":[[100,1]]')
    assert text != hello.encode()
    assert decode_from_camera(text) == hello
