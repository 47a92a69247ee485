"""Grades how a camera is doing, by what was promised to it: one definition for API and page.

A camera that the plan reduced to fewer frames than it would like is graded by those. Pure.
"""

from typing import Literal

from edgebox.domain.plans import Advice

Grade = Literal["good", "reduced", "strained", "failing", "waiting", "gone"]
"""Answers come as promised; the same, at a lower rate than the camera would like, as planned; some
answers come too late; many do; no frame came lately; it is disconnected."""

GOOD_SHARE = 0.99
"""Share of the promised answers that are on time, at least."""
STRAINED_SHARE = 0.95


def grade(
    *, connected: bool, on_time_share: float | None, advice: Advice | None, rate_hz: float
) -> Grade:
    """Return the grade of a camera.

    Args:
        connected: whether it is.
        on_time_share: over the last minute (`Counts.on_time_share`); None: nothing was due.
        advice: in force; None: none yet.
        rate_hz: what it would like.
    """
    if not connected:
        return "gone"
    if on_time_share is None:
        return "waiting"
    if on_time_share < STRAINED_SHARE:
        return "failing"
    if on_time_share < GOOD_SHARE:
        return "strained"
    return "reduced" if advice is not None and advice.rate_hz < rate_hz else "good"
