"""When a picture was captured, by sender reports and without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.source_settings import CaptureTimes
from edgebox.link.capture_clock import AGE_MAX_NS, FUTURE_MAX_NS, CaptureClock

MS = 1_000_000
PATHS = st.integers(0, 50 * MS)


@given(PATHS, st.integers(-FUTURE_MAX_NS, AGE_MAX_NS))
def test_a_plausible_report_is_taken_and_nothing_is_captured_after_its_arrival(
    path_ns: int, age_ns: int
) -> None:
    clock = CaptureClock(path_ns)
    captured_ns = clock.captured_ns(10**12, 5, 10**12 - age_ns)
    assert clock.times is CaptureTimes.REPORTS
    assert captured_ns == min(10**12 - age_ns, 10**12 - path_ns)


@given(PATHS, st.sampled_from([-FUTURE_MAX_NS - 1, AGE_MAX_NS + 1, 3600 * 1000 * MS]))
def test_a_clock_that_is_not_set_is_not_believed(path_ns: int, age_ns: int) -> None:
    clock = CaptureClock(path_ns)
    assert clock.captured_ns(10**12, 5, 10**12 - age_ns) == 10**12 - path_ns
    assert clock.times is CaptureTimes.WRONG_CLOCK


def seen(clock: CaptureClock, arrival_ns: int, age_ns: int) -> CaptureTimes:
    clock.captured_ns(arrival_ns, None, arrival_ns - age_ns)
    return clock.times


def test_without_reports_no_clock_is_wrong() -> None:
    clock = CaptureClock(0)
    assert seen(clock, 10**12, 3600 * 1000 * MS) is CaptureTimes.WRONG_CLOCK
    clock.captured_ns(2 * 10**12, 10**12, None)
    assert clock.times is CaptureTimes.ARRIVAL


def test_a_clock_that_makes_every_picture_too_late_is_not_believed() -> None:
    clock = CaptureClock(0, lambda: 300 * MS)
    for number in range(100):
        age_ns = 1100 * MS + number % 7 * 20 * MS
        assert seen(clock, number * 40 * MS, age_ns) is CaptureTimes.WRONG_CLOCK
    # The camera's clock is set: from the first picture in time on.
    assert seen(clock, 4000 * MS, 100 * MS) is CaptureTimes.REPORTS


def test_pictures_that_are_late_among_others_were_delayed() -> None:
    clock = CaptureClock(0, lambda: 300 * MS)
    assert seen(clock, 0, 120 * MS) is CaptureTimes.REPORTS
    for at_ms in range(1500, 1900, 40):
        assert clock.captured_ns(at_ms * MS, None, (at_ms - 1500) * MS) == (at_ms - 1500) * MS
    assert seen(clock, 9_000 * MS, 1400 * MS) is CaptureTimes.REPORTS
    assert seen(clock, 10_001 * MS, 1400 * MS) is CaptureTimes.WRONG_CLOCK, "none was in time since"


def test_a_later_deadline_is_heeded_at_once() -> None:
    slo_ns = [300 * MS]
    clock = CaptureClock(0, lambda: slo_ns[0])
    assert seen(clock, 0, 800 * MS) is CaptureTimes.WRONG_CLOCK
    slo_ns[0] = 1000 * MS
    assert seen(clock, 40 * MS, 800 * MS) is CaptureTimes.REPORTS


@given(st.lists(st.integers(0, 400 * MS), min_size=60, max_size=120), PATHS)
def test_a_delayed_picture_is_placed_by_the_media_clock(delays_ns: list[int], path_ns: int) -> None:
    """Every 40 ms a picture; each is delayed by the path and something more."""
    clock = CaptureClock(path_ns)
    least_ns = delays_ns[0]
    for number, delay_ns in enumerate(delays_ns):
        true_ns = 10**12 + number * 40 * MS
        arrival_ns = true_ns + path_ns + delay_ns
        captured_ns = clock.captured_ns(arrival_ns, number * 40 * MS, None)
        least_ns = min(least_ns, delay_ns)
        assert captured_ns <= arrival_ns - path_ns
        if number * 40 >= 2500:
            # As if it had been delayed by no more than the luckiest picture so far.
            drift_ns = 40 * MS * number // 1000
            assert captured_ns <= true_ns + least_ns + drift_ns + 2


PERIOD_NS = 200 * MS
AGE_NS = 100 * MS
"""What the camera takes to encode a picture."""


def ages_ns(set_by_ns: list[int]) -> tuple[list[int], CaptureTimes]:
    """Return how old pictures look, each with a clock that was set by so much before it."""
    clock, ages = CaptureClock(0), []
    for number, by_ns in enumerate(set_by_ns):
        arrival_ns = 10**12 + number * PERIOD_NS
        reported_ns = arrival_ns - AGE_NS + by_ns
        ages.append(arrival_ns - clock.captured_ns(arrival_ns, number * PERIOD_NS, reported_ns))
    return ages, clock.times


@pytest.mark.parametrize("back_ns", [-150 * MS, -1_000 * MS, -3_600_000 * MS])
def test_a_clock_that_is_set_back_makes_no_picture_older(back_ns: int) -> None:
    ages, times = ages_ns([0, 0, back_ns, back_ns, back_ns])
    assert ages == [AGE_NS] * 5
    assert times is CaptureTimes.REPORTS


@pytest.mark.parametrize("wrong_ns", [-3_600_000 * MS, -1_000 * MS, 1_000 * MS, 3_600_000 * MS])
def test_a_clock_that_is_wrong_and_set_right_is_believed_again(wrong_ns: int) -> None:
    ages, times = ages_ns([0, wrong_ns, wrong_ns, 0, 0])
    assert ages[-2:] == [AGE_NS] * 2
    assert times is CaptureTimes.REPORTS


@pytest.mark.parametrize("wrong_ns", [-3_600_000 * MS, -1_000 * MS, 1_000 * MS, 3_600_000 * MS])
def test_a_clock_that_is_wrong_at_first_is_believed_once_it_is_set(wrong_ns: int) -> None:
    ages, times = ages_ns([wrong_ns, wrong_ns, 0, 0])
    assert ages[-2:] == [AGE_NS] * 2
    assert times is CaptureTimes.REPORTS


def test_a_clock_that_drifts_is_followed() -> None:
    ages, _ = ages_ns([-number * MS for number in range(300)])
    assert ages[-1] == AGE_NS + 299 * MS


def test_pictures_that_a_network_holds_up_are_as_old_as_they_are() -> None:
    clock = CaptureClock(0)
    clock.captured_ns(10**12, 0, 10**12 - AGE_NS)
    late_ns = 10**12 + PERIOD_NS + 1_000 * MS
    captured_ns = clock.captured_ns(late_ns, PERIOD_NS, late_ns - 1_000 * MS - AGE_NS)
    assert late_ns - captured_ns == 1_000 * MS + AGE_NS
