"""State of one receiver of notifications, for the page and for Prometheus."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

LOSSES = ("overflow", "refused", "expired")
"""Why an event is lost: too many wait, the receiver does not take it, it waited too long."""


@dataclass(slots=True)
class Destination:
    """An MQTT broker or a webhook."""

    kind: Literal["mqtt", "webhook"]
    name: str
    connected: bool | None = None
    """Whether it accepted the last delivery (webhook). None: not tried yet."""
    queued: int = 0
    """Waiting events, including the one being sent."""
    sent: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Events that were lost, by reason: one of `LOSSES`."""
    error: str = ""
    """The last error; empty: none so far."""
    error_at_ms: int = 0
