"""The bound on what cascades, exits and sizes can be worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cascade import (
    EXITS,
    LARGE,
    SIZES,
    SMALL,
    Models,
    bound,
    cascade_points,
    single_points,
)


@given(st.floats(0.5, 60), st.floats(0.5, 60), st.floats(0, 1))
def test_no_mix_of_two_choices_is_above_the_bound(left: float, right: float, part: float) -> None:
    points = single_points()
    ms = part * left + (1 - part) * right
    mixed = part * bound(points, left) + (1 - part) * bound(points, right)
    assert mixed <= bound(points, ms) + 1e-9
    assert all(bound(points, at) >= accuracy for at, accuracy in points)


def test_a_cascade_ends_where_both_models_run() -> None:
    for models in (*map(Models.sizes, SMALL), *map(Models.parts, EXITS)):
        (first_ms, first), *_, (last_ms, last) = cascade_points(models)
        assert (first_ms, first) == pytest.approx((models.small[3], models.small[2]))
        assert last_ms == pytest.approx(models.small[3] + models.large[3])
        assert last == models.large[2]


def test_at_the_overload_of_the_table_not_even_a_large_model_for_nothing_gains_15_percent() -> None:
    large, large_ms = SIZES[LARGE]
    assert large / bound(single_points(), large_ms / 1.4) < 1.15
