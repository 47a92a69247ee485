"""A disk that is full, and a file that cannot be written: serving goes on."""

import asyncio
import sqlite3
from pathlib import Path

from edgebox.storage.database import Storage
from tests.conftest import PATIENCE_S
from tests.storage.test_database import until


async def limit_pages(box: Storage, pages: int) -> None:
    """Make the database full: it may not grow beyond this many pages."""
    await box._writer._connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_full_disk_is_counted_and_overcome(tmp_path: Path) -> None:
    box = await Storage.open(tmp_path / "box.sqlite3", retry_s=3600.0)
    await box.flush()
    await limit_pages(box, 1)  # as many as there are already
    texts = [f"{i} " + "x" * 2000 for i in range(20)]
    for text in texts:
        box.record_event("info", text)
    assert not await box.flush()
    assert box.failures >= 1
    assert "full" in box.last_error
    assert box.waiting_rows == len(texts)
    assert await box.events(9) == []

    await limit_pages(box, 100_000)
    assert await box.flush()
    assert box.last_error == ""
    assert [e.text for e in await box.events(99)] == texts[::-1]
    assert box.lost_rows == 0
    await box.close()


async def test_the_writer_tries_again_by_itself(tmp_path: Path) -> None:
    box = await Storage.open(tmp_path / "box.sqlite3", retry_s=0.001)
    await box.flush()
    await limit_pages(box, 1)
    box.record_event("info", "x" * 100_000)
    async with asyncio.timeout(PATIENCE_S):
        await until(lambda: box.failures >= 3)
        await limit_pages(box, 100_000)
        await until(lambda: box.waiting_rows == 0)
    assert len(await box.events(9)) == 1
    await box.close()


async def test_while_full_the_newest_rows_are_kept(tmp_path: Path) -> None:
    box = await Storage.open(tmp_path / "box.sqlite3", retry_s=3600.0, buffer_rows_max=5)
    await box.flush()
    await limit_pages(box, 1)
    for i in range(12):
        box.record_event("info", f"{i} " + "x" * 3000)
        if i % 4 == 3:
            assert not await box.flush()
    assert box.waiting_rows == 5
    assert box.lost_rows == 7
    await limit_pages(box, 100_000)
    await box.flush()
    kept = [int(e.text.split()[0]) for e in await box.events(99)]
    assert kept == [11, 10, 9, 8, 7]
    await box.close()


async def test_closing_on_a_full_disk_ends_and_counts_what_is_lost(tmp_path: Path) -> None:
    box = await Storage.open(tmp_path / "box.sqlite3", retry_s=3600.0)
    await box.flush()
    await limit_pages(box, 1)
    box.record_event("info", "x" * 100_000)
    async with asyncio.timeout(PATIENCE_S):
        await box.close()
    assert box.lost_rows == 1


async def test_another_process_holding_the_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "box.sqlite3"
    box = await Storage.open(path, retry_s=3600.0)
    await box.flush()
    await box._writer._connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    box.record_event("info", "hello")
    assert not await box.flush()
    assert "locked" in box.last_error
    other.execute("ROLLBACK")
    other.close()
    assert await box.flush()
    assert len(await box.events(9)) == 1
    await box.close()


async def test_reading_waits_for_no_write_while_the_file_cannot_be_written(
    storage: Storage,
) -> None:
    storage.record_event("info", "first")
    await storage.catch_up()
    assert [event.text for event in await storage.events(9)] == ["first"]
    storage._writer.last_error = "database is locked"
    async with storage._writer._exclusive:  # as while SQLite waits for the other program
        await asyncio.wait_for(storage.catch_up(), PATIENCE_S)
