"""Writes notifications as JSON, for MQTT and webhooks. events.md specifies it. Pure."""

from dataclasses import dataclass

import orjson

from edgebox.domain.notifications import Notification


@dataclass(frozen=True, slots=True)
class Event:
    """An encoded notification for destinations."""

    id: str
    """Globally unique id, by which receivers recognise duplicates."""
    notification: Notification
    body: bytes


def written(notification: Notification, event_id: str, box: str, at_ms: int) -> Event:
    """Return a notification as JSON.

    Args:
        notification: the notification.
        event_id: unique.
        box: name of this box.
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
