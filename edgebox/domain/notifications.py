"""Notifications: events of a camera or the box that other programs subscribe to. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edgebox.domain.requests import CameraId


class NotificationType(StrEnum):
    """The type of a notification."""

    DETECTION = "detection"
    """A camera sees a class that it did not see before."""
    DETECTION_ENDED = "detection_ended"
    """A camera has not seen the class for a while."""
    ZONE_DWELL = "zone_dwell"
    """An object has been in a zone for the zone's minimum."""
    ZONE_LEFT = "zone_left"
    """The stay is over."""
    LINE_CROSSED = "line_crossed"
    CAMERA_UP = "camera_up"
    CAMERA_DOWN = "camera_down"
    SLO_BREACHED = "slo_breached"
    """Too few of a camera's frames are answered on time."""
    SLO_RECOVERED = "slo_recovered"
    EXECUTOR_LOST = "executor_lost"
    """An executor hung or kept failing, and was taken out of service."""
    EXECUTOR_RECOVERED = "executor_recovered"
    BOX_ONLINE = "box_online"
    BOX_OFFLINE = "box_offline"
    """The box stops as ordered; one that dies cannot send this."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One event, at an instant of the box's monotonic clock."""

    kind: NotificationType
    at_ns: int
    camera: CameraId | None = None
    label: str | None = None
    """The class, for detections and objects in zones."""
    details: Mapping[str, object] = field(default_factory=dict)
    """Further fields, ready for JSON."""


def zone_event_text(kind: str, label: str | None, details: Mapping[str, object]) -> str | None:
    """Return an event of a zone or a line for people; None: it is not worth a line of its own.

    Args:
        kind: a `NotificationType`.
        label: the object's class.
        details: as in the notification.
    """
    who = f"{label} {details['track']}"
    if kind == NotificationType.LINE_CROSSED:
        return f"{who} crossed {details['line']} ({details['direction']})"
    if kind == NotificationType.ZONE_DWELL:
        zone, dwell_s = details["zone"], details["dwell_s"]
        # A zone that asks for no stay says who entered.
        return f"{who} in {zone} for {dwell_s} s" if dwell_s else f"{who} entered {zone}"
    return None
