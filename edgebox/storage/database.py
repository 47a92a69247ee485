"""The SQLite file: profiles, cameras, events and, in `history`, metrics.

Recording never waits and never raises (`writer`). Age and size are bounded
(`retention`), checked once a minute and once an hour.
"""

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aiosqlite
import orjson

from edgebox.domain.core_factors import MeasuredCoreFactor
from edgebox.domain.errors import StorageError
from edgebox.domain.interference import MeasuredInterference
from edgebox.domain.model_family import (
    QUANTILES,
    AccuracyReport,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    VariantName,
)
from edgebox.domain.requests import CameraId
from edgebox.storage.box_lock import BoxLock, lock_for_box
from edgebox.storage.cascade_evidence import CascadeEvidenceRows
from edgebox.storage.connecting import IN_MEMORY, connect, connect_seconds, file_at
from edgebox.storage.damage import sound
from edgebox.storage.fleet_setting_rows import FleetSettingRows
from edgebox.storage.history import History
from edgebox.storage.learned_times import LearnedRows
from edgebox.storage.retention import (
    EVENTS_MAX,
    EVENTS_SLACK,
    FEWER_EVENTS,
    Limits,
    Retention,
)
from edgebox.storage.row_readers import (
    accuracy_report_of,
    camera_of,
    core_factor_of,
    interference_of,
    profiled_of,
)
from edgebox.storage.rows import NEVER_SEEN_MS, CameraRecord, Level, StorageSizes, StoredEvent
from edgebox.storage.serving_database import Served, connect_to_serve, replaced
from edgebox.storage.source_rows import SourceRows
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.storage.writer import Writer

__all__ = ["IN_MEMORY", "Limits", "Storage"]

_CAMERAS = "SELECT camera, hello, first_seen_ms, last_seen_ms, overrides FROM cameras"
_TIDY_PERIOD_S = 60.0
_FORGET_EVERY_TIDIES = 60


