"""Migrations: applied in order, once, each whole or not at all."""

import json
import sqlite3
from pathlib import Path

import aiosqlite
import numpy as np
import pytest

from edgebox.domain.latency_histogram import HISTORY_BUCKETS
from edgebox.domain.requests import CameraId
from edgebox.storage.database import Storage
from edgebox.storage.levels import HOUR, MINUTE
from edgebox.storage.packing import packed
from edgebox.storage.periods import BOX, CODES, Period
from edgebox.storage.schema import MIGRATIONS, migrate

ONE = ("CREATE TABLE a (x)", "INSERT INTO a VALUES (1)")
TWO = ("CREATE TABLE b (x)", "INSERT INTO b SELECT x + 1 FROM a")
BROKEN = ("CREATE TABLE c (x)", "INSERT INTO nowhere VALUES (1)")


async def contents(path: Path) -> tuple[int, list[str]]:
    with sqlite3.connect(path) as raw:
        version = raw.execute("PRAGMA user_version").fetchone()[0]
        names = raw.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    return version, [name for (name,) in names]


async def test_only_missing_migrations_run(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, (ONE,))
        assert await contents(path) == (1, ["a"])
        await migrate(connection, (ONE, TWO))
        await migrate(connection, (ONE, TWO))
        assert await contents(path) == (2, ["a", "b"])
        assert [tuple(r) for r in await connection.execute_fetchall("SELECT x FROM b")] == [(2,)]


async def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            await migrate(connection, (ONE, BROKEN))
    assert await contents(path) == (1, ["a"])


async def test_cameras_of_the_second_version_have_nothing_set(tmp_path: Path) -> None:
    async with aiosqlite.connect(tmp_path / "m.sqlite3", isolation_level=None) as connection:
        await migrate(connection, MIGRATIONS[:2])
        await connection.execute("INSERT INTO cameras VALUES ('gate', '{}', 1, 2)")
        await migrate(connection)
        rows = await connection.execute_fetchall("SELECT camera, overrides FROM cameras")
    assert [tuple(row) for row in rows] == [("gate", "{}")]


async def test_minutes_of_earlier_releases_become_history(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    latency = {
        "p50": {"network": 20.0, "queue": 3.0, "inference": 8.0, "return": 1.0, "total": 33.0},
        "p99": {"network": 60.0, "queue": 9.0, "inference": 12.0, "return": 2.0, "total": 80.0},
    }
    # The second was begun late, after a restart; the last is of the next hour.
    rows = [
        ("gate", 60_000, 9, 8, 7, 1, {"sender": 1}, latency, 300.0, {"a": 8}),
        ("gate", 61_500, 5, 5, 5, 0, {}, latency, 200.0, {"a": 1, "b": 4}),
        ("yard", 60_000, 3, 0, 0, 0, {"queue": 3}, {}, None, {}),
        ("gate", 3_600_000, 600, 600, 600, 0, {}, latency, 100.0, {"b": 600}),
    ]
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, MIGRATIONS[:1])
        for *counts, dropped, parts, mean_px, variants in rows:
            texts = (json.dumps(dropped), json.dumps(parts), mean_px, json.dumps(variants))
            await connection.execute(
                f"INSERT INTO metrics_minute VALUES ({', '.join('?' * 10)})", (*counts, *texts)
            )
    storage = await Storage.open(path)
    minutes = await storage.history.periods(MINUTE, CameraId("gate"))
    hours = await storage.history.periods(HOUR, CameraId("gate"))
    box = await storage.history.periods(HOUR, BOX)
    chart = json.loads(await storage.history.chart(CameraId("gate"), 0, 7_200_000, 300))
    await storage.close()
    assert {at: row["captured"] for at, row in minutes.items()} == {1: 14, 60: 600}
    assert {at: row["captured"] for at, row in hours.items()} == {0: 14, 1: 600}
    assert {at: row["captured"] for at, row in box.items()} == {0: 17, 1: 600}
    assert (box[0]["dropped_sender"], box[0]["dropped_queue"]) == (1, 3)
    assert (box[0]["covered_ms"], box[0]["connected_ms"]) == (60_000, 120_000)
    assert json.loads(minutes[1]["variants"]) == {"a": 9, "b": 4}
    assert minutes[1]["width_px_sum"] == 8 * 300 + 5 * 200
    at = chart["at_ms"].index(3_600_000)
    for name, quantiles in latency.items():
        for part, ms in quantiles.items():
            read_ms = chart["latency_ms"][name][part][at]
            assert abs(read_ms - ms) <= HISTORY_BUCKETS.relative_error * ms + 0.01


async def test_history_of_earlier_releases_has_no_zones(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    before = next(
        number
        for number, statements in enumerate(MIGRATIONS)
        if any("ADD COLUMN tracked" in statement for statement in statements)
    )
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, MIGRATIONS[:before])
        inserted = await connection.execute("INSERT INTO history_names (camera) VALUES ('gate')")
        names = [
            str(row[1])
            for row in await connection.execute_fetchall("PRAGMA table_info(history_minute)")
        ]
        row: dict[str, object] = dict.fromkeys(names, 1)
        row |= {"variants": "{}", "latencies": packed(np.zeros(CODES, int))}
        row["name"] = inserted.lastrowid
        await connection.execute(
            f"INSERT INTO history_minute ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
            tuple(row.values()),
        )
    storage = await Storage.open(path)
    known = Period(60_000)
    known.tracked["in/entry"] = 2
    storage.history.record_minutes({1: {CameraId("gate"): known}})
    await storage.flush()
    minutes = await storage.history.periods(MINUTE, CameraId("gate"))
    await storage.close()
    assert minutes[1]["captured"] == 1
    assert json.loads(minutes[1]["tracked"]) == {"in/entry": 2}
