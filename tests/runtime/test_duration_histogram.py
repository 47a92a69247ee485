"""Histograms against counting by hand."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.runtime.duration_histogram import BOUNDS_NS, Histogram

DURATIONS = st.one_of(st.integers(-(10**9), 10**11), st.sampled_from(BOUNDS_NS))


@given(st.lists(DURATIONS, max_size=50))
def test_every_duration_is_in_the_first_bucket_that_holds_it(durations: list[int]) -> None:
    histogram = Histogram()
    for duration in durations:
        histogram.add(duration)
    assert sum(histogram.counts) == len(durations)
    assert histogram.sum_ns == sum(max(0, d) for d in durations)
    for at, bound in enumerate(BOUNDS_NS):
        assert sum(histogram.counts[: at + 1]) == sum(max(0, d) <= bound for d in durations)
