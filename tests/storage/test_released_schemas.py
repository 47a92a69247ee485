"""Upgrades from every version there was, with databases that these versions wrote; and rollback."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import orjson
import pytest

from edgebox.domain.model_family import FamilyName
from edgebox.domain.requests import CameraId
from edgebox.storage.connecting import connect
from edgebox.storage.database import Storage
from edgebox.storage.levels import HOUR, MINUTE
from edgebox.storage.periods import BOX, Period
from edgebox.storage.schema import MIGRATIONS, ForeignDatabaseError, migrate
from edgebox.storage.serving_database import connect_to_serve
from tests.storage.released import build, dump, released

VERSIONS = sorted(released())
NEVER_RELEASED = {5}
"""It came together with the next one."""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def file(version: int, tmp_path: Path) -> Path:
    path = tmp_path / "edgebox.sqlite3"
    build(version, path)
    return path


def rows(file: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def content(file: Path) -> bytes:
    return file.read_bytes()


def schema(file: Path) -> dict[str, Any]:
    """Return the columns of every table, and the indices."""
    tables = [name for (name,) in rows(file, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: (
            rows(file, f"PRAGMA table_info({name})"),
            sorted(index[1] for index in rows(file, f"PRAGMA index_list({name})")),
        )
        for name in tables
        if not name.startswith("sqlite_")
    }


def test_every_version_is_here_before_the_next_is_made() -> None:
    assert set(range(1, len(MIGRATIONS))) <= {*VERSIONS, *NEVER_RELEASED}


async def test_a_released_migration_is_never_changed(
    version: int, file: Path, tmp_path: Path
) -> None:
    async with aiosqlite.connect(tmp_path / "today.sqlite3", isolation_level=None) as today:
        await migrate(today, MIGRATIONS[:version])
    assert schema(tmp_path / "today.sqlite3") == schema(file)


async def test_a_box_serves_with_a_database_of_any_version(file: Path, tmp_path: Path) -> None:
    served = await connect_to_serve(file)
    await served.connection.close()
    assert (served.not_kept, served.damage) == ("", "")
    await (await connect(tmp_path / "new.sqlite3")).close()
    assert schema(file) == schema(tmp_path / "new.sqlite3")
    assert rows(file, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert rows(file, "PRAGMA integrity_check") == [("ok",)]


async def test_nothing_of_any_version_is_lost(version: int, file: Path) -> None:
    profiles = rows(file, "SELECT fingerprint, quantiles_ns FROM profiles ORDER BY 1, 2")
    cameras = rows(file, "SELECT camera, hello FROM cameras ORDER BY 1")
    events = rows(file, "SELECT at_ms, level, camera, text FROM events ORDER BY id")
    kept = ("captured", "accepted", "on_time", "late")
    sums = ", ".join(f"sum({name})" for name in kept)
    if version < 3:
        minutes = rows(file, f"SELECT camera, {sums} FROM metrics_minute GROUP BY 1 ORDER BY 1")
    else:
        minutes = rows(
            file,
            f"SELECT camera, {sums} FROM history_minute JOIN history_names ON name = id"
            " GROUP BY 1 ORDER BY 1",
        )
    set_for = {
        camera: orjson.loads(overrides)
        for camera, overrides in (
            rows(file, "SELECT camera, overrides FROM cameras") if version >= 3 else []
        )
    }
    storage = await Storage.open(file)
    try:
        known = {camera.camera: camera for camera in await storage.cameras()}
        assert sorted(known) == [camera for camera, _ in cameras]
        for camera, settings in set_for.items():
            assert known[camera].overrides == settings
        loaded = [await storage.load_profiles(found) for found in {row[0] for row in profiles}]
        assert sum(len(each.quantiles_ns) for found in loaded for each in found) == len(profiles)
        stored = [(e.at_ms, e.level, e.camera, e.text) for e in await storage.events(1000)]
        assert sorted(stored) == sorted(events)
        of = {camera: await storage.history.periods(MINUTE, CameraId(camera)) for camera in known}
        for camera, *counts in minutes:
            if camera in of:
                found = of[camera].values()
                assert [sum(row[name] for row in found) for name in kept] == counts
        assert await storage.history.periods(HOUR, BOX)
        if version >= 4:
            assert len(await storage.load_accuracy_reports(FamilyName("street"), "c")) == 1
        if version >= 12:
            assert [camera for camera, _ in await storage.sources.load()] == ["yard"]
        # And what comes from now on lies beside it.
        storage.history.record_minutes({29_999_999: {CameraId("new"): Period(60_000)}})
        assert await storage.flush()
        assert await storage.history.periods(MINUTE, CameraId("new"))
    finally:
        await storage.close()


async def test_an_upgrade_that_is_interrupted_goes_on(version: int, file: Path) -> None:
    """Each step is one transaction; here the power goes after each of them."""
    for number in range(version, len(MIGRATIONS) + 1):
        async with aiosqlite.connect(file, isolation_level=None) as connection:
            await migrate(connection, MIGRATIONS[:number])
        assert rows(file, "PRAGMA user_version") == [(number,)]
    await (await connect(file)).close()


@pytest.mark.parametrize("version", VERSIONS[1:])
async def test_an_older_edgebox_leaves_a_newer_database_as_it_is(
    version: int, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(file)
    async with aiosqlite.connect(file, isolation_level=None) as connection:
        with pytest.raises(ForeignDatabaseError, match=r"newer edgebox .*edgebox restore"):
            await migrate(connection, MIGRATIONS[: version - 1])
    assert content(file) == before


def test_a_dump_is_what_it_is_made_of(version: int, file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        assert dump(connection) == released()[version].read_text("utf-8")
