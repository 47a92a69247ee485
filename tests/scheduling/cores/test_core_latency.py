"""The fit of batch times over batch sizes and cores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.scheduling.cores.core_latency import CoreLatency, fit_core_latency

MS = 1_000_000
PAPER = CoreLatency(35.8 * MS, 5.74 * MS, 1.29 * MS, 13.3 * MS)
POINTS = [(b, c) for b in (1, 2, 4, 8) for c in (1, 2, 4, 8)]
TABLE_1_MS = {(1, 1): 55, (2, 1): 97, (4, 2): 94, (8, 4): 92, (4, 8): 37, (8, 8): 62}
"""Sponge, Table 1: P99 by (batch size, cores)."""

coefficients = st.floats(0, 100 * MS)


def test_the_paper_s_table_is_fitted_within_six_percent() -> None:
    found = fit_core_latency({at: ms * MS for at, ms in TABLE_1_MS.items()})
    for (size, cores), ms in TABLE_1_MS.items():
        assert found.of_ns(size, cores) == pytest.approx(ms * MS, rel=0.06)


@given(coefficients, coefficients, coefficients, st.floats(MS, 100 * MS))
def test_times_without_errors_are_fitted_exactly(
    gamma: float, epsilon: float, delta: float, eta: float
) -> None:
    true = CoreLatency(gamma, epsilon, delta, eta)
    found = fit_core_latency({at: true.of_ns(*at) for at in POINTS})
    for at in POINTS:
        assert found.of_ns(*at) == pytest.approx(true.of_ns(*at), rel=1e-5)


@given(st.sampled_from(POINTS), st.floats(3, 20))
def test_one_measurement_that_was_disturbed_changes_little(
    at: tuple[int, int], factor: float
) -> None:
    measured = {each: PAPER.of_ns(*each) for each in POINTS}
    measured[at] *= factor
    found = fit_core_latency(measured)
    for each in set(POINTS) - {at}:
        assert found.of_ns(*each) == pytest.approx(PAPER.of_ns(*each), rel=0.15)


@given(
    st.dictionaries(
        st.tuples(st.integers(1, 16), st.integers(1, 16)), st.floats(MS, 1000 * MS), min_size=1
    )
)
def test_more_cores_or_fewer_pictures_never_take_longer(
    measured: dict[tuple[int, int], float],
) -> None:
    times = fit_core_latency(measured).table_ns(8, 8)
    assert (times >= 0).all()
    assert (times[1:] >= times[:-1] - 1e-3).all()
    assert (times[:, 1:] <= times[:, :-1] + 1e-3).all()


@pytest.mark.parametrize("measured", [{}, {(1, 1): 0.0}, {(1, 1): 5.0, (2, 1): -1.0}])
def test_times_that_are_none_are_refused(measured: dict[tuple[int, int], float]) -> None:
    with pytest.raises(InvalidInputError, match="above 0"):
        fit_core_latency(measured)
