"""Keeps what is known of a destination, and tells people when that changes."""

import time
from collections.abc import Callable

from edgebox.runtime.destinations import Destination
from edgebox.storage.rows import Level

Note = Callable[[Level, str], None]


class Health:
    """One destination's state."""

    def __init__(self, destination: Destination, note: Note) -> None:
        """Tell people through `note`."""
        self.destination = destination
        self._note = note
        self._lost = False

    def worked(self) -> None:
        """It took something, or let the box in."""
        self.destination.connected = True
        if self._lost:
            self._lost = False
            self._note("info", f"{self._name} takes events again")

    def failed(self, why: str) -> None:
        """It did not; what waits goes on waiting."""
        found = self.destination
        found.connected = False
        # A receiver's own words may be long.
        found.error, found.error_at_ms = why[:200], time.time_ns() // 1_000_000
        if not self._lost:
            self._lost = True
            self._note("warning", f"{self._name} cannot be reached, events wait: {found.error}")

    def lost(self, reason: str, why: str) -> None:
        """Count an event that is lost for good; the first of a reason is told to people."""
        found = self.destination
        found.dropped[reason] += 1
        found.error, found.error_at_ms = why[:200], time.time_ns() // 1_000_000
        if found.dropped[reason] == 1:
            self._note("warning", f"an event for {self._name} is lost: {found.error}")

    @property
    def _name(self) -> str:
        what = "the MQTT broker" if self.destination.kind == "mqtt" else "the webhook"
        return f"{what} {self.destination.name}"
