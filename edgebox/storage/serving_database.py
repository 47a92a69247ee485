"""Opens the database of a box, which must serve whatever state its file is in.

| the file | what happens |
|---|---|
| is edgebox's and damaged | it is set aside as FILE.corrupt-DATE, and a new one is made |
| is edgebox's and cannot be written: full disk, locked, read-only | a copy in memory is used |
| is no database | it is left as it is, and an empty one in memory is used |
| is another program's or a newer edgebox's, or its place cannot be used | an error |
"""

import asyncio
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiosqlite

from edgebox.domain.errors import StorageError
from edgebox.storage.connecting import (
    IN_MEMORY,
    KNOWN,
    DamagedError,
    NoRoomError,
    connect,
    connect_copy,
    damage_of,
    file_at,
    rename_damaged,
)
from edgebox.storage.schema import APPLICATION_ID

_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_AT = 68
"""Offset in a file's header: https://www.sqlite.org/fileformat.html#the_database_header"""
_UNTIL = "and start edgebox again, until then nothing is kept"


@dataclass(frozen=True, slots=True)
class Served:
    """An open database, and what people must be told of it."""

    connection: aiosqlite.Connection
    not_kept: str = ""
    """Why nothing that is recorded outlives the process; empty: it does."""
    damage: str = ""
    """What was done with a damaged file; empty: nothing."""


async def connect_to_serve(path: Path | str) -> Served:
    """Open a database, or another one in its place.

    Raises:
        StorageError: the setting is wrong; the message says what to do.
    """
    try:
        return Served(await _connect_and_read(path))
    except NoRoomError as error:
        return Served(await connect_copy(path), f"{error}: make room {_UNTIL}")
    except DamagedError as error:
        if not await asyncio.to_thread(is_edgeboxs, file_at(path)):
            mend = f"{error.reason}: it is left as it is; move it away {_UNTIL}"
            return Served(await connect(IN_MEMORY), f"{path}: {mend}")
        return await _replaced(path, error)
    except StorageError as error:
        blocked = isinstance(error.__cause__, sqlite3.OperationalError)
        if not blocked or not await asyncio.to_thread(is_edgeboxs, file_at(path)):
            raise
        return Served(
            await connect_copy(path),
            f"{error}; then start edgebox again, until then nothing is kept",
        )


def is_edgeboxs(file: Path) -> bool:
    """Return whether a file's header is that of a database of edgebox."""
    with suppress(OSError), file.open("rb") as opened:
        header = opened.read(_APPLICATION_ID_AT + 4)
        application = header[_APPLICATION_ID_AT:]
        return header.startswith(_MAGIC) and application == APPLICATION_ID.to_bytes(4, "big")
    return False


async def _connect_and_read(path: Path | str) -> aiosqlite.Connection:
    """Open a database and read all that a box needs of it at its start: damage shows only then."""
    connection = await connect(path)
    try:
        for table in KNOWN:
            await connection.execute_fetchall(f"SELECT * FROM {table}")
    except BaseException as error:
        await connection.close()
        if isinstance(error, sqlite3.DatabaseError) and damage_of(error):
            raise DamagedError(path, damage_of(error)) from error
        if isinstance(error, sqlite3.Error):
            raise StorageError(f"{path}: {error}") from error
        raise
    return connection


async def _replaced(path: Path | str, error: DamagedError) -> Served:
    """Set a damaged file aside and make a new one; if that fails, go on in memory."""
    try:
        aside = await asyncio.to_thread(rename_damaged, file_at(path))
        connection = await connect(path)
    except (OSError, StorageError) as why:
        mend = f"{error.reason}, and no new one can be made ({why}): move it away {_UNTIL}"
        return Served(await connect(IN_MEMORY), f"{path}: {mend}")
    text = (
        f"the database {path} is damaged ({error.reason}): it is now {aside.name}, and a new one "
        "was made. What was set on the page for cameras and what was learned is not in it"
    )
    return Served(connection, damage=text)
