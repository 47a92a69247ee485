"""Publishes notices for people: on the page, in the log and in the database.

A camera, or an address before its hello, gets a limited number of them each minute. Lives on the
event loop.
"""

import logging
from collections import deque
from collections.abc import Callable, Container

from edgebox.runtime.box_event import BoxEvent
from edgebox.runtime.peers import Peers
from edgebox.runtime.repeat_limiter import NOTICES_PER_MINUTE, RepeatLimiter
from edgebox.storage.rows import Level
from edgebox.storage.wall_clock import wall_clock_ms

_KEPT = 200
_LOG_LEVELS: dict[Level, int] = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

_log = logging.getLogger(__name__)


class Notices:
    """The latest notices, and how many each camera and address caused in this minute."""

    def __init__(self, peers: Peers, on_event: Callable[[BoxEvent], None]) -> None:
        """Start empty.

        Args:
            peers: limits the notices about an address.
            on_event: called with each notice, to be stored.
        """
        self.recent: deque[BoxEvent] = deque(maxlen=_KEPT)
        self._peers = peers
        self._on_event = on_event
        self._repeats = RepeatLimiter(NOTICES_PER_MINUTE)

    def publish(self, level: Level, text: str, camera: str | None = None) -> None:
        """Publish a notice, also about a camera."""
        self._publish(BoxEvent(wall_clock_ms(), level, camera, text))

    def _publish(self, event: BoxEvent) -> None:
        _log.log(_LOG_LEVELS[event.level], "%s", event.text, extra={"camera": event.camera})
        self.recent.append(event)
        self._on_event(event)

    def publish_from(self, address: str, level: Level, text: str, camera: str | None) -> None:
        """Publish a notice about a camera or an address, unless the minute's limit is reached."""
        # An address can use any number of names, so its own limit comes first.
        if self._peers.passes(address) and self._repeats.passes(camera or address):
            self.publish(level, text, camera)

    def moved(self, address: str, camera: str, text: str) -> None:
        """Publish that a camera moved to another size, within the same limits.

        Among the latest notices it takes the place of the camera's move before it, if nothing else
        was told of the camera since: one that moves to and fro hides nothing else.
        """
        if not (self._peers.passes(address) and self._repeats.passes(camera)):
            return
        at_ms = wall_clock_ms()
        before = next((each for each in reversed(self.recent) if each.camera == camera), None)
        if before is None or before.moves == 0:
            self._publish(BoxEvent(at_ms, "info", camera, text, 1, at_ms))
            return
        self.recent.remove(before)
        self._publish(BoxEvent(at_ms, "info", camera, text, before.moves + 1, before.since_ms))

    def end_minute(self, cameras: Container[str]) -> None:
        """Publish how many notices were held back in this minute, about known cameras or others."""
        held_back = [*self._repeats.end_period().items(), *self._peers.end_minute().items()]
        for source, count in held_back:
            text = f"{source}: {count} more notices within a minute"
            self.publish("warning", text, source if source in cameras else None)
