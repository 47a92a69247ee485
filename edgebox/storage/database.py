"""Owns the SQLite file: one writer behind a bounded buffer, reads beside it.

Recording never waits and never raises: rows go into a buffer that one task writes, a transaction
at a time. When the disk is full or fails, serving goes on: rows wait (the oldest go first when the
buffer is full), the writer tries again, `failures` and `last_error` say so.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import aiosqlite
import orjson

from edgebox.domain.errors import StorageError
from edgebox.domain.models import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    Judgement,
    LatencyProfile,
    VariantName,
)
from edgebox.domain.requests import CameraId
from edgebox.storage.rows import CameraMinute, CameraRecord, Level, StoredEvent
from edgebox.storage.schema import migrate

IN_MEMORY = ":memory:"

_DAY_MS = 86_400_000
_BUSY_TIMEOUT_MS = 3000
_PRUNE_EVERY_S = 3600.0

_Row = tuple[str, tuple[Any, ...]]
"""A statement and its parameters."""

_ROW_REFUSED = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeEncodeError,
)
"""Errors of the row itself: trying again cannot help."""


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Storage:
    """An open database; made by `Storage.open`."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        *,
        minute_retention_days: int,
        event_retention_days: int,
        buffer_rows_max: int,
        retry_s: float,
        now_ms: Callable[[], int],
    ) -> None:
        """Use `Storage.open`."""
        self.failures = 0
        """Write attempts that failed since the start."""
        self.last_error = ""
        """What the last attempt said; empty once writing works again."""
        self.lost_rows = 0
        """Rows that were given up: the buffer overflowed, or the database refused them."""
        self._connection = connection
        self._minute_retention_ms = minute_retention_days * _DAY_MS
        self._event_retention_ms = event_retention_days * _DAY_MS
        self._buffer_rows_max = buffer_rows_max
        self._retry_s = retry_s
        self._now_ms = now_ms
        self._buffer: deque[_Row] = deque()
        self._wake = asyncio.Event()
        # One connection serves all, so a read must not see half of a transaction.
        self._exclusive = asyncio.Lock()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        minute_retention_days: int = 30,
        event_retention_days: int = 30,
        buffer_rows_max: int = 10_000,
        retry_s: float = 5.0,
        now_ms: Callable[[], int] = _wall_clock_ms,
    ) -> Self:
        """Open or create a database and start its writer.

        Args:
            path: the file, its folder made when missing; ":memory:" keeps everything in memory.
            minute_retention_days: age at which minutes of metrics are deleted.
            event_retention_days: age at which events are deleted.
            buffer_rows_max: rows that may wait for the disk.
            retry_s: pause after a failed write.
            now_ms: the wall clock, in Unix milliseconds.

        Raises:
            StorageError: the file cannot be used; the message says what to do.
        """
        connection = await _connect(path)
        storage = cls(
            connection,
            minute_retention_days=minute_retention_days,
            event_retention_days=event_retention_days,
            buffer_rows_max=buffer_rows_max,
            retry_s=retry_s,
            now_ms=now_ms,
        )
        storage.prune()
        storage._writer = asyncio.create_task(storage._write_forever(), name="storage-writer")
        return storage

    async def close(self) -> None:
        """Write what waits, once more if it must be, and close the file. Idempotent."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        if self._writer is not None:
            await self._writer
        await self.flush()
        self.lost_rows += len(self._buffer)
        self._buffer.clear()
        with contextlib.suppress(sqlite3.Error):
            await self._connection.close()

    @property
    def waiting_rows(self) -> int:
        """Rows recorded and not yet written."""
        return len(self._buffer)

    # Recording: into the buffer, at once.

    def save_profiles(self, fingerprint: str, profiles: Sequence[LatencyProfile]) -> None:
        """Replace the profiles of these variants and executors under a fingerprint."""
        now_ms = self._now_ms()
        for profile in profiles:
            key = (fingerprint, profile.executor, profile.variant)
            self._record(
                "DELETE FROM profiles WHERE fingerprint = ? AND executor = ? AND variant = ?", *key
            )
            for batch_size, quantiles in profile.quantiles_ns.items():
                self._record(
                    "INSERT OR REPLACE INTO profiles (fingerprint, executor, variant, batch_size,"
                    " quantiles_ns, measured_at_ms) VALUES (?, ?, ?, ?, ?, ?)",
                    *key, batch_size, _json(quantiles), now_ms,
                )  # fmt: skip

    def save_judgements(
        self, family: FamilyName, content: str, judgements: Mapping[VariantName, Judgement]
    ) -> None:
        """Replace what is known about a family's variants; `content` is its files' checksum."""
        self._record("DELETE FROM judgements WHERE family = ?", family)
        for variant, found in judgements.items():
            self._record(
                "INSERT INTO judgements (family, variant, content, kind, accuracy, error, source,"
                " pictures, measured_at_ms, set_aside, details)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                family, variant, content, found.kind, found.accuracy, found.error, found.source,
                found.pictures, found.measured_at_ms, found.set_aside, _json(found.details),
            )  # fmt: skip

    def record_camera(self, camera: CameraId, hello: dict[str, Any]) -> None:
        """Remember that a camera said hello now, and what it said."""
        now_ms = self._now_ms()
        self._record(
            "INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (camera) DO UPDATE SET hello = excluded.hello,"
            " last_seen_ms = excluded.last_seen_ms",
            camera, _json(hello), now_ms, now_ms,
        )  # fmt: skip

    def record_minutes(self, rows: Sequence[CameraMinute]) -> None:
        """Keep minutes of metrics; a minute that is there already is replaced."""
        for row in rows:
            self._record(
                "INSERT OR REPLACE INTO metrics_minute (camera, minute_ms, captured, accepted,"
                " on_time, late, dropped, latency_ms, mean_px, variants, mismatches)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row.camera, row.minute_ms, row.captured, row.accepted, row.on_time, row.late,
                _json(row.dropped), _json(row.latency_ms), row.mean_px, _json(row.variants),
                row.mismatches,
            )  # fmt: skip

    def record_event(self, level: Level, text: str, camera: CameraId | None = None) -> None:
        """Keep an event that happens now."""
        self._record(
            "INSERT INTO events (at_ms, level, camera, text) VALUES (?, ?, ?, ?)",
            self._now_ms(), level, camera, text,
        )  # fmt: skip

    def prune(self) -> None:
        """Delete what is older than its retention; the writer does it by itself every hour."""
        now_ms = self._now_ms()
        self._record(
            "DELETE FROM metrics_minute WHERE minute_ms < ?", now_ms - self._minute_retention_ms
        )
        self._record("DELETE FROM events WHERE at_ms < ?", now_ms - self._event_retention_ms)

    # Reading.

    async def load_profiles(self, fingerprint: str) -> list[LatencyProfile]:
        """Return the profiles measured under a fingerprint, by executor and variant."""
        found: dict[tuple[str, str], dict[int, tuple[int, ...]]] = {}
        for executor, variant, batch_size, text in await self._rows(
            "SELECT executor, variant, batch_size, quantiles_ns FROM profiles"
            " WHERE fingerprint = ? ORDER BY executor, variant, batch_size",
            fingerprint,
        ):
            quantiles = tuple(orjson.loads(text))
            # Another release may have kept other quantiles; those must be measured again.
            if len(quantiles) == len(QUANTILES):
                found.setdefault((executor, variant), {})[batch_size] = quantiles
        return [
            LatencyProfile(VariantName(variant), ExecutorId(executor), rows)
            for (executor, variant), rows in found.items()
        ]

    async def load_newest_profiles(self, ending: str) -> list[LatencyProfile]:
        """Return what was measured last under any fingerprint that ends like this."""
        rows = await self._rows(
            "SELECT fingerprint FROM profiles WHERE substr(fingerprint, -length(?1)) = ?1"
            " ORDER BY measured_at_ms DESC LIMIT 1",
            ending,
        )
        return await self.load_profiles(rows[0][0]) if rows else []

    async def load_judgements(
        self, family: FamilyName, content: str
    ) -> dict[VariantName, Judgement]:
        """Return what is known about a family's variants, if its files are still the same."""
        rows = await self._rows(
            "SELECT variant, kind, accuracy, error, source, pictures, measured_at_ms, set_aside,"
            " details FROM judgements WHERE family = ? AND content = ?",
            family, content,
        )  # fmt: skip
        return {VariantName(row[0]): _judgement(row) for row in rows}

    async def cameras(self) -> list[CameraRecord]:
        """Return every camera the box has met, the last seen first."""
        rows = await self._rows(
            "SELECT camera, hello, first_seen_ms, last_seen_ms FROM cameras"
            " ORDER BY last_seen_ms DESC, camera"
        )
        return [CameraRecord(CameraId(r[0]), orjson.loads(r[1]), r[2], r[3]) for r in rows]

    async def minutes(self, camera: CameraId, since_ms: int, until_ms: int) -> list[CameraMinute]:
        """Return a camera's minutes that begin in [since, until), oldest first."""
        rows = await self._rows(
            "SELECT camera, minute_ms, captured, accepted, on_time, late, dropped, latency_ms,"
            " mean_px, variants, mismatches FROM metrics_minute"
            " WHERE camera = ? AND minute_ms >= ? AND minute_ms < ? ORDER BY minute_ms",
            camera, since_ms, until_ms,
        )  # fmt: skip
        return [_minute(row) for row in rows]

    async def recent_events(self, count: int) -> list[StoredEvent]:
        """Return the last `count` events, newest first."""
        rows = await self._rows(
            "SELECT at_ms, level, text, camera FROM events ORDER BY id DESC LIMIT ?", count
        )
        return [StoredEvent(*row) for row in rows]

    async def flush(self) -> bool:
        """Try to write everything that waits, now; say whether all of it was written."""
        return await self._write_buffer()

    async def _rows(self, statement: str, *parameters: Any) -> list[Any]:
        try:
            async with self._exclusive:
                return list(await self._connection.execute_fetchall(statement, parameters))
        except (sqlite3.Error, ValueError) as error:  # ValueError: the connection is closed
            raise StorageError(f"the database cannot be read: {error}") from error

    def _record(self, statement: str, *parameters: Any) -> None:
        while len(self._buffer) >= self._buffer_rows_max:
            self._buffer.popleft()
            self.lost_rows += 1
        self._buffer.append((statement, parameters))
        self._wake.set()

    async def _write_forever(self) -> None:
        pruned_at = time.monotonic()
        while not self._closing:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout=_PRUNE_EVERY_S)
            self._wake.clear()
            if time.monotonic() - pruned_at >= _PRUNE_EVERY_S:
                pruned_at = time.monotonic()
                self.prune()
            if not await self._write_buffer() and not self._closing:
                await self._pause()

    async def _pause(self) -> None:
        """Wait before the next attempt; closing cuts it short, new rows do not."""
        waited_until = time.monotonic() + self._retry_s
        while not self._closing and (left := waited_until - time.monotonic()) > 0:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout=left)
        self._wake.set()

    async def _write_buffer(self) -> bool:
        """Write the buffer in one transaction; what cannot be written stays in it."""
        async with self._exclusive:
            batch = list(self._buffer)
            self._buffer.clear()
            try:
                await self._write(batch)
            except _ROW_REFUSED:
                # One bad row must not hold the others back for ever: each on its own.
                for at, row in enumerate(batch):
                    try:
                        await self._write([row])
                    except _ROW_REFUSED as error:
                        self.lost_rows += 1
                        self._failed(error)
                    except (sqlite3.Error, ValueError) as error:
                        self._failed(error)
                        self._put_back(batch[at:])
                        return False
                return True
            except (sqlite3.Error, ValueError) as error:
                self._failed(error)
                self._put_back(batch)
                return False
            self.last_error = ""
        return True

    async def _write(self, rows: Sequence[_Row]) -> None:
        """Write some rows in one transaction, all or none."""
        if not rows:
            return
        connection = self._connection
        await connection.execute("BEGIN IMMEDIATE")
        try:
            for statement, group in groupby(rows, key=itemgetter(0)):
                await connection.executemany(statement, [parameters for _, parameters in group])
            await connection.execute("COMMIT")
        except BaseException:
            # A full disk ends the transaction by itself.
            if connection.in_transaction:
                await connection.execute("ROLLBACK")
            raise

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self.last_error = str(error)

    def _put_back(self, rows: Sequence[_Row]) -> None:
        """Return rows to the front of the buffer; the oldest go when it overflows."""
        room = self._buffer_rows_max - len(self._buffer)
        kept = rows[max(0, len(rows) - room) :]
        self.lost_rows += len(rows) - len(kept)
        self._buffer.extendleft(reversed(kept))


