"""Derives the presence and count of a class from the detections of single frames.

Detectors miss objects in some frames. So a class appears at once, and disappears only after a hold
time without detections; its count is the largest of one frame in the hold time. Pure: instants are
arguments.
"""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode: a class is present at a camera."""

    since_ns: int
    seen_ns: int
    """Instant of the last detection."""
    count_max: int
    """Largest count in one frame."""


class Presence:
    """One class at one camera. Amortised O(1) per detection.

    An episode lasts at least `interval_ns`, unless it is cut off; a class that returns within it
    was never gone. That bounds the events of a class, and beginnings and ends always alternate.
    """

    __slots__ = (
        "_count_max",
        "_hold_ns",
        "_interval_ns",
        "_most",
        "_seen_ns",
        "_since_ns",
        "there",
    )

    def __init__(self, hold_ns: int, interval_ns: int) -> None:
        """Start absent.

        Args:
            hold_ns: time without detections after which it is gone.
            interval_ns: shortest time between two appearances.
        """
        self._hold_ns = hold_ns
        self._interval_ns = interval_ns
        self.there = False
        """Whether an episode is in progress."""
        # Plain numbers of the episode, because they change with every frame.
        self._since_ns = self._seen_ns = self._count_max = 0
        self._most: deque[tuple[int, int]] = deque()
        """(instant, count) with falling counts: the first is the largest of the hold time."""

    def seen(self, count: int, now_ns: int) -> bool:
        """Process a frame that shows the class; return whether it has just appeared.

        Call `ended` first, with the same instant. Instants are monotonic.
        """
        most = self._most
        while most and most[-1][1] <= count:
            most.pop()
        most.append((now_ns, count))
        while most[0][0] <= now_ns - self._hold_ns:
            most.popleft()
        self._seen_ns = now_ns
        if self.there:
            self._count_max = max(self._count_max, count)
            return False
        self.there = True
        self._since_ns = now_ns
        self._count_max = count
        return True

    def ended(self, now_ns: int) -> Episode | None:
        """Return the episode that is over by now, once; None: there is none."""
        if not self.there or now_ns < self._seen_ns + self._hold_ns:
            return None
        if now_ns < self._since_ns + self._interval_ns:
            return None
        return self.end()

    def end(self) -> Episode | None:
        """End the episode in progress, since nobody looks any more; None: there is none."""
        if not self.there:
            return None
        self.there = False
        self._most.clear()
        return Episode(self._since_ns, self._seen_ns, self._count_max)

    def count(self, now_ns: int) -> int:
        """Return the count: 0 exactly when no episode is in progress."""
        if not self.there:
            return 0
        # The last detection stays: its count applies to an episode that outlasts the hold time.
        held = (count for at_ns, count in self._most if at_ns > now_ns - self._hold_ns)
        return next(held, self._most[-1][1])
