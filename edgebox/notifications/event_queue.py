"""Owns the events that wait for one destination: in order, bounded, the losses counted."""

import asyncio

from edgebox.notifications.backlog import Backlog
from edgebox.notifications.destination_health import Health
from edgebox.notifications.notification_document import Event


class EventQueue:
    """A backlog, and the one event that is in hand until its destination has taken it."""

    def __init__(self, health: Health, entries_max: int, overflow: str) -> None:
        """Start empty; `overflow` says which event is lost: "oldest" or "newest"."""
        self._health = health
        self._backlog = Backlog[Event](entries_max, drop_oldest=overflow == "oldest")
        self._overflow = overflow
        self._in_hand: Event | None = None
        self.wake = asyncio.Event()
        """Set whenever there is something new to do."""
        self.idle = asyncio.Event()
        """Set while nothing waits."""
        self.idle.set()

    def put(self, event: Event) -> None:
        """Let an event wait."""
        before = self._backlog.overflowed
        self._backlog.add(event)
        if self._backlog.overflowed != before:
            self._health.lost(
                "overflow", f"{len(self._backlog)} events wait, the {self._overflow} is dropped"
            )
        self._count()
        self.wake.set()

    def head(self) -> Event | None:
        """Return the event that is next, the same one until `done`; None: there is none."""
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
