"""How many pictures cascades send on by plan, judged by enumeration."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.cascades import CascadeCurve, CascadePoint
from edgebox.domain.plans import CameraSnapshot, PlannedCascade
from edgebox.domain.requests import CameraId
from edgebox.planning.budgets import Budget
from edgebox.planning.by_application import by_application
from edgebox.planning.cascade_shares import filled_shares
from edgebox.planning.later_stages import LaterChoice, later_choice
from edgebox.planning.options import Option
from edgebox.planning.planner import plan
from tests.planning.scene import link, seen, snapshot
from tests.planning.test_by_application import learned
from tests.scheduling.cascades import CURVE, cascade_pipeline
from tests.scheduling.scene import FAMILY, camera

SMALL, LARGE = FAMILY[0], FAMILY[-1]
RATE_HZ = 10.0


@st.composite
def curves(draw: st.DrawFn) -> CascadeCurve:
    """Curves whose gains fall: the first pictures that are sent on gain most."""
    gains = sorted(draw(st.lists(st.floats(0.01, 1), min_size=1, max_size=5)), reverse=True)
    shares = [at / len(gains) for at in range(len(gains) + 1)]
    rest = list(itertools.accumulate(reversed(gains), initial=0.0))[::-1]
    points = zip(reversed(shares), shares, (each / rest[0] for each in rest), strict=True)
    return CascadeCurve(tuple(CascadePoint(*point) for point in points))


def with_cascade(
    curve: CascadeCurve, reserved: float, executor_s: float, number: int = 0
) -> CameraSnapshot:
    named = seen(camera(f"gate-{number}", 300, RATE_HZ), link(1000.0))
    cascade = PlannedCascade(SMALL.name, LARGE, curve, executor_s, reserved)
    return replace(named, cascade=cascade)


@given(curves(), st.floats(0, 1), st.floats(1e-3, 0.1), st.floats(0, 100))
def test_a_share_is_the_best_at_its_price(
    curve: CascadeCurve, present: float, executor_s: float, price: float
) -> None:
    of = with_cascade(curve, present, executor_s)

    def net(share: float) -> float:
        accuracy = curve.accuracy_at(share, SMALL.accuracy, LARGE.accuracy)
        return accuracy * (1.01 if share == present else 1.0) - price * share * executor_s

    choice = later_choice(of, 1000, SMALL, price)
    shares = [*(point.share for point in curve.points), present]
    assert choice.cascade_share in shares
    assert net(choice.cascade_share) >= max(map(net, shares)) - 1e-9
    assert dict(choice.executor_s) == {LARGE.family: choice.cascade_share * executor_s}
    reached = curve.accuracy_at(choice.cascade_share, SMALL.accuracy, LARGE.accuracy)
    assert SMALL.accuracy * choice.accuracy == pytest.approx(reached)
    assert later_choice(of, 1000, SMALL, None).cascade_share == present
    # Pictures that another variant answers are never sent on, so they cost nothing more.
    other = later_choice(of, 1000, FAMILY[1], price)
    assert (other.cascade_share, other.executor_s, other.accuracy) == (0.0, (), 1.0)


@pytest.mark.parametrize(
    ("executor_s", "least", "most"), [(1e-3, 1, 1), (0.12, 0.7, 0.8), (10, 0, 0.01)]
)
def test_a_plan_gives_a_cascade_the_time_that_is_left(
    executor_s: float, least: float, most: float
) -> None:
    of = with_cascade(CURVE, 0.0, executor_s)
    of = replace(of, camera=replace(of.camera, pipeline=cascade_pipeline(None)))
    found = plan(snapshot([of]), 10_000).assignments[of.camera.id]
    assert (found.variant, found.rate_hz) == (SMALL.name, RATE_HZ)
    assert found.cascade_share is not None
    assert found.cascade_reserved is not None
    assert least <= found.cascade_share <= most
    assert found.cascade_reserved <= found.cascade_share


def test_a_cascade_of_an_application_that_takes_longer_is_still_that_cascade() -> None:
    of = with_cascade(CURVE, 0.0, 1e-3)
    of = replace(of, camera=replace(of.camera, pipeline=cascade_pipeline(None)))
    box = learned(snapshot([of]), **{of.camera.app: 2.0})
    assert by_application(box).real
    found = plan(box, 10_000).assignments[of.camera.id]
    assert (found.variant, found.cascade_share) == (SMALL.name, 1.0)


@given(st.lists(st.tuples(curves(), st.floats(0.01, 0.1)), min_size=1, max_size=3), st.floats(0, 2))
def test_time_that_is_left_goes_where_it_gains_most(
    of: list[tuple[CascadeCurve, float]], spare_s: float
) -> None:
    cameras = [with_cascade(curve, 0.0, time_s, at) for at, (curve, time_s) in enumerate(of)]
    option = Option(SMALL, Budget(1, 1, RATE_HZ), 1, RATE_HZ, None, LaterChoice(cascade_share=0.0))
    given_time = [(each, option) for each in cameras]
    shares = filled_shares(given_time, [LARGE.family], spare_s)
    assert not filled_shares(given_time, [], spare_s)
    found = [shares[CameraId(each.camera.id)] for each in cameras]

    def load(some: Sequence[float]) -> float:
        return sum(RATE_HZ * time_s * s for (_, time_s), s in zip(of, some, strict=True))

    def accuracy(some: Sequence[float]) -> float:
        return sum(
            curve.accuracy_at(share, SMALL.accuracy, LARGE.accuracy)
            for (curve, _), share in zip(of, some, strict=True)
        )

    assert load(found) <= spare_s + 1e-9
    # The best lies at points of the curves, but for one camera, which has the rest of the time.
    for some in itertools.product(*([point.share for point in curve.points] for curve, _ in of)):
        for at, (_, time_s) in enumerate(of):
            rest = (spare_s - load([*some[:at], 0.0, *some[at + 1 :]])) / (RATE_HZ * time_s)
            if rest >= 0:
                best = [*some[:at], min(1.0, rest), *some[at + 1 :]]
                assert accuracy(found) >= accuracy(best) - 1e-9
