"""What storage keeps: cameras, minutes of metrics, events. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from edgebox.domain.requests import CameraId

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class CameraRecord:
    """A camera the box has met. Instants are Unix milliseconds."""

    camera: CameraId
    hello: Mapping[str, Any]
    """Its last hello, as received."""
    first_seen_ms: int
    last_seen_ms: int
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """What was set for it on the box."""


@dataclass(frozen=True, slots=True)
class CameraMinute:
    """What happened to one camera's frames in one minute."""

    camera: CameraId
    minute_ms: int
    """When the minute began, Unix milliseconds."""
    captured: int
    accepted: int
    on_time: int
    late: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Frames by drop reason."""
    latency_ms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By quantile ("p50", "p99"), then by part ("network", "total"); empty: none answered."""
    mean_px: float | None = None
    """Mean input width of the answered frames."""
    variants: Mapping[str, int] = field(default_factory=dict)
    """Answered frames by variant."""
    mismatches: int = 0
    """Of the answered frames: on another variant than their camera had been advised of."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """Something a person may want to read later."""

    id: int
    """Later events have higher ones."""

    at_ms: int
    """Unix milliseconds."""
    level: Level
    text: str
    camera: CameraId | None = None


@dataclass(frozen=True, slots=True)
class StorageSizes:
    """How much the database holds."""

    database_bytes: int
    """Without its write-ahead log."""
    rows: Mapping[str, int]
    """By table."""
