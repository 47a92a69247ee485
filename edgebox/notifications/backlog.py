"""Bounded queue of events for a slow or unreachable destination.

Pure: no clock, no I/O. An event that is being sent has left the queue, so it is never dropped.
"""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Backlog(Generic[T]):
    """A bounded first-in-first-out queue."""

    def __init__(self, entries_max: int, *, drop_oldest: bool) -> None:
        """Start empty.

        Args:
            entries_max: largest number of entries, at least 1.
            drop_oldest: whether an overflow drops the oldest entry rather than the new one.
        """
        self._entries: deque[T] = deque()
        self._entries_max = entries_max
        self._drop_oldest = drop_oldest
        self.overflowed = 0
        """Number of dropped entries."""

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: T) -> None:
        """Add an entry; drop one if the queue is full."""
        if len(self._entries) >= self._entries_max:
            self.overflowed += 1
            if not self._drop_oldest:
                return
            self._entries.popleft()
        self._entries.append(entry)

    def take(self) -> T | None:
        """Remove and return the oldest entry; None: the queue is empty."""
        return self._entries.popleft() if self._entries else None
