"""Worth over time, and that single deadlines add up to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName
from edgebox.domain.requests import Camera, CameraId, UtilityStep, single_deadlines, utility_at

LATER = (UtilityStep(300, 0.5), UtilityStep(500, 0.2))


def test_what_an_answer_is_worth_over_time() -> None:
    worths = [utility_at(at, 100, LATER) for at in (0, 100, 101, 300, 301, 500, 501)]
    assert worths == [1, 1, 0.5, 0.5, 0.2, 0.2, 0]
    assert [utility_at(at, 100, ()) for at in (100, 101)] == [1, 0]


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=4, unique=True).map(sorted),
    st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3, unique=True),
    st.integers(0, 110),
)
def test_single_deadlines_add_up_to_the_steps(
    instants: list[int], worths: list[float], at: int
) -> None:
    falling = [1.0, *sorted(worths, reverse=True)]
    steps = [UtilityStep(by, utility) for by, utility in zip(instants, falling, strict=False)]
    singles = single_deadlines(steps)
    assert [step.by_ns for step in singles] == instants
    gained = sum(step.utility for step in singles if at <= step.by_ns)
    assert gained == pytest.approx(utility_at(at, instants[0], steps[1:]))


def test_a_frames_later_deadlines_keep_their_distance_from_the_first() -> None:
    camera = Camera(CameraId("a"), "default", FamilyName("f"), 100, 10, 1, 1, steps=LATER)
    assert camera.steps_after(1_090) == (UtilityStep(1_290, 0.5), UtilityStep(1_490, 0.2))
