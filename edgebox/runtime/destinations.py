"""What is known of one place that events are sent to, for the page and for Prometheus."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal


@dataclass(slots=True)
class Destination:
    """An MQTT broker or a webhook."""

    kind: Literal["mqtt", "webhook"]
    name: str
    connected: bool | None = None
    """Of a webhook: whether its last answer was good. None: it was never tried."""
    queued: int = 0
    """Events that wait, the one that is being sent included."""
    sent: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Events that were lost, by reason: overflow, refused, expired."""
    error: str = ""
    """What went wrong last; empty: nothing ever."""
    error_at_ms: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the document of docs/http-api.md."""
        return {
            "kind": self.kind,
            "name": self.name,
            "connected": self.connected,
            "queued": self.queued,
            "sent": self.sent,
            "dropped": dict(self.dropped),
            "last_error": {"at_ms": self.error_at_ms, "text": self.error} if self.error else None,
        }
