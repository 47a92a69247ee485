"""Utilisation and batch sizes of an executor, judged by sums over all that ran."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.runtime.meters import WINDOW_NS, ExecutorMeter

RUNS = st.lists(
    st.tuples(st.integers(0, 3_000), st.integers(1, 2_000), st.integers(1, 16)), max_size=40
)
"""(pause before in ms, time it took in ms, requests)"""


@given(RUNS, st.integers(0, 20_000))
def test_the_busy_share_of_ten_seconds(runs: list[tuple[int, int, int]], later_ms: int) -> None:
    born_ns = 5_000_000_000
    meter = ExecutorMeter(born_ns)
    now_ns = born_ns
    ran = []
    for pause_ms, took_ms, requests in runs:
        started_ns = now_ns + pause_ms * 1_000_000
        now_ns = started_ns + took_ms * 1_000_000
        meter.ran(started_ns, now_ns, requests)
        ran.append((started_ns, now_ns, requests))
    now_ns += later_ms * 1_000_000
    since_ns = max(born_ns, now_ns - WINDOW_NS)
    busy_ns = sum(max(0, end - max(start, since_ns)) for start, end, _ in ran)
    wanted = busy_ns / max(1, now_ns - since_ns)
    assert meter.utilisation(now_ns) == pytest.approx(wanted)
    assert 0 <= meter.utilisation(now_ns) <= 1
    sizes = [requests for _, end, requests in ran if end > now_ns - WINDOW_NS]
    mean = meter.batch_size_mean(now_ns)
    assert mean == (pytest.approx(sum(sizes) / len(sizes)) if sizes else None)


def test_a_sample_is_busy_time_but_no_batch() -> None:
    meter = ExecutorMeter(0)
    meter.sampled(0, 1_000_000)
    assert meter.batch_size_mean(2_000_000) is None
    assert meter.utilisation(2_000_000) == 0.5

    meter.ran(2_000_000, 3_000_000, 4)
    assert meter.batch_size_mean(3_000_000) == 4


def test_nothing_ran_yet() -> None:
    meter = ExecutorMeter(7)
    assert meter.utilisation(7) == 0
    assert meter.batch_size_mean(7) is None


@given(RUNS, st.lists(st.integers(0, 200_000), max_size=5), st.integers(0, 20_000))
def test_questions_change_nothing(
    runs: list[tuple[int, int, int]], asked_ms: list[int], later_ms: int
) -> None:
    """A page or a scrape may ask at any time, about any instant."""
    meter, queried = ExecutorMeter(0), ExecutorMeter(0)
    now_ns = 0
    for pause_ms, took_ms, requests in runs:
        started_ns = now_ns + pause_ms * 1_000_000
        now_ns = started_ns + took_ms * 1_000_000
        for each in (meter, queried):
            each.ran(started_ns, now_ns, requests)
        for ahead_ms in asked_ms:
            queried.utilisation(now_ns + ahead_ms * 1_000_000)
            queried.batch_size_mean(now_ns + ahead_ms * 1_000_000)
    now_ns += later_ms * 1_000_000
    assert queried.utilisation(now_ns) == meter.utilisation(now_ns)
    assert queried.batch_size_mean(now_ns) == meter.batch_size_mean(now_ns)


def test_threads_count_for_as_long_as_they_compute() -> None:
    meter = ExecutorMeter(0)
    meter.ran(0, 1_000_000, 1, threads=4)
    meter.sampled(1_000_000, 2_000_000, threads=2)
    meter.ran(2_000_000, 3_000_000, 1)
    assert meter.threads_mean(4_000_000) == 1.5
    assert meter.core_ns == 6_000_000
    meter.ran(WINDOW_NS - 1, WINDOW_NS + 500_000, 1, threads=1)
    assert meter.threads_mean(WINDOW_NS + 1_500_000) == pytest.approx(1_500_001 / WINDOW_NS)
