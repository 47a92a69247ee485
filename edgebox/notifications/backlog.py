"""Decides which events wait for a destination that is slow or away, and which are lost.

Pure: no clock, no I/O. What was taken out to be sent no longer waits, so it is never the one lost.
"""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Backlog(Generic[T]):
    """First in, first out, bounded."""

    def __init__(self, entries_max: int, *, drop_oldest: bool) -> None:
        """Start empty.

        Args:
            entries_max: that wait at once, at least 1.
            drop_oldest: what is lost when one more comes: the one that waits longest, else the
                one that comes.
        """
        self._entries: deque[T] = deque()
        self._entries_max = entries_max
        self._drop_oldest = drop_oldest
        self.overflowed = 0
        """Entries that were lost."""

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: T) -> None:
        """Let an entry wait, and one be lost if too many do."""
        if len(self._entries) >= self._entries_max:
            self.overflowed += 1
            if not self._drop_oldest:
                return
            self._entries.popleft()
        self._entries.append(entry)

    def take(self) -> T | None:
        """Take out what has waited longest; None: nothing waits."""
        return self._entries.popleft() if self._entries else None
