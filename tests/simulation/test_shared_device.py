"""Batches that slow each other: by hand, and against a simulation in small steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.simulation.shared_device import SharedDevice


def run_all(k: float, starts: list[tuple[int, int]]) -> dict[int, int]:
    """Return when each batch ends; `starts` has (start, time alone), by rising start."""
    device, ends = SharedDevice[int](k), {}
    coming = list(enumerate(starts))
    while coming or device.next_end_ns() is not None:
        end_ns = device.next_end_ns()
        if end_ns is not None and (not coming or end_ns <= coming[0][1][0]):
            for work, took_ns in device.ended(end_ns):
                ends[work] = end_ns
                assert took_ns == end_ns - starts[work][0]
        else:
            at, (start_ns, alone_ns) = coming.pop(0)
            device.start(at, alone_ns, start_ns)
    return ends


def test_two_batches_worked_by_hand() -> None:
    # Alone until 100; then both at half speed: the first has 100 left and ends at 300. The second
    # has 200 left then, and the device for itself.
    assert run_all(1.0, [(0, 200), (100, 300)]) == {0: 300, 1: 500}
    assert run_all(0.0, [(0, 200), (100, 300)]) == {0: 200, 1: 400}


@given(
    st.floats(0, 2),
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 200)), min_size=1, max_size=6),
)
def test_it_is_what_small_steps_give(k: float, drawn: list[tuple[int, int]]) -> None:
    starts = sorted(drawn)
    left = {at: float(alone) for at, (_, alone) in enumerate(starts)}
    expected, now, step = {}, 0.0, 0.25
    while left:
        running = [at for at in left if starts[at][0] <= now]
        for at in running:
            left[at] -= step / (1 + k * (len(running) - 1))
            if left[at] <= 1e-9:
                expected[at] = now + step
                del left[at]
        now += step
    found = run_all(k, starts)
    assert found.keys() == expected.keys()
    slack = 4 * len(starts) * (1 + k * len(starts))
    for at, end in found.items():
        assert end == pytest.approx(expected[at], abs=slack)
