"""Owns the flight recorder: the last minute of what the Scheduler was told and what it ordered.

Entries are kept by reference (events and actions are immutable), so recording is an append.
Replaying them into a fresh Scheduler must reproduce every action; `replay` says where it does not.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from edgebox.scheduling.events import Action, Event
from edgebox.scheduling.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One call of `Scheduler.handle`. `event` None: a wake-up."""

    now_ns: int
    event: Event | None
    actions: tuple[Action, ...]


class Journal:
    """A ring of entries, bounded in time and in number."""

    def __init__(self, window_ns: int = 60_000_000_000, entries_max: int = 500_000) -> None:
        """Keep what is younger than `window_ns`, and at most `entries_max` entries."""
        self._window_ns = window_ns
        self._entries: deque[JournalEntry] = deque(maxlen=entries_max)

    def record(self, now_ns: int, event: Event | None, actions: list[Action]) -> None:
        """Append one call; forget what is too old."""
        entries = self._entries
        entries.append(JournalEntry(now_ns, event, tuple(actions)))
        horizon_ns = now_ns - self._window_ns
        while entries[0].now_ns < horizon_ns:
            entries.popleft()

    def entries(self) -> list[JournalEntry]:
        """Return what is kept, oldest first."""
        return list(self._entries)


def replay(entries: Iterable[JournalEntry], scheduler: Scheduler) -> list[str]:
    """Feed a journal that begins at the start of a box into a fresh Scheduler.

    Returns:
        One line per entry whose actions came out differently; empty when all agree.
    """
    differences = []
    for number, entry in enumerate(entries):
        actions = tuple(scheduler.handle(entry.event, entry.now_ns))
        if actions != entry.actions:
            differences.append(
                f"entry {number} at {entry.now_ns}: {entry.event!r} gave {actions!r}, "
                f"the journal has {entry.actions!r}"
            )
    return differences
