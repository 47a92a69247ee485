"""Decides whether a class is there, and how many of it, from what single frames show.

A detector blinks: a person who stands still is missed in some frames, and two of them are one in
others. So a class appears at once, and is gone only after it was not seen for a hold time; its
count is the most that one frame of the hold time showed. Pure: time comes in.
"""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Episode:
    """One stay of a class in front of a camera."""

    since_ns: int
    seen_ns: int
    """When it was seen last."""
    count_max: int
    """The most that one frame showed."""


class Presence:
    """One class at one camera. Amortised O(1) a sighting.

    A stay lasts at least `interval_ns`: what comes again within it was never gone. That bounds the
    events of a class without any of them being swallowed, so that begins and ends alternate.
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
            hold_ns: unseen for so long, it is gone.
            interval_ns: least time between two appearances.
        """
        self._hold_ns = hold_ns
        self._interval_ns = interval_ns
        self.there = False
        """Whether a stay goes on."""
        # Of the stay, plain numbers: they change with every frame.
        self._since_ns = self._seen_ns = self._count_max = 0
        self._most: deque[tuple[int, int]] = deque()
        """(instant, count): counts fall, so the first is the most of the hold time."""

    def seen(self, count: int, now_ns: int) -> bool:
        """Take in a frame that shows the class; say whether it has just appeared.

        Ask `ended` first, with the same instant. Instants never go back.
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
        """Return the stay that is over by now, once; None: there is none."""
        if not self.there or now_ns < self._seen_ns + self._hold_ns:
            return None
        if now_ns < self._since_ns + self._interval_ns:
            return None
        self.there = False
        self._most.clear()
        return Episode(self._since_ns, self._seen_ns, self._count_max)

    def count(self, now_ns: int) -> int:
        """Return how many are there: 0 exactly when there is no stay."""
        if not self.there:
            return 0
        # The last sighting stays: a stay that outlasts the hold time has that many.
        held = (count for at_ns, count in self._most if at_ns > now_ns - self._hold_ns)
        return next(held, self._most[-1][1])
