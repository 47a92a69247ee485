"""The estimate holds what it promises, on generated clocks and delays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.clock import ERRATIC_JUMPS, JUMP_TOLERANCE_NS, ClockEstimate

S = 1_000_000_000
MS = 1_000_000


class CameraClock:
    """A clock with an offset and a drift, against the box's."""

    def __init__(self, offset_ns: int, drift_ppm: float) -> None:
        self.offset_ns = offset_ns
        self.drift_ppm = drift_ppm

    def at(self, box_ns: int) -> int:
        return box_ns - self.offset_ns + round(box_ns * self.drift_ppm * 1e-6)


def exchange(
    estimate: ClockEstimate, clock: CameraClock, now_ns: int, up_ns: int, down_ns: int
) -> bool:
    """Ping at `now_ns`, down to the camera and up again."""
    return estimate.add(now_ns, clock.at(now_ns + down_ns), now_ns + down_ns + up_ns)


delays = st.integers(0, 400 * MS)


def test_knows_nothing_before_the_first_exchange() -> None:
    estimate = ClockEstimate()
    assert estimate.offset_ns is None
    assert estimate.rtt_ns is None
    assert estimate.error_ns(0) is None
    assert estimate.to_box_ns(5) is None


def test_one_symmetric_exchange_is_exact() -> None:
    estimate = ClockEstimate(drift_ppm=0)
    assert estimate.add(1000, 77_000, 3000) is False
    assert estimate.offset_ns == 2000 - 77_000
    assert estimate.to_box_ns(77_000) == 2000
    assert estimate.rtt_ns == 2000
    assert estimate.error_ns(9_999_999) == 1000


def test_the_quickest_exchange_wins_until_it_is_old() -> None:
    clock = CameraClock(5 * S, 0)
    estimate = ClockEstimate(window_ns=10 * S)
    exchange(estimate, clock, 0, 1 * MS, 1 * MS)
    exchange(estimate, clock, 1 * S, 90 * MS, 10 * MS)
    assert estimate.offset_ns == 5 * S
    assert estimate.rtt_ns == 2 * MS
    exchange(estimate, clock, 10 * S, 30 * MS, 10 * MS)
    assert estimate.rtt_ns == 40 * MS
    assert estimate.offset_ns == 5 * S + 10 * MS


def test_a_pong_before_its_ping_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="before"):
        ClockEstimate().add(5, 0, 4)


@given(
    offset_ns=st.integers(-(10**17), 10**17),
    drift_ppm=st.floats(-100, 100),
    exchanges=st.lists(st.tuples(st.integers(1, 5 * S), delays, delays), min_size=1, max_size=40),
    later_ns=st.integers(0, 20 * S),
)
def test_the_truth_is_always_within_the_error_bound(
    offset_ns: int, drift_ppm: float, exchanges: list[tuple[int, int, int]], later_ns: int
) -> None:
    clock = CameraClock(offset_ns, drift_ppm)
    estimate = ClockEstimate()
    now_ns = 0
    for gap_ns, up_ns, down_ns in exchanges:
        now_ns += gap_ns
        jumped = exchange(estimate, clock, now_ns, up_ns, down_ns)
        assert not jumped
        now_ns += up_ns + down_ns
    now_ns += later_ns
    mapped_ns = estimate.to_box_ns(clock.at(now_ns))
    error_ns = estimate.error_ns(now_ns)
    assert mapped_ns is not None
    assert error_ns is not None
    assert abs(mapped_ns - now_ns) <= error_ns + 2  # the test's own clock rounds
    assert estimate.jumps == 0
    assert estimate.rtt_ns is not None
    assert error_ns >= estimate.rtt_ns // 2


