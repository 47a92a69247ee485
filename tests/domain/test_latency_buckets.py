"""Buckets: right to their stated error, for single latencies and for quantiles of merged counts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.latency_buckets import HISTORY_BUCKETS

LEAST_NS, MOST_NS = 100_000, 17_500_000_000


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_a_bucket_stands_for_its_latencies(latencies_ns: list[int]) -> None:
    ns = np.array(latencies_ns)
    values_ms = HISTORY_BUCKETS.values_ms()[HISTORY_BUCKETS.of_ns(ns)]
    within = (ns >= LEAST_NS) & (ns <= MOST_NS)
    exact_ms = ns[within] / 1e6
    assert (np.abs(values_ms[within] - exact_ms) <= HISTORY_BUCKETS.error * exact_ms + 1e-9).all()
    assert (values_ms[ns < LEAST_NS] < 0.105).all()
    assert (values_ms[ns > MOST_NS] > 16_500).all()


def test_the_error_is_below_five_percent_and_the_range_is_that_of_frames() -> None:
    assert HISTORY_BUCKETS.error < 0.05
    values_ms = HISTORY_BUCKETS.values_ms()
    assert 0.095 < values_ms[0] < 0.105
    assert values_ms[-1] > 17_500
    assert (np.diff(values_ms) > 0).all()
