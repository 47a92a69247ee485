"""The curve of a cascade: share, threshold and loss."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.cascades import (
    Cascade,
    CascadeCurve,
    CascadeName,
    CascadePoint,
    Decider,
    saving,
)
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import VariantName


@st.composite
def curves(draw: st.DrawFn) -> CascadeCurve:
    """Curves with 2 to 8 points; neighbours may have equal thresholds and losses."""
    inner = draw(st.lists(st.floats(0.01, 0.99), max_size=6, unique=True))
    shares = [0.0, *sorted(inner), 1.0]
    falls = st.lists(st.floats(0, 1), min_size=len(shares) - 1, max_size=len(shares) - 1)
    thresholds = [*sorted(draw(falls), reverse=True), 0.0]
    losses = [*sorted(draw(falls), reverse=True), 0.0]
    rows = zip(thresholds, shares, losses, strict=True)
    return CascadeCurve(tuple(CascadePoint(*row) for row in rows))


@given(curves(), st.floats(0, 1))
def test_a_share_lies_on_the_line_between_its_neighbours(curve: CascadeCurve, share: float) -> None:
    found = curve.at_share(share)
    assert found.share == pytest.approx(share)
    left, right = next(
        pair for pair in itertools.pairwise(curve.points) if pair[0].share <= share <= pair[1].share
    )
    assert right.threshold - 1e-12 <= found.threshold <= left.threshold + 1e-12
    assert right.loss - 1e-12 <= found.loss <= left.loss + 1e-12


@given(curves(), st.floats(0, 1), st.floats(0, 1))
def test_a_lower_threshold_sends_on_more_and_loses_less(
    curve: CascadeCurve, one: float, other: float
) -> None:
    low, high = curve.at_threshold(min(one, other)), curve.at_threshold(max(one, other))
    assert low.share >= high.share - 1e-9
    assert low.loss <= high.loss + 1e-9


@given(curves(), st.floats(0, 1))
def test_threshold_and_share_are_inverse(curve: CascadeCurve, threshold: float) -> None:
    found = curve.at_threshold(threshold)
    if curve.points[-1].threshold <= threshold <= curve.points[0].threshold:
        assert curve.at_share(found.share).threshold == pytest.approx(threshold, abs=1e-6)


@given(curves(), st.floats(0, 1), st.floats(0, 1))
def test_accuracy_lies_between_those_of_the_models(
    curve: CascadeCurve, share: float, small: float
) -> None:
    large = small + (1 - small) / 2
    found = curve.accuracy_at(share, small, large)
    assert small - 1e-9 <= found <= large + 1e-9
    assert curve.accuracy_at(1.0, small, large) == pytest.approx(large)
    if curve.loss_max > 1e-9:
        assert curve.accuracy_at(0.0, small, large) == pytest.approx(small)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([(0.5, 0, 0.5)], "from share 0 to share 1"),
        ([(0.5, 0.1, 0.5), (0, 1, 0)], "from share 0 to share 1"),
        ([(0.5, 0, 0.5), (0.6, 0.5, 0.2), (0, 1, 0)], "thresholds and losses fall"),
        ([(0.5, 0, 0.1), (0.4, 0.5, 0.2), (0, 1, 0)], "thresholds and losses fall"),
        ([(0.5, 0, 0.5), (0, 1, 0.1)], "loss 0 at share 1"),
    ],
)
def test_what_is_no_curve_is_refused(points: list[tuple[float, float, float]], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        CascadeCurve(tuple(CascadePoint(*point) for point in points))


@given(curves(), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_threshold_in_force(
    curve: CascadeCurve, threshold: float, share: float, planned_share: float
) -> None:
    def cascade(threshold: float | None, share: float | None) -> Cascade:
        small, large = VariantName("small"), VariantName("large")
        name, decider = CascadeName("test"), Decider((), 0.0)
        return Cascade(name, small, large, (8, 8), decider, 0.3, curve, threshold, share)

    assert cascade(threshold, None).threshold_with(planned_share) == threshold
    by_share, by_plan = cascade(None, share), cascade(None, None)
    assert (by_share.planned, by_plan.planned) == (False, True)
    assert by_share.threshold_with(planned_share) == curve.at_share(share).threshold
    assert by_plan.threshold_with(planned_share) == curve.at_share(planned_share).threshold
    # What is measured of a camera's own pictures comes before what was fitted.
    steep = CascadeCurve((CascadePoint(0.6, 0, 1), CascadePoint(0, 1, 0)))
    assert by_plan.threshold_with(0.5, steep) == pytest.approx(0.3)


@given(st.floats(0, 1), st.floats(1, 1e9), st.floats(1, 1e9))
def test_an_exit_saves_the_second_part_of_those_that_end_there(
    share: float, first_ns: float, second_ns: float
) -> None:
    saved = saving(share, first_ns, second_ns, continues=True)
    assert saved + 1e-9 >= 0
    assert saved == pytest.approx((1 - share) * second_ns / (first_ns + second_ns), abs=1e-9)
    # Two models of their own compute everything twice.
    assert saving(share, first_ns, second_ns) <= saved + 1e-9
