"""A disk that is full at the start, and a file that is taken away while a box writes to it."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from edgebox.domain.errors import StorageError
from edgebox.domain.model_family import QUANTILES, ExecutorId, LatencyProfile, VariantName
from edgebox.domain.requests import CameraId
from edgebox.storage import connecting
from edgebox.storage.database import Storage
from edgebox.storage.schema import migrate
from edgebox.storage.writer import Writer

PROFILE = LatencyProfile(
    VariantName("gate-32"), ExecutorId("cpu/0"), {1: tuple(range(10, 10 + len(QUANTILES)))}
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "box.sqlite3"


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, said: str, free_bytes: int) -> None:
    """Have SQLite and the disk say what they say when there is no room for another page."""

    async def refused(connection: aiosqlite.Connection) -> None:
        ((_, _, file),) = await connection.execute_fetchall("PRAGMA database_list")
        if file:
            raise sqlite3.OperationalError(said)
        await migrate(connection)

    monkeypatch.setattr(connecting, "migrate", refused)
    monkeypatch.setattr(connecting, "has_room", lambda folder: free_bytes > 0)


@pytest.mark.parametrize(
    ("said", "free_bytes"), [("database or disk is full", 1 << 30), ("disk I/O error", 0)]
)
async def test_a_box_goes_on_with_what_the_file_knows(
    file: Path, monkeypatch: pytest.MonkeyPatch, said: str, free_bytes: int
) -> None:
    before = await Storage.open(file)
    before.save_profiles("print", [PROFILE])
    before.record_camera(CameraId("gate"), {"slo_ms": 100})
    before.record_overrides(CameraId("gate"), {"slo_ms": 200})
    before.sources.record(CameraId("yard"), {"url": "rtsp://10.0.0.7/stream"})
    await before.close()
    with monkeypatch.context() as full:
        fill_the_disk(full, said, free_bytes)
        box = await Storage.open(file, serving=True)
    assert await box.load_profiles("print") == [PROFILE]
    (camera,) = await box.cameras()
    assert (camera.camera, camera.overrides) == ("gate", {"slo_ms": 200})
    assert await box.sources.load() == [("yard", {"url": "rtsp://10.0.0.7/stream"})]
    box.record_event("info", "here")
    assert await box.flush()
    assert [event.text for event in await box.events(1)] == ["here"]
    assert "there is no room on its disk" in box.last_error
    assert "make room and start edgebox again" in box.last_error
    await box.close()
    afterwards = await Storage.open(file)
    assert await afterwards.load_profiles("print") == [PROFILE]
    assert await afterwards.events(1) == []
    await afterwards.close()


async def test_a_box_whose_file_was_never_made_starts_too(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_the_disk(monkeypatch, "database or disk is full", 0)
    box = await Storage.open(file, serving=True)
    assert await box.cameras() == []
    await box.close()


@pytest.mark.parametrize("said", ["disk I/O error", "attempt to write a readonly database"])
async def test_another_error_is_no_full_disk(
    file: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    fill_the_disk(monkeypatch, said, 1 << 30)
    with pytest.raises(StorageError, match=said):
        await Storage.open(file, serving=True)


async def test_who_looks_something_up_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_the_disk(monkeypatch, "database or disk is full", 0)
    with pytest.raises(StorageError, match="no room on its disk"):
        await Storage.open(file)


def delete(file: Path) -> None:
    file.unlink()


def replace(file: Path) -> None:
    file.rename(file.with_name("old"))
    file.write_bytes(b"another")


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("take_away", [delete, replace, empty])
async def test_a_file_that_is_taken_away_is_noticed_with_the_next_row(
    file: Path, take_away: Callable[[Path], None]
) -> None:
    box = await Storage.open(file)
    box.record_event("info", "one")
    assert await box.flush()
    assert box.last_error == ""
    take_away(file)
    box.record_event("info", "two")
    assert await box.flush()
    assert f"{file} was deleted or replaced" in box.last_error
    assert box.waiting_rows == 0
    await box.close()


async def test_a_file_that_is_lost_with_its_disk_is_said_to_be_lost(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = await Storage.open(file, retry_s=0)

    async def fail(writer: Writer, rows: Sequence[Any]) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(Writer, "_write", fail)
        box.record_event("info", "one")
        assert not await box.flush()
        assert box.last_error == "disk I/O error"
        delete(file)
        assert not await box.flush()
        assert f"{file} was deleted or replaced" in box.last_error
    await box.close()
