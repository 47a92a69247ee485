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

    __slots__ = ("_episode", "_hold_ns", "_interval_ns", "_most")

    def __init__(self, hold_ns: int, interval_ns: int) -> None:
        """Start absent.

        Args:
            hold_ns: unseen for so long, it is gone.
            interval_ns: least time between two appearances.
        """
        self._hold_ns = hold_ns
        self._interval_ns = interval_ns
        self._episode: Episode | None = None
        self._most: deque[tuple[int, int]] = deque()
        """(instant, count): counts fall, so the first is the most of the hold time."""

    @property
    def episode(self) -> Episode | None:
        """The stay that goes on; None: it is not there."""
        return self._episode

    def seen(self, count: int, now_ns: int) -> bool:
        """Take in a frame that shows the class; say whether it has just appeared.

        Ask `ended` first, with the same instant. Instants never go back.
        """
        while self._most and self._most[-1][1] <= count:
            self._most.pop()
        self._most.append((now_ns, count))
        before = self._episode
        if before is None:
            self._episode = Episode(now_ns, now_ns, count)
            return True
        self._episode = Episode(before.since_ns, now_ns, max(before.count_max, count))
        return False

    def ended(self, now_ns: int) -> Episode | None:
        """Return the stay that is over by now, once; None: there is none."""
        episode = self._episode
        if episode is None:
            return None
        over_ns = max(episode.seen_ns + self._hold_ns, episode.since_ns + self._interval_ns)
        if now_ns < over_ns:
            return None
        self._episode = None
        self._most.clear()
        return episode

    def count(self, now_ns: int) -> int:
        """Return how many are there: 0 exactly when there is no stay."""
        if self._episode is None:
            return 0
        # The last sighting stays: a stay that outlasts the hold time has that many.
        while len(self._most) > 1 and self._most[0][0] <= now_ns - self._hold_ns:
            self._most.popleft()
        return self._most[0][1]