async def _connect(path: Path | str) -> aiosqlite.Connection:
    """Open, check and migrate a database.

    Raises:
        StorageError: it cannot be used; the message says what to do.
    """
    if str(path) != IN_MEMORY:
        path = await asyncio.to_thread(_with_folder, Path(path))
    connection: aiosqlite.Connection | None = None
    try:
        connection = await aiosqlite.connect(path, isolation_level=None)
        await connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        await migrate(connection)
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = NORMAL")
        # Migrating an up-to-date file writes nothing, so a read-only one shows itself here.
        await connection.execute("BEGIN IMMEDIATE")
        await connection.execute("ROLLBACK")
    except (sqlite3.Error, StorageError) as error:
        if connection is not None:
            await connection.close()
        raise StorageError(f"{path}: {_mend(error)}") from error
    return connection


def _with_folder(path: Path) -> Path:
    """Return the path without "~", its folder made."""
    try:
        path = path.expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise StorageError(
            f"{path}: its folder cannot be made ({error}): name a writable place in storage.path"
        ) from error
    return path


def _mend(error: sqlite3.Error | StorageError) -> str:
    """Return what is wrong with a database and what to do about it."""
    text = str(error)
    if isinstance(error, StorageError):
        return text
    if "not a database" in text or "malformed" in text:
        return f"{text}: move it away, edgebox makes a new one"
    if "locked" in text:
        return f"{text}: does another edgebox use it? Stop it, or name another file in storage.path"
    return f"{text}: is it writable, and is there room? storage.path names the file"


def _judgement(row: Sequence[Any]) -> Judgement:
    _, kind, accuracy, error, source, pictures, measured_at_ms, set_aside, details = row
    return Judgement(
        kind=kind,
        accuracy=accuracy,
        error=error,
        source=source,
        pictures=pictures,
        measured_at_ms=measured_at_ms,
        set_aside=set_aside,
        details=orjson.loads(details),
    )


def _minute(row: Sequence[Any]) -> CameraMinute:
    camera, minute_ms, captured, accepted, on_time, late, *rest = row
    dropped, latency, mean_px, variants, mismatches = rest
    return CameraMinute(
        camera=CameraId(camera),
        minute_ms=minute_ms,
        captured=captured,
        accepted=accepted,
        on_time=on_time,
        late=late,
        dropped=orjson.loads(dropped),
        latency_ms=orjson.loads(latency),
        mean_px=mean_px,
        variants=orjson.loads(variants),
        mismatches=mismatches,
    )


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
