"""Queue of events for one destination: ordered, bounded, with counted losses."""

import asyncio

from edgebox.notifications.backlog import Backlog
from edgebox.notifications.destination_health import Health
from edgebox.notifications.notification_document import Event


class EventQueue:
    """A backlog and the event that is being sent."""

    def __init__(self, health: Health, entries_max: int, overflow: str) -> None:
        """Start empty; an overflow drops the "oldest" or "newest" event."""
        self._health = health
        self._backlog = Backlog[Event](entries_max, drop_oldest=overflow == "oldest")
        self._overflow = overflow
        self._in_hand: Event | None = None
        self.wake = asyncio.Event()
        """Set when there is new work."""
        self.idle = asyncio.Event()
        """Set while the queue is empty."""
        self.idle.set()

    def put(self, event: Event) -> None:
        """Queue an event."""
        before = self._backlog.overflowed
        self._backlog.add(event)
        if self._backlog.overflowed != before:
            self._health.lost(
                "overflow", f"{len(self._backlog)} events wait, the {self._overflow} is dropped"
            )
        self._count()
        self.wake.set()

    def head(self) -> Event | None:
        """Return the next event, the same one until `done`; None: there is none."""
        if self._in_hand is None:
            self._in_hand = self._backlog.take()
        return self._in_hand

    def done(self, *, sent: bool) -> None:
        """Go on to the next event."""
        self._in_hand = None
        self._health.destination.sent += sent
        self._count()

    def _count(self) -> None:
        queued = len(self._backlog) + (self._in_hand is not None)
        self._health.destination.queued = queued
        if queued:
            self.idle.clear()
        else:
            self.idle.set()
