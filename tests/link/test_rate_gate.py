"""Frames at a rate: no more, no fewer, and of many cameras each in its turn."""

import random

from hypothesis import example, given
from hypothesis import strategies as st

from edgebox.link.rate_gate import RateGate, spread_phase

S = 1_000_000_000
MS = 1_000_000


def passed(gate: RateGate, captures_ns: list[int], rate_hz: float) -> list[int]:
    return [at_ns for at_ns in captures_ns if gate.due(at_ns, rate_hz)]


def crowded(instants_ns: list[int], within_ns: int) -> int:
    """Return how many instants lie within a time of each other, at most."""
    instants_ns = sorted(instants_ns)
    return max(
        sum(begin_ns <= at_ns < begin_ns + within_ns for at_ns in instants_ns)
        for begin_ns in instants_ns
    )


def test_cameras_that_start_together_take_turns() -> None:
    """Sixteen sources of 10 pictures/s start within 100 ms; every 2 s one picture is used."""
    starts_ns = [5 * S + number * 6 * MS for number in range(16)]

    def in_a_period(phases: list[float | None]) -> list[int]:
        used: list[int] = []
        for start_ns, phase in zip(starts_ns, phases, strict=True):
            captures_ns = [start_ns + at * 100 * MS for at in range(400)]
            used += passed(RateGate(phase), captures_ns, 0.5)
        return [at_ns for at_ns in used if 30 * S <= at_ns < 32 * S]

    together = in_a_period([None] * 16)
    assert crowded(together, 200 * MS) == 16
    in_turns = in_a_period([spread_phase(number) for number in range(16)])
    assert len(in_turns) == 16
    assert crowded(in_turns, 200 * MS) <= 4


def test_the_turns_are_kept_when_a_plan_lowers_the_rate_of_all() -> None:
    used: list[int] = []
    for number in range(16):
        gate = RateGate(spread_phase(number))
        captures_ns = [5 * S + number * 6 * MS + at * 100 * MS for at in range(600)]
        passed(gate, captures_ns[:200], 10)
        used += passed(gate, captures_ns[200:], 0.5)
    in_turns = [at_ns for at_ns in used if 50 * S <= at_ns < 52 * S]
    assert len(in_turns) == 16
    assert crowded(in_turns, 200 * MS) <= 4


@given(
    st.none() | st.floats(0, 1, exclude_max=True),
    st.floats(0.2, 30),
    st.floats(1, 5),
    st.integers(0, 2**32),
)
def test_a_phase_costs_no_frames(
    phase: float | None, rate_hz: float, faster: float, seed: int
) -> None:
    """Whatever the phase, as many frames pass as the rate asks for, with jitter of the source."""
    rng = random.Random(seed)
    period_ns = 1e9 / rate_hz / faster
    captures_ns = [
        round(7 * S + (at + rng.uniform(-0.1, 0.1)) * period_ns) for at in range(round(60 * faster))
    ]
    assert abs(len(passed(RateGate(phase), captures_ns, rate_hz)) - 60) <= 3


@given(
    st.none() | st.floats(0, 1, exclude_max=True),
    st.floats(0.001, 30),
    st.floats(0.2, 30),
    st.floats(0, 60),
)
@example(None, 0.02, 10, 38)  # its frame at the low rate was a quarter of that period early
def test_a_raised_rate_holds_at_once(
    phase: float | None, low_hz: float, high_hz: float, slow_s: float
) -> None:
    """After a rate that was low for a while, frames come at the next rate, and not a burst."""
    gate = RateGate(phase)
    raised_ns = 7 * S + round(slow_s * S)
    step_ns = round(S / high_hz / 4)
    passed(gate, list(range(5 * S, 7 * S, step_ns)), high_hz)
    passed(gate, list(range(7 * S, raised_ns, step_ns)), low_hz)
    after_ns = passed(gate, [raised_ns + at * step_ns for at in range(160)], high_hz)
    assert after_ns[0] - raised_ns <= 1.5 * S / high_hz
    assert abs(len(after_ns) - 40) <= 4


def test_any_first_cameras_are_spread() -> None:
    for count in range(2, 65):
        phases = sorted(spread_phase(number) for number in range(count))
        gaps = [b - a for a, b in zip(phases, [*phases[1:], phases[0] + 1], strict=True)]
        assert min(gaps) > 0.3 / count
