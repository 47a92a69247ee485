"""When a picture was captured, by sender reports and without."""

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
    assert clock.times is CaptureTimes.ARRIVAL


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
