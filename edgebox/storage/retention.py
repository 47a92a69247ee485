"""Decides what is forgotten, so that the file stays within its bounds, and gives its pages back.

Two rules. Age: each kind of row has one at which it goes; history goes a day at a time, so that
a wall clock that is wrong for an hour costs a day of it and not all. Size: whatever was
written, the file is kept below `size_max_bytes` by shortening the finest history first, then the
coarser one, then events, then the list of cameras. Names may be endless, and what is kept by name
outside the history is bounded by its number as well.
"""

from dataclasses import dataclass

from edgebox.storage.connecting import WAL_BYTES_MAX
from edgebox.storage.levels import HOUR, MINUTE
from edgebox.storage.writer import Writer

DAY_MS = 86_400_000

EVENTS_MAX = 50_000
EVENTS_SLACK = 500
"""Events that may come before the oldest are looked at again."""
CAMERAS_MAX = 5_000

_SLICE_ROWS = 2_000
"""Rows that go at once when there is no room: less than a megabyte."""
_FREE_PAGES_MAX = 256
"""Unused pages that stay for what comes next: giving each back as it falls free costs writes."""
_VACUUM_PAGES = 1_000
SPARE_BYTES = 3 * WAL_BYTES_MAX
"""Room for the log beside the file, and for what is written between two looks."""

FEWER_EVENTS = "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?"
_FEWER_CAMERAS = """DELETE FROM cameras WHERE camera IN
    (SELECT camera FROM cameras ORDER BY last_seen_ms DESC LIMIT -1 OFFSET ?)"""
_SHORTENED = (
    ("history_minute", "at"), ("history_hour", "at"), ("events", "id"), ("cameras", "last_seen_ms")
)  # fmt: skip
"""Whose oldest rows go while there is no room, in this order."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much is kept."""

    second_minutes: int = 60
    """In memory."""
    minute_days: int = 30
    hour_days: int = 400
    event_days: int = 30
    size_max_bytes: int = 512_000_000
    """Of the file and its log together."""


class Retention:
    """Forgets what a database need not keep."""

    def __init__(self, writer: Writer, limits: Limits) -> None:
        """Keep the database of `writer` within `limits`."""
        self._writer = writer
        self._limits = limits

    async def forget_old(self, now_ms: int) -> None:
        """Delete what is past its age, and names without history.

        Raises:
            StorageError: the database cannot be written.
        """
        limits = self._limits
        # An hour outlives its minutes: names are kept as long as their hours are.
        hour_days = max(limits.hour_days, limits.minute_days)
        for level, days in ((MINUTE, limits.minute_days), (HOUR, hour_days)):
            await self._writer.execute(
                f"DELETE FROM {level.table} WHERE at <"
                f" min(?, (SELECT min(at) FROM {level.table}) + ?)",
                (now_ms - days * DAY_MS) // level.step_ms, DAY_MS // level.step_ms,
            )  # fmt: skip
        await self._writer.execute(
            "DELETE FROM events WHERE at_ms < ?", now_ms - limits.event_days * DAY_MS
        )
        # Their numbers are never used again, so what is left of a name is nobody else's.
        await self._writer.execute(
            "DELETE FROM history_names WHERE camera != ''"
            " AND id NOT IN (SELECT name FROM history_hour)"
        )

    async def fit(self) -> None:
        """Forget the oldest until the file is below its limit, and give unused pages back.

        Raises:
            StorageError: the database cannot be written.
        """
        await self._writer.execute(FEWER_EVENTS, EVENTS_MAX - EVENTS_SLACK)
        await self._writer.execute(_FEWER_CAMERAS, CAMERAS_MAX)
        room_bytes = self._limits.size_max_bytes - SPARE_BYTES
        for table, key in _SHORTENED:
            used_bytes = await self._used_bytes()
            while used_bytes > room_bytes:
                await self._writer.execute(
                    f"DELETE FROM {table} WHERE {key} <="
                    f" (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET ?)",
                    _SLICE_ROWS,
                )
                before_bytes, used_bytes = used_bytes, await self._used_bytes()
                if used_bytes >= before_bytes:
                    break  # so few rows are left that it is not they that take the room
        await self._shrink()

    async def _shrink(self) -> None:
        """Give unused pages back, a slice at a time, so that nobody waits long for the database."""
        shrunk = False
        while await self._number("PRAGMA freelist_count") > _FREE_PAGES_MAX:
            await self._writer.execute(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")
            shrunk = True
        if shrunk:
            await self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def _used_bytes(self) -> int:
        pages = await self._number("PRAGMA page_count")
        unused = await self._number("PRAGMA freelist_count")
        return (pages - unused) * await self._number("PRAGMA page_size")

    async def _number(self, query: str) -> int:
        ((value,),) = await self._writer.execute(query)
        return int(value)
