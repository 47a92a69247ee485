"""The motion gate: what passes, and what is left out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgebox.vision.motion_gate import (
    GRID_PX,
    HOLD_NS,
    STILL_PERIOD_NS,
    THRESHOLD,
    MotionGate,
    moved,
)

SHAPE = GRID_PX[::-1]
STEPS_NS = st.lists(st.integers(1_000_000, 400_000_000), min_size=1, max_size=60)


def grid(level: int = 100) -> NDArray[np.uint8]:
    return np.full(SHAPE, level, np.uint8)


def with_thing(row: int, column: int, contrast: int = 40) -> NDArray[np.uint8]:
    picture = grid()
    picture[row, column] += contrast
    return picture


@given(STEPS_NS)
def test_a_still_scene_has_a_picture_a_second_and_no_more(steps_ns: list[int]) -> None:
    gate, at_ns, passed = MotionGate(), 0, [0]
    assert gate.passes(grid(), 0)
    for step_ns in steps_ns:
        at_ns += step_ns
        if gate.passes(grid(), at_ns):
            passed.append(at_ns)
            assert passed[-1] - passed[-2] >= STILL_PERIOD_NS
        else:
            assert at_ns - passed[-1] < STILL_PERIOD_NS


@given(st.integers(0, 35), st.integers(0, 63), st.integers(7, 100))
def test_a_thing_in_one_cell_passes_at_once_wherever_it_is(
    row: int, column: int, contrast: int
) -> None:
    gate = MotionGate()
    assert gate.passes(grid(), 0)
    assert gate.passes(with_thing(row, column, contrast), 1)


@given(st.lists(st.integers(0, 255), min_size=2, max_size=20))
def test_what_the_whole_picture_has_in_common_is_no_motion(levels: list[int]) -> None:
    gate = MotionGate()
    assert gate.passes(grid(levels[0]), 0)
    assert not any(gate.passes(grid(level), at) for at, level in enumerate(levels[1:], 1))


@given(st.integers(0, 2**32 - 1))
def test_noise_of_a_cells_mean_is_no_motion(seed: int) -> None:
    noise = np.random.default_rng(seed).uniform(-THRESHOLD / 3, THRESHOLD / 3, (2, *SHAPE))
    before, now = (100 + noise).astype(np.float32)
    assert not moved(before, now)


def test_slow_changes_add_up() -> None:
    gate = MotionGate()
    assert gate.passes(grid(), 0)
    passed = [gate.passes(with_thing(5, 5, level), level) for level in range(1, 10)]
    assert passed == [False] * 6 + [True] * 3


@given(st.integers(1, HOLD_NS - 1))
def test_after_motion_everything_passes_for_a_while(later_ns: int) -> None:
    gate = MotionGate()
    gate.passes(grid(), 0)
    assert gate.passes(with_thing(3, 3), 1)
    assert gate.passes(with_thing(3, 3), 1 + later_ns)
    last_ns = 1 + later_ns
    assert gate.passes(with_thing(3, 3), 1 + HOLD_NS) == (1 + HOLD_NS - last_ns >= STILL_PERIOD_NS)