@given(
    drift_ppm=st.floats(-100, 100),
    before=st.lists(st.tuples(delays, delays), min_size=1, max_size=20),
    after=st.tuples(delays, delays),
    jump_ns=st.integers(-3600 * S, 3600 * S),
)
def test_a_jump_is_seen_when_it_is_larger_than_what_is_uncertain(
    drift_ppm: float,
    before: list[tuple[int, int]],
    after: tuple[int, int],
    jump_ns: int,
) -> None:
    clock = CameraClock(0, drift_ppm)
    estimate = ClockEstimate()
    now_ns = 0
    for up_ns, down_ns in before:
        now_ns += 1 * S
        exchange(estimate, clock, now_ns, up_ns, down_ns)
    error_ns = estimate.error_ns(now_ns + 3 * S)
    assert error_ns is not None
    clock.offset_ns += jump_ns
    jumped = exchange(estimate, clock, now_ns + 2 * S, *after)
    uncertain_ns = 2 * error_ns + sum(after) + JUMP_TOLERANCE_NS
    if abs(jump_ns) > uncertain_ns:
        assert jumped
        assert estimate.jumps == 1
        # And the new offset is right at once.
        assert estimate.rtt_ns == sum(after)
        mapped_ns = estimate.to_box_ns(clock.at(now_ns + 3 * S))
        assert mapped_ns is not None
        assert abs(mapped_ns - (now_ns + 3 * S)) <= (estimate.error_ns(now_ns + 3 * S) or 0) + 2
    if jump_ns == 0:
        assert not jumped


@given(tick_ms=st.sampled_from((0.1, 1.0)), rtts=st.lists(delays, min_size=2, max_size=30))
def test_a_coarse_clock_does_not_jump(tick_ms: float, rtts: list[int]) -> None:
    estimate = ClockEstimate()
    tick_ns = round(tick_ms * MS)
    for number, rtt_ns in enumerate(rtts):
        now_ns = number * S
        camera_ns = (now_ns + rtt_ns // 3) // tick_ns * tick_ns
        assert not estimate.add(now_ns, camera_ns, now_ns + rtt_ns)


@pytest.mark.parametrize("pace", [0, 1e-6, 1e-3, 0.9, 2])
def test_what_is_no_clock_in_nanoseconds_maps_nothing_until_it_runs_as_one(pace: float) -> None:
    estimate = ClockEstimate()
    for second in range(ERRATIC_JUMPS):
        assert not estimate.is_erratic
        assert estimate.to_box_ns(0) is not None or not second
        now_ns = second * S
        estimate.add(now_ns, round(now_ns * pace), now_ns + MS)
    for second in range(ERRATIC_JUMPS, 60):
        now_ns = second * S
        assert estimate.add(now_ns, round(now_ns * pace), now_ns + MS)
        assert estimate.is_erratic
        assert estimate.offset_ns is None
        assert estimate.to_box_ns(0) is None
        assert estimate.error_ns(now_ns) is None
        assert estimate.rtt_ns == MS
    clock = CameraClock(7 * S, 0)
    exchange(estimate, clock, 60 * S, MS, MS)
    assert estimate.is_erratic, "it may have jumped once more"
    exchange(estimate, clock, 61 * S, MS, MS)
    assert estimate.offset_ns == 7 * S


def test_a_clock_that_is_one_percent_off_is_followed() -> None:
    estimate, clock = ClockEstimate(), CameraClock(5 * S, 10_000)
    for second in range(60):
        exchange(estimate, clock, second * S, MS, MS)
        mapped_ns = estimate.to_box_ns(clock.at(second * S))
        assert mapped_ns is not None
        assert abs(mapped_ns - second * S) <= 10 * MS + 2 * MS


def test_jumps_that_are_far_apart_are_followed_each() -> None:
    estimate, clock = ClockEstimate(), CameraClock(5 * S, 0)
    for second in range(60):
        if second % 2:
            clock.offset_ns += 30 * S
        assert exchange(estimate, clock, second * S, MS, MS) is bool(second % 2)
        assert estimate.offset_ns == clock.offset_ns
