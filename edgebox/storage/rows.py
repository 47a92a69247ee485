"""Rows of cameras and events. Pure data; history is in `periods`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from edgebox.domain.requests import CameraId

NEVER_SEEN_MS = 0
"""When a camera was seen that was set before it ever connected."""

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class CameraRecord:
    """A known camera. Instants are Unix milliseconds, or `NEVER_SEEN_MS`."""

    camera: CameraId
    hello: Mapping[str, Any]
    """Its last hello, as received."""
    first_seen_ms: int
    last_seen_ms: int
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Settings made on the box."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event for people."""

    id: int
    """Increasing id."""

    at_ms: int
    """Unix milliseconds."""
    level: Level
    text: str
    camera: CameraId | None = None


@dataclass(frozen=True, slots=True)
class StorageSizes:
    """Sizes of the database."""

    database_bytes: int
    """Size without the write-ahead log."""
    rows: Mapping[str, int]
    """Rows by table."""
