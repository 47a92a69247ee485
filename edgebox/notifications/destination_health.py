"""Keeps what is known of a destination, and tells people when that changes."""

import time
from collections.abc import Callable

from edgebox.runtime.destinations import Destination
from edgebox.storage.rows import Level

_TEXT_MAX = 200
"""A receiver's own words may be long."""

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
        self.destination.connected = False
        self._failed_with(why)
        if not self._lost:
            self._lost = True
            error = self.destination.error
            self._note("warning", f"{self._name} cannot be reached, events wait: {error}")

    def lost(self, reason: str, why: str) -> None:
        """Count an event that is lost for good; the first of a reason is told to people."""
        found = self.destination
        found.dropped[reason] += 1
        if reason != "overflow":  # why events wait says more than that they do
            self._failed_with(why)
        if found.dropped[reason] == 1:
            self._note("warning", f"an event for {self._name} is lost: {why[:_TEXT_MAX]}")

    def _failed_with(self, why: str) -> None:
        found = self.destination
        found.error, found.error_at_ms = why[:_TEXT_MAX], time.time_ns() // 1_000_000

    @property
    def _name(self) -> str:
        what = "the MQTT broker" if self.destination.kind == "mqtt" else "the webhook"
        return f"{what} {self.destination.name}"
