"""What storage keeps of cameras and events. Pure data; history is in `periods`."""

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
