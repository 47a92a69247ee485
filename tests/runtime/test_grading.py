"""Grades: failing is a promise that is not kept, not a camera that the plan reduced."""

import pytest

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import DropReason
from edgebox.runtime.frame_metrics import CameraMetrics
from edgebox.runtime.grading import Grade, grade


def of(
    share: float | None,
    advised_hz: float,
    *,
    connected: bool = True,
    lost: bool = False,
    ago_s: float | None = 0.1,
) -> Grade:
    advice = Advice(VariantName("street-256"), 256, 144, advised_hz, 85, 0, "because")
    return grade(
        connected=connected,
        lost=lost,
        last_frame_s=ago_s,
        on_time_share=share,
        advice=advice,
        rate_hz=5.0,
    )


@pytest.mark.parametrize(
    ("share", "advised_hz", "found"),
    [
        (1.0, 5.0, "good"),
        (1.0, 2.0, "reduced"),
        (0.97, 2.0, "strained"),
        (0.90, 5.0, "failing"),
        (0.90, 2.0, "failing"),
        (None, 5.0, "waiting"),
    ],
)
def test_the_promise_decides(share: float | None, advised_hz: float, found: Grade) -> None:
    assert of(share, advised_hz) == found
    assert of(share, advised_hz, connected=False) == "gone"
    assert of(share, advised_hz, lost=True) == of(None, 5.0, connected=False, lost=True) == "lost"


def test_a_camera_that_falls_silent_is_not_well() -> None:
    assert of(1.0, 5.0, ago_s=12) == "waiting"
    assert of(1.0, 0.1, ago_s=12) == "reduced"
    assert of(1.0, 0.1, ago_s=31) == "waiting"


def test_what_the_plan_ordered_is_no_miss_and_the_counts_add_up() -> None:
    metrics = CameraMetrics()
    metrics.captured(5, 5, 0, ordered=3)
    counts = metrics.counts
    assert counts.dropped == {DropReason.PLAN.value: 3, DropReason.SENDER.value: 2}
    assert counts.captured == counts.on_time + counts.late + counts.dropped.total() + counts.pending
    assert counts.due == 2
    assert counts.on_time_share == 0.0
    metrics.captured(3, 3, 0, ordered=3)
    assert counts.due == 2
