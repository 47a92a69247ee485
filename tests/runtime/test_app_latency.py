"""Execution times by application: brought to a batch of one, recent, bounded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId
from edgebox.runtime.app_latency import SAMPLES, AppLatencies
from tests.scheduling.scene import CPU, MEDIAN_MS, MS, name, profile

GPU = ExecutorId("cuda:0/0")
PROFILES = {
    CPU: {name(px): profile(px) for px in MEDIAN_MS},
    GPU: {name(256): profile(256, GPU, gain=0.5)},
}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["gates", "halls"]),
            st.sampled_from([1, 2, 4]),
            st.integers(1, 10**9),
        ),
        max_size=40,
    )
)
def test_quantiles_are_those_of_each_application_alone(
    ran: list[tuple[str, int, int]],
) -> None:
    applications = AppLatencies()
    for app, batch_size, took_ns in ran:
        applications.ran(app, name(256), CPU, batch_size, took_ns)
    found = {times.app: times for times in applications.times(PROFILES)}
    assert list(found) == sorted({app for app, _, _ in ran})
    for app, times in found.items():
        # On this CPU a batch of k takes k times as long as one alone.
        alone = [took_ns / size for of, size, took_ns in ran if of == app]
        assert times.count == len(alone)
        p50, p99 = np.quantile(alone, (0.5, 0.99))
        assert abs(times.measured_ns[0] - p50) <= 1
        assert abs(times.measured_ns[1] - p99) <= 1
        assert times.profile_ns == (8 * MS, 12 * MS)


def test_executors_and_variants_are_told_apart() -> None:
    applications = AppLatencies()
    applications.ran("gates", name(256), GPU, 2, 12 * MS)
    applications.ran("gates", name(256), CPU, 1, 9 * MS)
    applications.ran("gates", name(128), CPU, 1, 2 * MS)
    found = [(t.variant, t.executor, t.measured_ns[0]) for t in applications.times(PROFILES)]
    assert found == [
        (name(128), CPU, 2 * MS),
        (name(256), CPU, 9 * MS),
        (name(256), GPU, 8 * MS),
    ]


def test_only_the_recent_count() -> None:
    applications = AppLatencies()
    for _ in range(SAMPLES):
        applications.ran("gates", name(256), CPU, 1, 100 * MS)
    for _ in range(SAMPLES):
        applications.ran("gates", name(256), CPU, 1, 7 * MS)
    (times,) = applications.times(PROFILES)
    assert times.count == SAMPLES
    assert times.measured_ns == (7 * MS, 7 * MS)


def test_names_from_cameras_do_not_fill_the_memory() -> None:
    applications = AppLatencies()
    for number in range(1000):
        applications.ran("steady", name(256), CPU, 1, MS)
        applications.ran(f"app-{number:04}", name(256), CPU, 1, MS)
    found = [times.app for times in applications.times(PROFILES)]
    assert len(found) == 64
    assert {"steady", "app-0999"} <= set(found)
    assert "app-0000" not in found


def test_what_has_no_profile_any_more_is_not_told() -> None:
    applications = AppLatencies()
    applications.ran("gates", name(256), ExecutorId("gone"), 1, MS)
    applications.ran("gates", name(608), GPU, 1, MS)
    assert applications.times(PROFILES) == []


def test_what_is_forgotten_is_not_told_any_more() -> None:
    applications = AppLatencies()
    for px in (256, 608):
        applications.ran("gates", name(px), CPU, 1, MS)
    applications.forget({name(256)})
    assert [times.variant for times in applications.times(PROFILES)] == [name(608)]
