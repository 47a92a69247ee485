"""The writer of one connection, without the task that writes by itself."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiosqlite
import pytest

from edgebox.storage.writer import Writer

ADD = "INSERT INTO numbers VALUES (?)"


@pytest.fixture
async def writer() -> AsyncIterator[Writer]:
    connection = await aiosqlite.connect(":memory:", isolation_level=None)
    await connection.execute("CREATE TABLE numbers (number INTEGER)")
    writer = Writer(connection, file=None, buffer_rows_max=100, retry_s=0)
    yield writer
    await writer.close()


async def test_who_is_cancelled_while_rows_are_written_loses_none(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_write, go_on, write = asyncio.Event(), asyncio.Event(), writer._write

    async def held_up(rows: Sequence[Any]) -> None:
        in_write.set()
        await go_on.wait()
        await write(rows)

    monkeypatch.setattr(writer, "_write", held_up)
    for number in range(3):
        writer.record(ADD, number)
    caller = asyncio.create_task(writer.flush())
    await in_write.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    writer.record(ADD, 3)
    go_on.set()
    assert await writer.flush()
    ((rows,),) = await writer.read(("SELECT group_concat(number) FROM numbers", ()))
    assert rows == ("0,1,2,3",)
    assert (writer.lost_rows, writer.waiting_rows) == (0, 0)
