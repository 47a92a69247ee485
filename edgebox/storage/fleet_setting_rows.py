"""Stores settings of cameras as the boxes of a fleet share them, with their versions."""

from collections.abc import Sequence
from typing import Any

from edgebox.domain.requests import CameraId
from edgebox.storage.damage import name_of, object_of, sound
from edgebox.storage.writer import Writer

Row = tuple[CameraId, str, int, str, bytes, bool]
"""Camera, setting, counter and box of the version, value as JSON, and whether it was set on this
box: its name in versions changes with its address."""


class FleetSettingRows:
    """The table. As in `Writer`, recording never waits and never raises."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def record(self, row: Row) -> None:
        """Replace the row of a camera's setting."""
        *key, value, here = row
        self._writer.record(
            "INSERT OR REPLACE INTO fleet_settings (camera, setting, counter, box, value, here)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            *key, value.decode(), int(here),
        )  # fmt: skip

    def forget(self, camera: CameraId, setting: str) -> None:
        """Delete the row of a camera's setting."""
        self._writer.record(
            "DELETE FROM fleet_settings WHERE camera = ? AND setting = ?", camera, setting
        )

    async def load(self) -> list[Row]:
        """Return all rows, by camera and setting.

        Raises:
            StorageError: the database cannot be read.
        """
        (rows,) = await self._writer.read(
            (
                "SELECT camera, setting, counter, box, value, here FROM fleet_settings"
                " ORDER BY camera, setting",
                (),
            )
        )
        return sound(rows, _row, "settings of the fleet", 0)


def _row(row: Sequence[Any]) -> Row:
    camera, setting, counter, box, value, here = row
    if type(counter) is not int or counter < 0:
        raise ValueError(f"the version {counter!r}")
    object_of(value)
    key = CameraId(name_of(camera)), name_of(setting)
    return *key, counter, name_of(box), value.encode(), bool(here)
