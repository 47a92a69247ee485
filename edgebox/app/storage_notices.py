"""Tells people when the database was damaged, when it cannot be written, and when it can again."""

from collections.abc import Callable
from typing import Protocol

from edgebox.storage.rows import Level


class _Storage(Protocol):
    damage: str

    @property
    def last_error(self) -> str: ...

    @property
    def lost_rows(self) -> int: ...


class StorageNotices:
    """What of a database's failures was told: each reason once, and their end."""

    def __init__(self, storage: _Storage, publish: Callable[[Level, str], None]) -> None:
        """Watch a database; `publish` takes a level and a text."""
        self._storage = storage
        self._publish = publish
        self._told = ""
        self._damage_told = ""
        self._lost_before = 0

    def look(self) -> None:
        """Publish what has changed since the last look."""
        damage = self._storage.damage
        if damage and damage != self._damage_told:
            self._damage_told = damage
            self._publish("error", damage)
        why, before = self._storage.last_error, self._told
        self._told = why
        if why == before:
            return
        if why:
            self._publish("error", f"the database cannot be written ({why}); serving goes on")
            return
        lost = self._storage.lost_rows - self._lost_before
        self._lost_before = self._storage.lost_rows
        kept = f"{lost} rows that waited are lost" if lost else "nothing is lost"
        self._publish("info", f"the database is written again; {kept}")
