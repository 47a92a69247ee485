"""Decides when a camera's deadlines count as breached, and when as met again.

Uses the share of frames on time in a sliding window, among those that the plan asked for. Between
the breach threshold and the recovery threshold the state stays (hysteresis). Pure: instants are
arguments.
"""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttainmentRule:
    """The thresholds of breach and recovery."""

    window_ns: int
    breached_below: float
    recovered_from: float
    """At least `breached_below`."""
    frames_min: int
    """Fewest such frames in the window that give a share."""


@dataclass(frozen=True, slots=True)
class _Sample:
    at_ns: int
    on_time: int
    due: int


class Attainment:
    """The window of one camera. Amortised O(1) per update."""

    def __init__(self, rule: AttainmentRule) -> None:
        """Start without frames, not breached."""
        self._rule = rule
        self._samples: deque[_Sample] = deque()
        self.breached = False
        self.share: float | None = None
        """Share in the window at the last update; None: too few frames."""

    def look(self, on_time: int, due: int, now_ns: int) -> bool:
        """Update with the counts so far; return whether `breached` has changed.

        The window reaches back to the last update that is at least its length ago. Counts that
        decrease belong to a camera that was forgotten and returned: the window starts again.

        Args:
            on_time: frames answered on time since the camera is known.
            due: frames that have due and that the plan had asked for (`Counts.due`).
            now_ns: monotonic.
        """
        samples = self._samples
        if samples and due < samples[-1].due:
            samples.clear()
        samples.append(_Sample(now_ns, on_time, due))
        while len(samples) > 1 and samples[1].at_ns <= now_ns - self._rule.window_ns:
            samples.popleft()
        frames = due - samples[0].due
        if frames < self._rule.frames_min:
            self.share = None
            return False
        self.share = (on_time - samples[0].on_time) / frames
        before = self.breached
        if before:
            self.breached = self.share < self._rule.recovered_from
        else:
            self.breached = self.share < self._rule.breached_below
        return self.breached != before
