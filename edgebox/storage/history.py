"""The history: seconds in memory, minutes and hours in the file, and charts of them.

A minute is written when it is over, in one transaction that also adds it to its hour. Charts are
read between transactions and composed in a thread, outside the event loop.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from edgebox.domain.errors import StorageError, UnknownNameError
from edgebox.domain.requests import CameraId
from edgebox.storage.charts import Kept, Segment, columns, drawn, segments
from edgebox.storage.damage import READ_ERRORS
from edgebox.storage.levels import (
    ADDING,
    COLUMNS,
    HOUR,
    MINUTE,
    NAME,
    SECOND,
    Level,
    counting,
    summing,
    values,
)
from edgebox.storage.periods import Period, Periods
from edgebox.storage.writer import Writer

SECOND_ROWS_MAX = 300_000
"""Most rows of seconds in memory: 64 cameras and the box for an hour, about 60 MB."""


class History:
    """Periods by second, minute and hour; part of `Storage`."""

    def __init__(
        self, writer: Writer, seconds: Writer, second_minutes: int, now_ms: Callable[[], int]
    ) -> None:
        """Use `Storage.history`.

        Args:
            writer: the file's writer.
            seconds: the writer of the database in memory.
            second_minutes: how long seconds are kept.
            now_ms: the wall clock, in Unix milliseconds.
        """
        self._writer = writer
        self._seconds = seconds
        self._second_keep_s = second_minutes * 60
        self._now_ms = now_ms
        self._until_ms = now_ms() // MINUTE.step_ms * MINUTE.step_ms

    # -- recording --------------------------------------------------------------------------

    def record_second(self, second: int, periods: Periods) -> None:
        """Add periods to a second, in memory."""
        for camera in periods:
            self._seconds.record(NAME, camera)
        for camera, period in periods.items():
            self._seconds.record(ADDING[SECOND], second, *values(camera, period))

    def record_minutes(self, minutes: Mapping[int, Periods], *, running: int | None = None) -> None:
        """Store minutes that are over, and add them to their hours.

        Args:
            minutes: the periods to be added, by Unix minute.
            running: the minute that is not over yet, before or after them if the wall clock was
                set; None: that after the last of them.
        """
        hours: dict[int, dict[CameraId, Period]] = {}
        for camera in {camera for periods in minutes.values() for camera in periods}:
            self._writer.record(NAME, camera)
        for minute, periods in minutes.items():
            hour = hours.setdefault(minute * MINUTE.step_ms // HOUR.step_ms, {})
            for camera, period in periods.items():
                self._writer.record(ADDING[MINUTE], minute, *values(camera, period))
                hour.setdefault(camera, Period()).add(period)
        for number, totals in hours.items():
            for camera, period in totals.items():
                self._writer.record(ADDING[HOUR], number, *values(camera, period))
        if minutes:
            running = max(minutes) + 1 if running is None else running
            self._until_ms = running * MINUTE.step_ms

    def forget(self, camera: CameraId) -> None:
        """Delete a camera's history; the box's own history keeps its frames."""
        for writer, tables in (
            (self._seconds, (SECOND.table,)),
            (self._writer, (MINUTE.table, HOUR.table)),
        ):
            for table in tables:
                writer.record(
                    f"DELETE FROM {table} WHERE name ="
                    " (SELECT id FROM history_names WHERE camera = ?)",
                    camera,
                )
            writer.record("DELETE FROM history_names WHERE camera = ?", camera)

    async def forget_seconds(self) -> None:
        """Delete seconds that are too old, or too many.

        Also deletes seconds in the future, from a clock that was ahead.
        """
        now_s = self._now_ms() // SECOND.step_ms
        await self._seconds.execute(
            "DELETE FROM history_second WHERE at < ? OR at > ?",
            now_s - self._second_keep_s, now_s + self._second_keep_s,
        )  # fmt: skip
        await self._seconds.execute(
            "DELETE FROM history_second WHERE at <"
            " (SELECT at FROM history_second ORDER BY at DESC LIMIT 1 OFFSET ?)",
            SECOND_ROWS_MAX,
        )
        await self._seconds.execute(
            "DELETE FROM history_names WHERE id NOT IN (SELECT name FROM history_second)"
        )

    # -- reading ----------------------------------------------------------------------------

    async def chart(self, camera: CameraId, from_ms: int, to_ms: int, points: int) -> bytes:
        """Return the JSON document of docs/reference/http-api.md.

        Args:
            camera: the camera; `periods.BOX`: all cameras together.
            from_ms: beginning, Unix milliseconds.
            to_ms: end, after the beginning.
            points: largest number of steps, at least `charts.POINTS_MIN`.

        Raises:
            StorageError: the database cannot be read.
        """
        found = segments(from_ms, to_ms, points, await self._kept())
        rows = [await self._rows(segment, camera) for segment in found]
        try:
            return await asyncio.to_thread(_document, camera, from_ms, to_ms, found, rows)
        except READ_ERRORS as error:
            raise StorageError(f"the history of {camera or 'the box'}: {error}") from error

    async def periods(self, level: Level, camera: CameraId) -> dict[int, dict[str, Any]]:
        """Return every row of a camera by its step since 1970; the columns of `levels.COLUMNS`."""
        writer = self._seconds if level is SECOND else self._writer
        (rows,) = await writer.read(
            (
                f"SELECT at, {', '.join(COLUMNS)} FROM {level.table} WHERE name ="
                " (SELECT id FROM history_names WHERE camera = ?) ORDER BY at",
                (camera,),
            )
        )
        return {at: dict(zip(COLUMNS, row, strict=True)) for at, *row in rows}

    async def check_camera(self, camera: CameraId) -> None:
        """Check that there is a history of a camera.

        Raises:
            UnknownNameError: there is none.
            StorageError: the database cannot be read.
        """
        query = ("SELECT 1 FROM history_names WHERE camera = ?", (camera,))
        for writer in (self._seconds, self._writer):
            (rows,) = await writer.read(query)
            if rows:
                return
        raise UnknownNameError(f"no history is kept of a camera named {camera}")

    async def span_ms(self, camera: CameraId) -> tuple[int, int] | None:
        """Return from when to when a camera has a history, Unix milliseconds; None: it has none.

        Raises:
            StorageError: the database cannot be read.
        """
        found: list[int] = []
        for levels, writer in (((SECOND,), self._seconds), ((MINUTE, HOUR), self._writer)):
            (ids,) = await writer.read(("SELECT id FROM history_names WHERE camera = ?", (camera,)))
            for level in levels if ids else ():
                # Each end alone ends at the first row found; both at once read the whole table.
                of_camera = f"FROM {level.table} WHERE name = ?"
                query = f"SELECT (SELECT min(at) {of_camera}), (SELECT max(at) {of_camera})"
                (((first, last),),) = await writer.read((query, ids[0] * 2))
                if first is not None:
                    found += [first * level.step_ms, (last + 1) * level.step_ms]
        return (min(found), min(max(found), self._now_ms())) if found else None

    async def _kept(self) -> Kept:
        ((second,),) = (await self._seconds.read(("SELECT min(at) FROM history_second", ())))[0]
        ((minute,),) = (await self._writer.read(("SELECT min(at) FROM history_minute", ())))[0]
        ((hour,),) = (await self._writer.read(("SELECT min(at) FROM history_hour", ())))[0]
        return Kept(
            None if second is None else second * SECOND.step_ms,
            None if minute is None else minute * MINUTE.step_ms,
            None if hour is None else hour * HOUR.step_ms,
            self._until_ms,
        )

    async def _rows(self, segment: Segment, camera: CameraId) -> list[list[Any]]:
        level = segment.level
        first, end = segment.rows
        writer = self._seconds if level is SECOND else self._writer
        return await writer.read(
            (summing(level), (first, segment.step_ms // level.step_ms, first, end, camera)),
            (counting(level), (first, end, camera)),
        )


def _document(
    camera: CameraId, from_ms: int, to_ms: int, found: list[Segment], rows: list[list[list[Any]]]
) -> bytes:
    parts = [drawn(segment, *read) for segment, read in zip(found, rows, strict=True)]
    return orjson.dumps(
        {
            "camera": camera or None,
            "from_ms": from_ms,
            "to_ms": to_ms,
            "segments": [
                {
                    "level": segment.level.name,
                    "from_ms": segment.begin_ms,
                    "step_ms": segment.step_ms,
                    "points": segment.points,
                }
                for segment in found
            ],
            **columns(parts),
        }
    )
