"""Deletes rows so that the file stays within its bounds, and returns unused pages.

Two rules. Age: each kind of row has a maximum age; what is too old is deleted a day at a time, so
that a wall clock that is wrong for an hour costs only a day. Size: the file stays below
`size_max_bytes` by deleting the finest history first, then the coarser one, then events, then
cameras. The number of names is unbounded, so rows by name outside the history are also limited in
number. Cameras that somebody has set, or that the box fetches, are not deleted.
"""

from dataclasses import dataclass

from edgebox.storage.connecting import WAL_BYTES_MAX
from edgebox.storage.levels import HOUR, MINUTE
from edgebox.storage.writer import Writer

DAY_MS = 86_400_000

EVENTS_MAX = 50_000
EVENTS_SLACK = 500
"""Events that may be recorded between two checks of their number."""
CAMERAS_MAX = 5_000

_SLICE_ROWS = 2_000
"""Rows deleted at once above the size limit: less than a megabyte."""
_FREE_PAGES_MAX = 256
"""Unused pages that stay for reuse: returning each page at once would cost writes."""
_VACUUM_PAGES = 1_000
SPARE_BYTES = 3 * WAL_BYTES_MAX
"""Room for the write-ahead log, and for writes between two checks."""

FEWER_EVENTS = "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?"
_KEPT_CAMERAS = "overrides != '{}' OR camera IN (SELECT camera FROM sources)"
_FEWER_CAMERAS = f"""DELETE FROM cameras WHERE camera IN
    (SELECT camera FROM cameras ORDER BY {_KEPT_CAMERAS} DESC, last_seen_ms DESC LIMIT -1 OFFSET ?)
    AND NOT ({_KEPT_CAMERAS})"""
_SHORTENED = (
    ("history_minute", "at"), ("history_hour", "at"), ("events", "id"), ("cameras", "last_seen_ms")
)  # fmt: skip
"""Tables whose oldest rows are deleted above the size limit, in this order."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on age and size."""

    second_minutes: int = 60
    """Age of seconds, in memory."""
    minute_days: int = 30
    hour_days: int = 400
    event_days: int = 30
    size_max_bytes: int = 512_000_000
    """Size of the file and its log together."""


class Retention:
    """Deletes rows of a database that exceed its limits."""

    def __init__(self, writer: Writer, limits: Limits) -> None:
        """Keep the database of `writer` within `limits`."""
        self._writer = writer
        self._limits = limits

    async def forget_old(self, now_ms: int) -> None:
        """Delete old rows, and names without history.

        Raises:
            StorageError: the database cannot be written.
        """
        limits = self._limits
        # Hours are kept longer than minutes, so names are kept as long as their hours.
        hour_days = max(limits.hour_days, limits.minute_days)
        for level, days in ((MINUTE, limits.minute_days), (HOUR, hour_days)):
            await self._writer.execute(
                f"DELETE FROM {level.table} WHERE at <"
                f" min(?, (SELECT min(at) FROM {level.table}) + ?)",
                (now_ms - days * DAY_MS) // level.step_ms, DAY_MS // level.step_ms,
            )  # fmt: skip
        await self._writer.execute(
            "DELETE FROM events WHERE at_ms < min(?, (SELECT min(at_ms) FROM events) + ?)",
            now_ms - limits.event_days * DAY_MS, DAY_MS,
        )  # fmt: skip
        # Their ids are never reused, so leftover rows cannot belong to another name.
        await self._writer.execute(
            "DELETE FROM history_names WHERE camera != ''"
            " AND id NOT IN (SELECT name FROM history_hour)"
        )

    async def fit(self) -> None:
        """Delete the oldest rows until the file is below its limit, and return unused pages.

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
                    f" (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET ?)"
                    + (f" AND NOT ({_KEPT_CAMERAS})" if table == "cameras" else ""),
                    _SLICE_ROWS,
                )
                before_bytes, used_bytes = used_bytes, await self._used_bytes()
                if used_bytes >= before_bytes:
                    break  # the few remaining rows do not take the space
        await self._shrink()

    async def _shrink(self) -> None:
        """Return unused pages in slices, so that other statements wait only briefly."""
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
