"""Observed times: quantiles of recent batches, by kind."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import QUANTILES, ExecutorId, LatencyProfile, VariantName
from edgebox.runtime.batch_latency import SAMPLES, SHOWN, BatchLatencies

A, B = VariantName("a"), VariantName("b")
CPU = ExecutorId("cpu/0")
TIMES_NS = tuple(round(100 * q) for q in QUANTILES)
PROFILES = {
    CPU: {each: LatencyProfile(each, CPU, dict.fromkeys((1, 2, 4), TIMES_NS)) for each in (A, B)}
}


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=3 * SAMPLES))
def test_quantiles_are_those_of_the_newest(took_ns: list[int]) -> None:
    observed = BatchLatencies()
    for each in took_ns:
        observed.ran(A, CPU, 2, each)
    (times,) = observed.times(PROFILES)
    newest = took_ns[-SAMPLES:]
    assert times.count == len(newest)
    assert times.quantiles_ns == tuple(round(float(q)) for q in np.quantile(newest, SHOWN))


def test_kinds_are_kept_apart_and_in_order() -> None:
    observed = BatchLatencies()
    for variant, size in ((B, 1), (A, 4), (A, 1)):
        observed.ran(variant, CPU, size, 10 * size)
    times = list(observed.times(PROFILES))
    found = [(each.variant, each.batch_size, each.quantiles_ns[0]) for each in times]
    assert found == [(A, 1, 10), (A, 4, 40), (B, 1, 10)]
    assert {each.profile_ns for each in times} == {(50, 90, 99)}


def test_what_is_forgotten_is_not_told_any_more() -> None:
    observed = BatchLatencies()
    for variant in (A, B):
        observed.ran(variant, CPU, 1, 10)
    observed.forget({A, B}, ExecutorId("cpu/1"))
    observed.forget({A})
    assert [each.variant for each in observed.times(PROFILES)] == [B]
    observed.forget({B}, CPU)
    assert not list(observed.times(PROFILES))


def test_what_has_no_profile_of_its_size_is_not_told() -> None:
    observed = BatchLatencies()
    for executor, size in ((CPU, 8), (CPU, 2), (ExecutorId("gone"), 1)):
        observed.ran(A, executor, size, 10)
    assert [each.batch_size for each in observed.times(PROFILES)] == [2]
