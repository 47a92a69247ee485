"""Grades how a camera is doing, by what was promised to it: one definition for API and page.

A camera that the plan reduced to fewer frames than it would like is graded by those. Pure.
"""

from typing import Literal

from edgebox.domain.plans import Advice

Grade = Literal["good", "reduced", "strained", "failing", "lost", "waiting", "gone"]
"""Answers come as promised; the same, at a lower rate than the camera would like, as planned; some
answers come too late; many do; its source gives no pictures, and why is known; no frame came
lately; it is disconnected."""

GOOD_SHARE = 0.99
"""Share of the promised answers that are on time, at least."""
STRAINED_SHARE = 0.95
SILENT_S = 3.0
"""After this long without a frame, and three periods of its rate, a camera is silent."""


def grade(
    *,
    connected: bool,
    lost: bool,
    last_frame_s: float | None,
    on_time_share: float | None,
    advice: Advice | None,
    rate_hz: float,
) -> Grade:
    """Return the grade of a camera.

    Args:
        connected: whether it is, or is about to be.
        lost: whether its source is known to give no pictures.
        last_frame_s: how long ago its last frame came; None: none has.
        on_time_share: over the last minute (`Counts.on_time_share`); None: nothing was due.
        advice: in force; None: none yet.
        rate_hz: what it would like.
    """
    if lost:
        return "lost"
    if not connected:
        return "gone"
    rate_hz_now = rate_hz if advice is None else advice.rate_hz
    silent = last_frame_s is not None and last_frame_s > max(SILENT_S, 3 / rate_hz_now)
    if on_time_share is None or silent:
        return "waiting"
    if on_time_share < STRAINED_SHARE:
        return "failing"
    if on_time_share < GOOD_SHARE:
        return "strained"
    return "reduced" if rate_hz_now < rate_hz else "good"
