"""Owns the JSON of an event, the same for MQTT and webhooks. docs/events.md specifies it. Pure."""

from dataclasses import dataclass

import orjson

from edgebox.domain.notifications import Notification


@dataclass(frozen=True, slots=True)
class Event:
    """A notification with its name, as destinations get it."""

    id: str
    """Unique among all boxes and starts: an event that comes twice is told by it."""
    notification: Notification
    body: bytes


def written(notification: Notification, event_id: str, box: str, at_ms: int) -> Event:
    """Write down a notification.

    Args:
        notification: what happened.
        event_id: unique.
        box: what people call this box.
        at_ms: when it happened, Unix milliseconds.
    """
    document: dict[str, object] = {
        "id": event_id,
        "type": notification.kind.value,
        "at_ms": at_ms,
        "box_name": box,
    }
    if notification.camera is not None:
        document["camera"] = notification.camera
    if notification.label is not None:
        document["label"] = notification.label
    return Event(event_id, notification, orjson.dumps(document | dict(notification.details)))
