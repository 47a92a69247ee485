"""Tracks the state of a destination, and publishes a notice when it changes."""

from collections.abc import Callable

from edgebox.runtime.destinations import Destination
from edgebox.storage.rows import Level
from edgebox.storage.wall_clock import wall_clock_ms

_TEXT_MAX = 200
"""Longest error text of a receiver in a notice."""

Note = Callable[[Level, str], None]


class Health:
    """One destination's state."""

    def __init__(self, destination: Destination, note: Note) -> None:
        """Publish notices through `note`."""
        self.destination = destination
        self._note = note
        self._lost = False

    def worked(self) -> None:
        """Record that it accepted an event or a connection."""
        self.destination.connected = True
        if self._lost:
            self._lost = False
            self._note("info", f"{self._name} accepts events again")

    def failed(self, why: str) -> None:
        """Record a failure; queued events stay queued."""
        self.destination.connected = False
        self._failed_with(why)
        if not self._lost:
            self._lost = True
            error = self.destination.error
            self._note("warning", f"{self._name} cannot be reached, events wait: {error}")

    def lost(self, reason: str, why: str) -> None:
        """Count a lost event; publish the first loss for each reason."""
        found = self.destination
        found.dropped[reason] += 1
        if reason != "overflow":  # the notice of the failure explains the overflow
            self._failed_with(why)
        if found.dropped[reason] == 1:
            self._note("warning", f"an event for {self._name} is lost: {why[:_TEXT_MAX]}")

    def refused(self, why: str) -> None:
        """Record a state that the receiver does not accept."""
        self._failed_with(why)
        self._note("warning", f"a state for {self._name} is not sent any more: {why[:_TEXT_MAX]}")

    def _failed_with(self, why: str) -> None:
        found = self.destination
        found.error, found.error_at_ms = why[:_TEXT_MAX], wall_clock_ms()

    @property
    def _name(self) -> str:
        what = "the MQTT broker" if self.destination.kind == "mqtt" else "the webhook"
        return f"{what} {self.destination.name}"
