"""Stores the cameras that were added over the API for the box to fetch; without their passwords."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from edgebox.domain.requests import CameraId
from edgebox.storage.damage import name_of, object_of, sound
from edgebox.storage.writer import Writer


class SourceRows:
    """The table. As in `Writer`, recording never waits and never raises."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def record(self, camera: CameraId, settings: Mapping[str, Any]) -> None:
        """Replace a camera's row."""
        self._writer.record(
            "INSERT OR REPLACE INTO sources (camera, settings) VALUES (?, ?)",
            camera, orjson.dumps(settings).decode(),
        )  # fmt: skip

    def forget(self, camera: CameraId) -> None:
        """Delete a camera's row."""
        self._writer.record("DELETE FROM sources WHERE camera = ?", camera)

    async def load(self) -> list[tuple[CameraId, Mapping[str, Any]]]:
        """Return all cameras with their settings, by name.

        Raises:
            StorageError: the database cannot be read.
        """
        (rows,) = await self._writer.read(
            ("SELECT camera, settings FROM sources ORDER BY camera", ())
        )
        return sound(rows, _source_of, "cameras that the box fetches", 0)


def _source_of(row: Sequence[Any]) -> tuple[CameraId, Mapping[str, Any]]:
    return CameraId(name_of(row[0])), object_of(row[1])