class Storage:
    """An open database; made by `Storage.open`."""

    def __init__(
        self, writer: Writer, seconds: Writer, limits: Limits, now_ms: Callable[[], int]
    ) -> None:
        """Use `Storage.open`."""
        self._writer = writer
        self._seconds = seconds
        self._retention = Retention(writer, limits)
        self._now_ms = now_ms
        self._storage_error = ""
        """Why it is in memory although a file was configured."""
        self.damage = ""
        """What was done with a damaged file, at the start or since; empty: it was not damaged."""
        self._lock = BoxLock()
        self._tidying: asyncio.Task[None] | None = None
        self._events_recorded = 0
        self.history = History(writer, seconds, limits.second_minutes, now_ms)
        """Metrics by second, minute and hour."""
        self.learned = LearnedRows(writer, now_ms)
        """Execution times by application, and drift."""
        self.cascade_evidence = CascadeEvidenceRows(writer, now_ms)
        """What cameras' pictures said of their cascades."""
        self.fleet_settings = FleetSettingRows(writer)
        """Settings of cameras that the boxes of a fleet share."""
        self.sources = SourceRows(writer)
        """Cameras that were added for the box to fetch."""

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        limits: Limits | None = None,
        serving: bool = False,
        buffer_rows_max: int = 20_000,
        retry_s: float = 5.0,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> Self:
        """Open or create a database, start its writer and delete old rows.

        Args:
            path: the file, its folder made when missing; ":memory:" keeps everything in memory.
            limits: bounds on age and size; None: nothing is deleted, for commands that only read
                the database of a box.
            serving: this is a box, the only one with this file for as long as it is open
                (`box_lock`). Open another one in its place if the file cannot be used
                (`serving_database`); `last_error` says where nothing is stored then, `damage` what
                became of a damaged file.
            buffer_rows_max: rows that may wait for the disk.
            retry_s: pause after a failed write.
            now_ms: the wall clock, in Unix milliseconds.

        Raises:
            DatabaseInUseError: another box serves with the file.
            StorageError: the file cannot be used; the message says what to do.
        """
        lock = BoxLock()
        if serving and str(path) != IN_MEMORY:
            lock = await asyncio.to_thread(lock_for_box, path)
        try:
            served = await connect_to_serve(path) if serving else Served(await connect(path))
        except BaseException:
            lock.close()
            raise
        connection = served.connection
        file = None if served.not_kept or str(path) == IN_MEMORY else file_at(path)
        writer, seconds = (
            Writer(each, file=of, buffer_rows_max=buffer_rows_max, retry_s=retry_s)
            for each, of in ((connection, file), (await connect_seconds(), None))
        )
        storage = cls(writer, seconds, limits or Limits(), now_ms)
        storage._storage_error = served.not_kept
        storage.damage = served.damage
        storage._lock = lock
        if serving and file is not None:
            writer.replace = functools.partial(storage._replace, file)
        writer.start()
        seconds.start()
        if limits is not None:
            storage._tidying = asyncio.create_task(storage._tidy_forever(), name="storage-tidy")
        return storage

    async def _replace(self, file: Path, reason: str) -> tuple[aiosqlite.Connection, Path | None]:
        served = await replaced(file, reason)
        self.damage, self._storage_error = served.damage, served.not_kept
        return served.connection, None if served.not_kept else file

    async def close(self) -> None:
        """Write buffered rows, with one retry, and close the file. Idempotent."""
        if self._tidying is not None:
            self._tidying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._tidying
        await self._writer.close()
        await self._seconds.close()
        self._lock.close()

    @property
    def unlocked(self) -> str:
        """Why another box could serve with the same file unnoticed; empty: none can."""
        return self._lock.problem

    @property
    def failures(self) -> int:
        """Write attempts that failed since the start."""
        return self._writer.failures

    @property
    def last_error(self) -> str:
        """Why recorded rows are not stored at present; empty: they are."""
        return self._storage_error or self._writer.last_error

    @property
    def lost_rows(self) -> int:
        """Lost rows: the buffer overflowed, or the database refused them."""
        return self._writer.lost_rows

    @property
    def waiting_rows(self) -> int:
        """Rows recorded and not yet written."""
        return self._writer.waiting_rows

    # Recording: into the buffer, at once.

    def save_profiles(self, fingerprint: str, profiles: Sequence[LatencyProfile]) -> None:
        """Replace the profiles of these variants and executors under a fingerprint."""
        now_ms = self._now_ms()
        for profile in profiles:
            key = (fingerprint, profile.executor, profile.variant)
            self._writer.record(
                "DELETE FROM profiles WHERE fingerprint = ? AND executor = ? AND variant = ?", *key
            )
            for batch_size, quantiles in profile.quantiles_ns.items():
                self._writer.record(
                    "INSERT OR REPLACE INTO profiles (fingerprint, executor, variant, batch_size,"
                    " quantiles_ns, measured_at_ms) VALUES (?, ?, ?, ?, ?, ?)",
                    *key, batch_size, _json(quantiles), now_ms,
                )  # fmt: skip

    def save_interference(
        self,
        fingerprint: str,
        executor: ExecutorId,
        neighbours: str,
        found: Sequence[MeasuredInterference],
    ) -> None:
        """Replace the interference of these variants on an executor.

        `neighbours` names the other executors.
        """
        now_ms = self._now_ms()
        for variant in {each.variant for each in found}:
            self._writer.record(
                "DELETE FROM interference WHERE fingerprint = ? AND executor = ? AND variant = ?",
                fingerprint, executor, variant,
            )  # fmt: skip
        for each in found:
            self._writer.record(
                "INSERT OR REPLACE INTO interference (fingerprint, executor, variant, beside,"
                " others, neighbours, factor, measured_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                fingerprint, executor, each.variant, each.beside, each.others, neighbours,
                each.factor, now_ms,
            )  # fmt: skip

    def save_core_factors(
        self, fingerprint: str, executor: ExecutorId, found: Sequence[MeasuredCoreFactor]
    ) -> None:
        """Replace the factors of thread counts of these variants on an executor."""
        now_ms = self._now_ms()
        for variant in {each.variant for each in found}:
            self._writer.record(
                "DELETE FROM core_factors WHERE fingerprint = ? AND executor = ? AND variant = ?",
                fingerprint, executor, variant,
            )  # fmt: skip
        for each in found:
            self._writer.record(
                "INSERT OR REPLACE INTO core_factors (fingerprint, executor, variant, batch_size,"
                " threads, factor, measured_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
                fingerprint, executor, each.variant, each.batch_size, each.threads, each.factor,
                now_ms,
            )  # fmt: skip

    def save_accuracy_reports(
        self,
        family: FamilyName,
        content: str,
        accuracy_reports: Mapping[VariantName, AccuracyReport],
    ) -> None:
        """Replace the accuracy reports of a family; `content` is its files' checksum."""
        self._writer.record("DELETE FROM accuracy_reports WHERE family = ?", family)
        for variant, found in accuracy_reports.items():
            self._writer.record(
                "INSERT INTO accuracy_reports (family, variant, content, kind, accuracy, error,"
                " source, pictures, measured_at_ms, dominated, details)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                family, variant, content, found.kind, found.accuracy, found.error, found.source,
                found.pictures, found.measured_at_ms, found.dominated, _json(found.details),
            )  # fmt: skip

    def record_camera(self, camera: CameraId, hello: dict[str, Any]) -> None:
        """Record that a camera connected now, and its hello."""
        now_ms = self._now_ms()
        self._writer.record(
            "INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (camera) DO UPDATE SET hello = excluded.hello,"
            " first_seen_ms = iif(first_seen_ms = ?, excluded.first_seen_ms, first_seen_ms),"
            " last_seen_ms = excluded.last_seen_ms",
            camera, _json(hello), now_ms, now_ms, NEVER_SEEN_MS,
        )  # fmt: skip

    def record_overrides(self, camera: CameraId, overrides: dict[str, Any]) -> None:
        """Store the overrides of a camera that was here; those of others `fleet_settings` has."""
        self._writer.record(
            "UPDATE cameras SET overrides = ? WHERE camera = ?", _set(overrides), camera
        )

    def set_camera(self, camera: CameraId, overrides: dict[str, Any]) -> None:
        """Store the overrides of a camera, whether or not it was ever here."""
        self._writer.record(
            "INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides)"
            " VALUES (?, '{}', ?, ?, ?)"
            " ON CONFLICT (camera) DO UPDATE SET overrides = excluded.overrides",
            camera, NEVER_SEEN_MS, NEVER_SEEN_MS, _set(overrides),
        )  # fmt: skip

    def see_cameras(self, cameras: Iterable[CameraId]) -> None:
        """Record that cameras are connected now, so that they are not the first to be forgotten."""
        now_ms = self._now_ms()
        for camera in cameras:
            self._writer.record(
                "UPDATE cameras SET last_seen_ms = ? WHERE camera = ?", now_ms, camera
            )

    def forget_camera(self, camera: CameraId) -> None:
        """Delete a camera, its history, its events and what its cascade learned."""
        self.history.forget(camera)
        for table in ("cameras", "events", "cascade_evidence"):
            self._writer.record(f"DELETE FROM {table} WHERE camera = ?", camera)

    def record_event(self, level: Level, text: str, camera: CameraId | None = None) -> None:
        """Record an event at this instant."""
        self._writer.record(
            "INSERT INTO events (at_ms, level, camera, text) VALUES (?, ?, ?, ?)",
            self._now_ms(), level, camera, text,
        )  # fmt: skip
        # Between two checks more events than the limit may arrive.
        self._events_recorded += 1
        if self._events_recorded % EVENTS_SLACK == 0:
            self._writer.record(FEWER_EVENTS, EVENTS_MAX - EVENTS_SLACK)

    # Reading.

    async def load_profiles(self, fingerprint: str) -> list[LatencyProfile]:
        """Return the profiles measured under a fingerprint, by executor and variant.

        A profile with a damaged row is left out, so that it is measured again.
        """
        rows = await self._rows(
            "SELECT executor, variant, batch_size, quantiles_ns FROM profiles"
            " WHERE fingerprint = ? ORDER BY executor, variant, batch_size",
            fingerprint,
        )
        found: dict[tuple[str, str], dict[int, tuple[int, ...]]] = {}
        read = sound(rows, profiled_of, "profiles", 1)
        for on, batch_size, quantiles in read:
            # Profiles of a release with other quantiles must be measured again.
            if len(quantiles) == len(QUANTILES):
                found.setdefault(on, {})[batch_size] = quantiles
        damaged = Counter(row[:2] for row in rows) - Counter(on for on, _, _ in read)
        return [
            LatencyProfile(VariantName(on[1]), ExecutorId(on[0]), by_size)
            for on, by_size in found.items()
            if on not in damaged
        ]

    async def load_interference(
        self, fingerprint: str, executor: ExecutorId, neighbours: str
    ) -> list[MeasuredInterference]:
        """Return the interference that was measured with the same neighbours."""
        rows = await self._rows(
            "SELECT variant, beside, others, factor FROM interference"
            " WHERE fingerprint = ? AND executor = ? AND neighbours = ?",
            fingerprint, executor, neighbours,
        )  # fmt: skip
        return sound(rows, interference_of, "interference", 0)

    async def load_core_factors(
        self, fingerprint: str, executor: ExecutorId
    ) -> list[MeasuredCoreFactor]:
        """Return the factors of thread counts that were measured on an executor."""
        rows = await self._rows(
            "SELECT variant, batch_size, threads, factor FROM core_factors"
            " WHERE fingerprint = ? AND executor = ?",
            fingerprint, executor,
        )  # fmt: skip
        return sound(rows, core_factor_of, "factors of thread counts", 0)

    async def load_newest_profiles(self, ending: str) -> list[LatencyProfile]:
        """Return the latest profiles of fingerprints with this suffix."""
        rows = await self._rows(
            "SELECT fingerprint FROM profiles WHERE substr(fingerprint, -length(?1)) = ?1"
            " ORDER BY measured_at_ms DESC LIMIT 1",
            ending,
        )
        return await self.load_profiles(rows[0][0]) if rows else []

    async def load_accuracy_reports(
        self, family: FamilyName, content: str
    ) -> dict[VariantName, AccuracyReport]:
        """Return the accuracy reports of a family, if its files are unchanged."""
        rows = await self._rows(
            "SELECT variant, kind, accuracy, error, source, pictures, measured_at_ms, dominated,"
            " details FROM accuracy_reports WHERE family = ? AND content = ?",
            family, content,
        )  # fmt: skip
        return dict(sound(rows, accuracy_report_of, "accuracy reports of variants", 0))

    async def cameras(self) -> list[CameraRecord]:
        """Return all known cameras, the last seen first."""
        rows = await self._rows(f"{_CAMERAS} ORDER BY last_seen_ms DESC, camera")
        # There may be thousands, which take the event loop's time for tens of milliseconds.
        return await asyncio.to_thread(sound, rows, camera_of, "cameras", 0)

    async def camera(self, camera: CameraId) -> CameraRecord | None:
        """Return one camera; None: it is not known."""
        rows = await self._rows(f"{_CAMERAS} WHERE camera = ?", camera)
        return next(iter(sound(rows, camera_of, "cameras", 0)), None)

    async def events(
        self,
        count: int,
        *,
        before: int | None = None,
        camera: CameraId | None = None,
        level: Level | None = None,
    ) -> list[StoredEvent]:
        """Return the last `count` events, newest first.

        Args:
            count: largest number of events.
            before: only events older than the one with this id.
            camera: only events of this camera.
            level: only events of this level.
        """
        rows = await self._rows(
            "SELECT id, at_ms, level, text, camera FROM events WHERE id < coalesce(?1, id + 1)"
            " AND (?2 IS NULL OR camera = ?2) AND (?3 IS NULL OR level = ?3)"
            " ORDER BY id DESC LIMIT ?4",
            before, camera, level, count,
        )  # fmt: skip
        return [StoredEvent(*row) for row in rows]

    async def sizes(self) -> StorageSizes:
        """Return the size in bytes, and the rows of each table."""
        (pages,), (page_bytes,) = [
            (await self._rows(f"PRAGMA {name}"))[0] for name in ("page_count", "page_size")
        ]
        tables = await self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        counts = [
            (name, (await self._rows(f'SELECT count(*) FROM "{name}"'))[0][0])
            for (name,) in sorted(tables)
        ]
        return StorageSizes(pages * page_bytes, dict(counts))

    async def flush(self) -> bool:
        """Try to write all buffered rows now; return whether that succeeded."""
        await self._seconds.flush()
        return await self._writer.flush()

    async def catch_up(self) -> None:
        """Write all buffered rows before reading, unless the database cannot be written just now.

        Each attempt at a file that another program holds takes seconds, and reads queue behind it.
        """
        if not self._writer.last_error:
            await self._writer.flush()

    async def tidy(self, *, by_age: bool) -> None:
        """Delete rows above the size limit and, with `by_age`, old rows. Runs automatically.

        Raises:
            StorageError: the database cannot be written.
        """
        await self.history.forget_seconds()
        if by_age:
            await self._retention.forget_old(self._now_ms())
        await self._retention.fit()

    async def _tidy_forever(self) -> None:
        looks = 0
        while True:
            # The writer counts failures; the next run tries again.
            with contextlib.suppress(StorageError):
                await self.tidy(by_age=looks % _FORGET_EVERY_TIDIES == 0)
            looks += 1
            await asyncio.sleep(_TIDY_PERIOD_S)

    async def _rows(self, statement: str, *parameters: Any) -> list[Any]:
        (rows,) = await self._writer.read((statement, parameters))
        return rows


def _set(overrides: Mapping[str, Any]) -> str:
    """Return overrides as JSON, without those that are not set: `retention` asks for any."""
    return _json({name: value for name, value in overrides.items() if value is not None})


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
