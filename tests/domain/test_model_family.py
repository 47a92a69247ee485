"""Latency profiles: look-up, interpolation, monotony."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    LatencyProfile,
    VariantName,
    monotone,
    quantiles_of,
)

CPU = ExecutorId("cpu/0")
times = st.lists(st.integers(0, 10**9), min_size=len(QUANTILES), max_size=len(QUANTILES)).map(
    lambda row: tuple(sorted(row))
)


def profile(rows: dict[int, tuple[int, ...]], name: str = "a") -> LatencyProfile:
    return LatencyProfile(VariantName(name), CPU, rows)


def test_a_batch_between_two_measured_sizes_takes_as_long_as_the_larger() -> None:
    slow = tuple(range(100, 109))
    of = profile({2: (1,) * 9, 8: slow})
    assert of.batch_sizes == (2, 8)
    assert of.quantile_ns(1, 0.5) == 1
    assert of.quantile_ns(3, 0.0) == of.quantile_ns(8, 0.0) == 100


def test_quantiles_between_the_kept_ones_are_interpolated() -> None:
    of = profile({1: (0, 10, 20, 30, 40, 50, 60, 70, 80)})
    assert of.quantile_ns(1, 0.5) == 30
    assert of.quantile_ns(1, 0.625) == 35
    assert of.quantile_ns(1, 0.97) == 65


def test_many_requests_take_as_long_as_the_fewest_batches_they_make() -> None:
    of = profile({1: (10,) * 9, 4: (25,) * 9})
    assert [of.in_batches_ns(count, 0.99) for count in (1, 2, 4, 5, 12)] == [10, 25, 25, 35, 75]


@pytest.mark.parametrize(("size", "q"), [(0, 0.5), (-1, 0.5), (9, 0.5), (1, 1.01), (1, -0.1)])
def test_what_was_not_measured_is_an_error(size: int, q: float) -> None:
    with pytest.raises(ValueError, match=r"profiled|must be in"):
        profile({1: (1,) * 9, 8: (2,) * 9}).quantile_ns(size, q)


@given(times, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise(row: tuple[int, ...], one: float, other: float) -> None:
    of = profile({1: row})
    low, high = sorted((one, other))
    assert row[0] <= of.quantile_ns(1, low) <= of.quantile_ns(1, high) <= row[-1]


@given(st.lists(st.tuples(times, times, times), min_size=1, max_size=4))
def test_monotone_lifts_each_time_just_to_what_is_below_it(
    rows: list[tuple[tuple[int, ...], ...]],
) -> None:
    sizes = (1, 2, 4)
    profiles = [profile(dict(zip(sizes, of, strict=True)), f"v{at}") for at, of in enumerate(rows)]
    pixels = {p.variant: at for at, p in enumerate(profiles)}
    lifted = monotone(list(reversed(profiles)), pixels)
    assert [p.variant for p in lifted] == [p.variant for p in profiles]
    for at, result in enumerate(lifted):
        for column, size in enumerate(sizes):
            below = [rows[v][c] for v in range(at + 1) for c in range(column + 1)]
            brute = tuple(max(row[q] for row in below) for q in range(len(QUANTILES)))
            assert result.quantiles_ns[size] == brute


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_quantiles_of_samples_are_theirs(samples: list[int]) -> None:
    found = quantiles_of(samples)
    assert found[0] == min(samples)
    assert found[-1] == max(samples)
    assert list(found) == sorted(found)
    if len(samples) % 2:
        assert found[QUANTILES.index(0.5)] == sorted(samples)[len(samples) // 2]


def test_no_samples_have_no_quantiles() -> None:
    with pytest.raises(ValueError, match="no samples"):
        quantiles_of([])
