"""Histograms against counting by hand, with each of the bucket edges in use."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.latency_histogram import (
    HISTORY_BUCKETS,
    METRIC_BUCKETS,
    SUMMARY_BUCKETS,
    Histogram,
)

LEAST_NS, MOST_NS = 100_000, 17_500_000_000
DURATIONS = st.one_of(st.integers(-(10**9), 10**11), st.sampled_from(METRIC_BUCKETS.edges_ns))
LATENCIES_MS = st.lists(st.floats(0.02, 60_000), min_size=1, max_size=60)
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def counted(latencies_ms: list[float]) -> Histogram:
    histogram = Histogram(SUMMARY_BUCKETS)
    for latency_ms in latencies_ms:
        histogram.add(round(latency_ms * 1e6))
    return histogram


@given(st.lists(DURATIONS, max_size=50))
def test_every_duration_is_in_the_first_bucket_that_holds_it(durations: list[int]) -> None:
    histogram = Histogram(METRIC_BUCKETS)
    for duration in durations:
        histogram.add(duration)
    assert sum(histogram.counts) == len(durations)
    assert histogram.sum_ns == sum(max(0, d) for d in durations)
    for at, bound in enumerate(METRIC_BUCKETS.edges_ns):
        assert sum(histogram.counts[: at + 1]) == sum(max(0, d) <= bound for d in durations)


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_a_bucket_stands_for_its_latencies(latencies_ns: list[int]) -> None:
    ns = np.array(latencies_ns)
    values_ms = np.array(HISTORY_BUCKETS.values_ms)[HISTORY_BUCKETS.of_ns(ns)]
    within = (ns >= LEAST_NS) & (ns <= MOST_NS)
    exact_ms = ns[within] / 1e6
    assert (
        np.abs(values_ms[within] - exact_ms) <= HISTORY_BUCKETS.relative_error * exact_ms + 1e-5
    ).all()
    assert (values_ms[ns < LEAST_NS] < 0.105).all()
    assert (values_ms[ns > MOST_NS] > 16_500).all()


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_an_array_of_latencies_and_single_ones_are_counted_alike(latencies_ns: list[int]) -> None:
    histogram = Histogram(HISTORY_BUCKETS)
    for latency_ns in latencies_ns:
        histogram.add(latency_ns)
    buckets = HISTORY_BUCKETS.of_ns(np.array(latencies_ns))
    assert np.bincount(buckets, minlength=HISTORY_BUCKETS.count).tolist() == histogram.counts


def test_the_history_covers_the_latencies_of_frames() -> None:
    assert HISTORY_BUCKETS.count == 128  # stored counts are numbered so
    assert HISTORY_BUCKETS.relative_error < 0.05
    assert 0.095 < HISTORY_BUCKETS.values_ms[0] < 0.105
    assert HISTORY_BUCKETS.values_ms[-1] > 17_500
    assert (np.diff(HISTORY_BUCKETS.values_ms) > 0).all()


@given(LATENCIES_MS, LATENCIES_MS)
def test_quantiles_of_added_histograms_are_those_of_all_latencies(
    here: list[float], there: list[float]
) -> None:
    added = Counter(counted(here).to_json())
    added.update(counted(there).to_json())
    found = Histogram(SUMMARY_BUCKETS, added).quantiles_ms(QUANTILES)
    ordered = sorted(here + there)
    for name, q in QUANTILES.items():
        true = ordered[round(q * (len(ordered) - 1))]
        # Half a bucket, and the two digits that are kept.
        assert abs(found[name] - true) <= 0.01 * true + 0.006


def test_a_histogram_without_durations_has_no_quantiles() -> None:
    assert Histogram(SUMMARY_BUCKETS).quantiles_ms(QUANTILES) == {}
    assert counted([0.0] * 3).quantiles_ms(QUANTILES)["max"] == 0.01
