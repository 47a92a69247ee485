"""Migrations: applied in order, once, each whole or not at all."""

import sqlite3
from pathlib import Path

import aiosqlite
import pytest

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


async def test_minutes_of_the_first_version_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, MIGRATIONS[:1])
        await connection.execute(
            "INSERT INTO metrics_minute VALUES ('gate', 60000, 9, 9, 8, 1, '{}', '{}', NULL, '{}')"
        )
        await migrate(connection)
        rows = await connection.execute_fetchall(
            "SELECT camera, on_time, mismatches FROM metrics_minute"
        )
    assert [tuple(row) for row in rows] == [("gate", 8, 0)]
