"""Cameras whose variant can run no more before the next plan: they are advised of one that can."""

from dataclasses import replace

import pytest

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import Camera, DropReason
from edgebox.scheduling.actions import Unload
from edgebox.scheduling.adaptation import FIRST_REASON, NEW_FAMILY_REASON
from edgebox.scheduling.events import (
    CameraChanged,
    CameraConnected,
    ExecutorStarted,
    VariantsAvailable,
)
from edgebox.simulation.faults.small_box import FIND, pipeline
from tests.scheduling.scene import CPU, FAMILY, MEDIAN_MS, MS, Bench, camera, name, profile, request
from tests.scheduling.test_adaptation import advice, planned
from tests.scheduling.test_residency import GATE, limited, plan_of, weights


def up_to(px: int | None, rate_hz: float = 10) -> Camera:
    """Return the camera with a limit on its variants."""
    return replace(camera(rate_hz=rate_hz), pipeline=pipeline((FIND, px)))


def runs_on(
    bench: Bench, at_ms: float, advised: VariantName | None = None
) -> VariantName | DropReason:
    """Return the variant that is chosen for a frame with a large picture."""
    sent = request(9, at_ms + 290, arrival_ms=at_ms, size=(608, 342), advised=advised)
    return bench.scheduler.admission.choose(sent, round(at_ms * MS))


def test_a_camera_with_a_lower_limit_is_advised_of_it_at_once() -> None:
    bench = Bench()
    bench(CameraConnected(up_to(608)), 0)
    bench(planned(608), 1)
    (lower,) = advice(bench(CameraChanged(up_to(256, rate_hz=5)), 2))
    assert (lower.variant, lower.rate_hz) == (name(256), 5)
    assert lower.reason == (
        "256 × 256 px, the largest size that its pipeline allows: not planned yet"
    )
    # Also a frame that left before it knew.
    assert runs_on(bench, 3, advised=name(608)) == name(256)


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (
            (128,),
            "128 × 128 px until street-256 is in memory; then 256 × 256 px, the largest size that "
            "its pipeline allows: not planned yet",
        ),
        ((128, 256), "256 × 256 px, the largest size that its pipeline allows: not planned yet"),
        (
            (128, 608),
            "128 × 128 px until street-256 is in memory; then 256 × 256 px, the largest "
            "size that its pipeline allows: not planned yet",
        ),
    ],
)
def test_no_camera_waits_for_a_variant_above_its_limit(there: tuple[int, ...], reason: str) -> None:
    """The plan was computed before the limit was set."""
    bench = Bench([profile(px) for px in there])
    bench(CameraConnected(up_to(256)), 0)
    bench(planned(608), 1)
    assert bench.scheduler.assignments[GATE].reason == reason


def test_a_limit_above_what_a_camera_has_changes_nothing_before_the_plan() -> None:
    bench = Bench()
    bench(CameraConnected(up_to(608)), 0)
    bench(planned(256), 1)
    assert advice(bench(CameraChanged(up_to(320)), 2)) == []
    assert runs_on(bench, 3) == name(256)


def test_a_camera_that_is_not_planned_yet_gets_its_first_advice_anew() -> None:
    bench = Bench()
    bench(CameraConnected(up_to(None)), 0)
    assert bench.scheduler.assignments[GATE].variant != name(128)
    (lower,) = advice(bench(CameraChanged(up_to(128)), 1))
    assert (lower.variant, lower.reason) == (name(128), FIRST_REASON)


def test_what_makes_room_for_the_wanted_variant_is_not_replaced_by_a_larger_one() -> None:
    """The 256 px that stand in are unloaded, beside 608 px, which would take five times as long."""
    bench = limited(3, 128, 256, 608)
    actions = bench(plan_of(416), 1)
    assert Unload(CPU, weights(256)) in actions
    moved = advice(actions)[-1]
    assert moved.variant == name(128)
    assert moved.reason == "128 × 128 px until street-416 is in memory; then it fits"
    assert runs_on(bench, 2) == name(128)


@pytest.mark.parametrize("left", [(128, 608), (128, 256, 608)])
def test_an_executor_that_comes_back_with_less_leaves_the_largest_smaller_variant(
    left: tuple[int, ...],
) -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(320), 1)
    (moved,) = advice(bench(ExecutorStarted(CPU, tuple(profile(px) for px in left)), 2))
    assert moved.variant == name(left[-2])
    assert runs_on(bench, 3) == name(left[-2])


def test_a_variant_that_is_offered_no_more_leaves_a_modest_one() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(608), 1)
    (moved,) = advice(bench(VariantsAvailable(FAMILY[:2]), 2))
    assert (moved.variant, moved.reason) == (name(256), NEW_FAMILY_REASON)


def test_where_nothing_is_left_the_camera_keeps_its_advice_until_something_is() -> None:
    bench = Bench()
    bench(CameraConnected(camera()), 0)
    bench(planned(320), 1)
    assert advice(bench(ExecutorStarted(CPU, ()), 2)) == []
    back = bench(ExecutorStarted(CPU, tuple(profile(px) for px in MEDIAN_MS)), 3)
    assert advice(back) == []
    assert runs_on(bench, 4) == name(320)
