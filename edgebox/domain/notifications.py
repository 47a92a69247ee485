"""What a notification is: news of a camera or the box that programs outside want. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edgebox.domain.requests import CameraId


class NotificationType(StrEnum):
    """What has happened."""

    DETECTION = "detection"
    """A class is seen by a camera that did not see it before."""
    DETECTION_ENDED = "detection_ended"
    """It has not been seen for a while."""
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
    """The box stops, in order: one that dies cannot say so itself."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One fact, at an instant of the box's monotonic clock."""

    kind: NotificationType
    at_ns: int
    camera: CameraId | None = None
    label: str | None = None
    """The class, of detections."""
    details: Mapping[str, object] = field(default_factory=dict)
    """What else is told, ready for JSON."""
