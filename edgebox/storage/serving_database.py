"""Opens the database of a box, which must serve whatever state its file is in.

| the file | what happens |
|---|---|
| is edgebox's and damaged | it becomes FILE.corrupt-DATE; a new one has what can be read |
| is edgebox's and cannot be written: full disk, locked, read-only | a copy in memory is used |
| is no database | it is left as it is, and an empty one in memory is used |
| is another program's or a newer edgebox's, or its place cannot be used | an error |

At the start a box reads all but history and events, where damage shows only later: then the file is
replaced while the box runs, in the same way.
"""

import asyncio
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiosqlite

from edgebox.domain.errors import StorageError
from edgebox.storage.carrying_over import carry_over
from edgebox.storage.connecting import (
    IN_MEMORY,
    PARTS,
    DamagedError,
    NoRoomError,
    connect,
    connect_copy,
    damage_of,
    file_at,
    rename_damaged,
)
from edgebox.storage.damage import names_full_disk
from edgebox.storage.schema import APPLICATION_ID, tables_read_at_start

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
    await asyncio.to_thread(_finish, path)
    try:
        return Served(await _connect_and_read(path))
    except NoRoomError as error:
        return Served(await connect_copy(path), f"{error}: make room {_UNTIL}")
    except DamagedError as error:
        if not await asyncio.to_thread(is_edgeboxs, file_at(path)):
            mend = f"{error.reason}: it is left as it is; move it away {_UNTIL}"
            return Served(await connect(IN_MEMORY), f"{path}: {mend}")
        return await replaced(path, error.reason)
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
        for table in tables_read_at_start():
            await connection.execute_fetchall(f"SELECT * FROM {table}")
    except BaseException as error:
        await connection.close()
        if isinstance(error, sqlite3.DatabaseError) and damage_of(error):
            raise DamagedError(path, damage_of(error)) from error
        if isinstance(error, sqlite3.Error):
            raise StorageError(f"{path}: {error}") from error
        raise
    return connection


async def replaced(path: Path | str, reason: str) -> Served:
    """Set a damaged file aside, and make a new one with what can be read of it.

    The new one is filled beside it and takes its place last. If that fails, go on in memory.

    Args:
        path: the file, which nobody has open.
        reason: the damage.

    Raises:
        StorageError: not even memory can be used.
    """
    file = source = file_at(path)
    unfinished = _unfinished(file)
    try:
        await asyncio.to_thread(_remove, unfinished)
        missing = await _filled(unfinished, file)
        source = await asyncio.to_thread(rename_damaged, file)
        await asyncio.to_thread(unfinished.rename, file)
        connection = await connect(path)
    except (OSError, StorageError, sqlite3.Error) as why:
        if source == file:
            with suppress(OSError):
                await asyncio.to_thread(_remove, unfinished)
            no_room = isinstance(why, NoRoomError) or names_full_disk(why)
            todo = "make room" if no_room else "move it away"
            text = f"{reason}, and no new one can be made ({why}): {todo}"
        else:
            text = f"{reason}: it is now {source.name}, and the new one fails ({why}): make room"
        connection = await connect(IN_MEMORY)
        await _carried_over(connection, source)
        return Served(connection, f"{path}: {text} {_UNTIL}")
    text = (
        f"the database {path} is damaged ({reason}): it is now {source.name}, and a new one was "
        "made with what can be read of it. History is not in it"
    )
    if missing:
        text += f", nor all that was in the tables {', '.join(missing)}"
    return Served(connection, damage=text)


async def _filled(new: Path, source: Path) -> list[str]:
    """Make a database with what can be read of a file; return the tables that lack something."""
    connection = await connect(new)
    missing = await _carried_over(connection, source)
    await connection.close()
    return missing


async def _carried_over(connection: aiosqlite.Connection, source: Path) -> list[str]:
    """Copy into a new database what can be read of a file; close it if that is cut off."""
    try:
        return await carry_over(connection, str(source), events=True)
    except BaseException:
        await connection.close()
        raise


def _unfinished(file: Path) -> Path:
    """Return where the new database is until it is whole."""
    return file.with_name(f"{file.name}.unfinished")


def _remove(file: Path) -> None:
    for part in PARTS:
        file.with_name(file.name + part).unlink(missing_ok=True)


def _finish(path: Path | str) -> None:
    """Put a new database in its place, where a process was killed just before that."""
    with suppress(OSError, RuntimeError, ValueError, StorageError):  # no place: `connect` tells
        file = file_at(path)
        if not file.exists():
            _unfinished(file).rename(file)
