"""A box starts whatever state its database is in, and says what is kept where."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from edgebox.domain.errors import StorageError
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import CameraId
from edgebox.storage import serving_database
from edgebox.storage.carrying_over import carry_over
from edgebox.storage.connecting import NoRoomError, connect
from edgebox.storage.database import IN_MEMORY, Limits, Storage
from edgebox.storage.periods import Period
from edgebox.storage.schema import APPENDED, tables_read_at_start
from edgebox.storage.writer import Writer
from tests.scheduling.scene import profile

CPU, GATE = ExecutorId("cpu/0"), CameraId("gate")


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """A database that knows a profile and a camera."""
    path = tmp_path / "box.sqlite3"
    storage = await Storage.open(path)
    storage.save_profiles("print", [profile(128)])
    storage.record_camera(CameraId("gate"), {"slo_ms": 100})
    await storage.close()
    return path


def content_of(file: Path) -> bytes:
    return file.read_bytes()


def replace_by(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def rename(file: Path, name: str) -> None:
    file.rename(file.with_name(name))


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


async def opened(path: Path | str) -> Storage:
    return await Storage.open(path, limits=Limits(), serving=True)


async def records(storage: Storage) -> bool:
    """Say whether what is recorded now is there after a flush."""
    storage.record_event("info", "here")
    assert await storage.flush()
    return [event.text for event in await storage.events(1)] == ["here"]


def overwrite_a_table(path: Path, table: str = "cameras") -> None:
    with sqlite3.connect(path) as raw:
        (page,) = raw.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
        ).fetchone()
    raw.close()
    overwrite_page(path, page)


def overwrite_page(path: Path, page: int) -> None:
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(content)


def overwrite_a_leaf(path: Path, table: str, text: bytes) -> None:
    """Overwrite a page of a table, which is not its first one, that has a text."""
    with sqlite3.connect(path) as raw:
        (root,) = raw.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
        ).fetchone()
    raw.close()
    content = path.read_bytes()
    pages = [content[at : at + 4096] for at in range(0, len(content), 4096)]
    overwrite_page(path, next(n for n, page in enumerate(pages, 1) if text in page and n != root))


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def drop_a_table(path: Path, table: str = "profiles") -> None:
    with sqlite3.connect(path) as raw:
        raw.execute(f"DROP TABLE {table}")
    raw.close()


def text_that_is_no_utf8(path: Path) -> None:
    """SQLite quotes the schema in its error, whatever is in it."""
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("UPDATE sqlite_schema SET name = cast(x'ff8041' AS TEXT), sql = 'CREATE ?'")
    raw.close()


def no_version(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 0")
    raw.close()


@pytest.mark.parametrize(
    "damage", [overwrite_a_table, cut_in_half, drop_a_table, text_that_is_no_utf8, no_version]
)
async def test_a_damaged_database_is_set_aside_and_a_new_one_is_kept(
    file: Path, damage: Callable[[Path], None]
) -> None:
    damage(file)
    broken_bytes = len(content_of(file))
    storage = await opened(file)
    assert storage.last_error == ""
    assert f"the database {file} is damaged (" in storage.damage
    aside = next(file.parent / each for each in names_in(file.parent) if "corrupt" in each)
    assert aside.name in storage.damage
    assert len(content_of(aside)) == broken_bytes
    assert await records(storage)
    await storage.close()
    again = await opened(file)
    assert again.damage == ""
    assert [event.text for event in await again.events(1)] == ["here"]
    await again.close()


async def box_with_history(path: Path) -> None:
    storage = await opened(path)
    storage.history.record_minutes({29_000_000: {GATE: Period(captured=1)}})
    storage.record_overrides(GATE, {"slo_ms": 300})
    storage.record_event("info", "before")
    storage.fleet_settings.record((GATE, "slo", 5, "a", b'{"slo_ms":300}', True))
    await storage.close()


def met_by_writing(storage: Storage) -> Awaitable[object]:
    storage.history.record_minutes({29_000_001: {GATE: Period(captured=1)}})
    return storage.flush()


def met_by_reading(storage: Storage) -> Awaitable[object]:
    return storage.history.chart(GATE, 29_000_000 * 60_000, 29_000_100 * 60_000, 100)


def met_by_tidying(storage: Storage) -> Awaitable[object]:
    async def tidy() -> None:
        with contextlib.suppress(StorageError):
            await storage.tidy(by_age=True)

    return tidy()


@pytest.mark.parametrize("damage", [overwrite_a_table, drop_a_table])
@pytest.mark.parametrize("meet", [met_by_writing, met_by_reading, met_by_tidying])
async def test_damage_that_shows_while_the_box_runs_is_mended_then(
    file: Path,
    damage: Callable[[Path, str], None],
    meet: Callable[[Storage], Awaitable[object]],
) -> None:
    await box_with_history(file)
    damage(file, "history_minute")
    storage = await Storage.open(file, serving=True)
    assert storage.damage == ""  # it reads no history at its start
    storage.record_overrides(GATE, {"slo_ms": 700})
    storage.sources.record(CameraId("door"), {"url": "rtsp://x/y"})
    await meet(storage)
    assert f"the database {file} is damaged (" in storage.damage
    assert await records(storage)
    assert (storage.last_error, storage.waiting_rows, storage.lost_rows) == ("", 0, 0)
    await storage.close()
    again = await opened(file)
    assert again.damage == ""
    (camera,) = await again.cameras()
    assert (camera.camera, camera.overrides) == ("gate", {"slo_ms": 700})
    assert await again.sources.load() == [("door", {"url": "rtsp://x/y"})]
    assert await again.load_profiles("print") == [profile(128)]
    assert [event.text for event in await again.events(9)] == ["here", "before"]
    again.history.record_minutes({29_000_002: {GATE: Period(captured=1)}})
    assert await again.flush()
    await again.close()


async def test_a_box_that_stops_while_its_file_is_replaced_keeps_what_it_recorded(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await box_with_history(file)
    overwrite_a_table(file, "history_minute")
    storage = await Storage.open(file, serving=True)
    begun, may_go_on = asyncio.Event(), asyncio.Event()
    replaced = serving_database.replaced

    async def slowly(path: Path | str, reason: str) -> serving_database.Served:
        begun.set()
        await may_go_on.wait()
        return await replaced(path, reason)

    monkeypatch.setattr("edgebox.storage.database.replaced", slowly)

    async def tidy() -> None:
        await met_by_reading(storage)

    storage._tidying = asyncio.create_task(tidy())
    await begun.wait()
    storage.record_event("info", "last")
    closing = asyncio.create_task(storage.close())
    await asyncio.sleep(0)
    may_go_on.set()
    await closing
    assert storage.lost_rows == 0
    again = await opened(file)
    assert [event.text for event in await again.events(1)] == ["last"]
    await again.close()


async def test_a_disk_that_damages_file_after_file_is_not_filled_with_them(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = await Storage.open(file, serving=True)

    async def fail(writer: Writer, rows: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(Writer, "_write", fail)
    for _ in range(3):
        storage.record_event("info", "here")
        assert not await storage.flush()
    assert sum("corrupt" in name for name in names_in(file.parent)) == 1
    assert storage.last_error == "database disk image is malformed"
    await storage.close()


async def test_a_file_that_somebody_put_there_is_not_set_aside(file: Path) -> None:
    storage = await Storage.open(file, serving=True)
    replace_by(file.with_name("other"), b"somebody else's" * 1000)
    file.with_name("other").replace(file)
    with pytest.raises(StorageError):
        await storage._writer.execute("SELECT * FROM no_such_table")
    assert not any("corrupt" in name for name in names_in(file.parent))
    await storage.close()


async def test_what_lies_before_and_behind_the_damage_is_kept(file: Path) -> None:
    storage = await opened(file)
    for number in range(400):
        storage.record_camera(CameraId(f"c{number:03}"), {"app": "x" * 100})
    storage.sources.record(CameraId("door"), {"url": "rtsp://x/y"})
    await storage.close()
    overwrite_a_leaf(file, "cameras", b"c201{")
    storage = await opened(file)
    assert "nor all that was in the tables cameras" in storage.damage
    kept = {each.camera for each in await storage.cameras()}
    assert {"c000", "c150", "c250", "c399", "gate"} <= kept
    assert len(kept) > 300
    assert await storage.sources.load() == [("door", {"url": "rtsp://x/y"})]
    await storage.close()


async def test_a_box_reads_each_table_at_its_start_but_history_and_events(file: Path) -> None:
    await box_with_history(file)
    with sqlite3.connect(file) as raw:
        tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_schema")}
    raw.close()
    known = set(tables_read_at_start())
    assert {t for t in tables if not t.startswith(("sqlite_", "events_"))} == known | {*APPENDED}
    overwrite_a_table(file, "fleet_settings")
    storage = await opened(file)
    assert "damaged" in storage.damage
    assert await storage.fleet_settings.load() == []
    (camera,) = await storage.cameras()
    assert camera.overrides == {"slo_ms": 300}
    await storage.close()


async def test_the_log_goes_with_its_database(file: Path) -> None:
    drop_a_table(file)
    for part in ("-wal", "-shm"):
        file.with_name(file.name + part).write_bytes(b"")
    storage = await opened(file)
    aside = [name for name in names_in(file.parent) if "corrupt" in name]
    assert len({name.split("-wal")[0].split("-shm")[0] for name in aside}) == 1
    await storage.close()


async def test_two_that_are_set_aside_within_a_second_are_both_kept(file: Path) -> None:
    for _ in range(2):
        drop_a_table(file)
        await (await opened(file)).close()
    assert sum("corrupt" in name for name in names_in(file.parent)) == 2


async def test_where_no_new_one_can_be_made_it_serves_from_memory(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_a_table(file)

    def refused(path: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(serving_database, "rename_damaged", refused)
    storage = await opened(file)
    assert "no new one can be made ([Errno 13] Permission denied)" in storage.last_error
    assert await records(storage)
    await storage.close()


async def test_a_killed_process_leaves_the_damaged_file_until_the_new_one_is_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overwrite_a_table(file, "history_minute")
    before = content_of(file)
    with monkeypatch.context() as killing:

        async def killed(*_: object, events: bool) -> list[str]:
            raise KeyboardInterrupt

        killing.setattr(serving_database, "carry_over", killed)
        with pytest.raises(KeyboardInterrupt):
            await serving_database.replaced(file, "damage")
    assert content_of(file) == before
    served = await serving_database.replaced(file, "damage")
    await served.connection.close()
    assert "box.sqlite3.unfinished" not in names_in(file.parent)
    rename(file, "box.sqlite3.unfinished")  # killed before the last step
    storage = await opened(file)
    assert [each.camera for each in await storage.cameras()] == ["gate"]
    await storage.close()


async def test_on_a_full_disk_the_damaged_file_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_a_table(file)
    full = [sqlite3.OperationalError("database or disk is full")]

    async def carry(*to: Any, events: bool) -> list[str]:
        if full:
            raise full.pop()
        return await carry_over(*to, events=events)

    monkeypatch.setattr(serving_database, "carry_over", carry)
    storage = await opened(file)
    assert "no new one can be made (database or disk is full): make room" in storage.last_error
    assert [each.camera for each in await storage.cameras()] == ["gate"]
    assert not any("corrupt" in n or "unfinished" in n for n in names_in(file.parent))
    await storage.close()


async def test_a_new_file_that_cannot_be_opened_does_not_hide_the_old_ones_name(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_a_table(file)

    async def fail(path: Path | str) -> aiosqlite.Connection:
        if path == file and any("corrupt" in name for name in names_in(file.parent)):
            raise NoRoomError("full")
        return await connect(path)

    monkeypatch.setattr(serving_database, "connect", fail)
    storage = await opened(file)
    (aside,) = (name for name in names_in(file.parent) if "corrupt" in name)
    assert f"it is now {aside}, and the new one fails (full): make room" in storage.last_error
    await storage.close()


@pytest.mark.parametrize("content", [b"Dear reader, " * 1000, b"\x00" * 8192])
async def test_what_is_no_database_is_left_as_it_is(file: Path, content: bytes) -> None:
    replace_by(file, content)
    storage = await opened(file)
    assert "it is left as it is; move it away" in storage.last_error
    assert await records(storage)
    await storage.close()
    assert content_of(file) == content


async def test_a_locked_database_is_copied_into_memory(file: Path) -> None:
    await box_with_history(file)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    storage = await opened(file)
    assert "database is locked: does another edgebox use it?" in storage.last_error
    assert await storage.load_profiles("print") == [profile(128)]
    assert [each.camera for each in await storage.cameras()] == ["gate"]
    assert await storage.fleet_settings.load() == [(GATE, "slo", 5, "a", b'{"slo_ms":300}', True)]
    assert await records(storage)
    await storage.close()
    other.execute("ROLLBACK")
    other.close()


async def test_a_read_only_database_is_copied_into_memory(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The superuser, who may run this, can write everything: SQLite itself refuses here."""
    connect = sqlite3.connect

    def read_only(path: Path | str, **options: object) -> sqlite3.Connection:
        if path == file:
            return connect(f"file:{path}?mode=ro", **{**options, "uri": True})  # type: ignore[call-overload,no-any-return]
        return connect(path, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr("edgebox.storage.connecting.sqlite3.connect", read_only)
    storage = await opened(file)
    assert "readonly" in storage.last_error
    assert await storage.load_profiles("print") == [profile(128)]
    assert await records(storage)
    await storage.close()


async def test_another_programs_database_is_a_wrong_setting(tmp_path: Path) -> None:
    path = tmp_path / "box.sqlite3"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE photos (name)")
    raw.close()
    with pytest.raises(StorageError, match="another program's database"):
        await opened(path)
    assert names_in(tmp_path) == [path.name, f"{path.name}.lock"]


async def test_commands_that_only_look_something_up_set_nothing_aside(file: Path) -> None:
    no_version(file)
    with pytest.raises(StorageError, match="move it away, edgebox makes a new one"):
        await Storage.open(file)
    assert names_in(file.parent) == [file.name]


async def test_memory_needs_nothing(tmp_path: Path) -> None:
    storage = await opened(IN_MEMORY)
    assert (storage.last_error, storage.damage) == ("", "")
    await storage.close()
