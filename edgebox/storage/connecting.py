"""Owns how a database is opened: its folder, schema and settings, and what to do when it fails.

The file is kept in pages that are given back when they are no longer used (`auto_vacuum`), with a
write-ahead log that is cut after each checkpoint, so that it is as large as what it holds.
"""

import asyncio
import sqlite3
from pathlib import Path

import aiosqlite

from edgebox.domain.errors import StorageError
from edgebox.storage.damage import text_of
from edgebox.storage.levels import added_counts, added_latencies
from edgebox.storage.schema import SECONDS, migrate

IN_MEMORY = ":memory:"

WAL_BYTES_MAX = 4 << 20
"""What the log is cut to; a checkpoint is made once it has as much."""

_DAMAGED = (
    "not a database", "malformed", "already exists", "no such table", "no such column",
    "duplicate column", "Could not decode",
)  # fmt: skip
"""What SQLite says of a file that cannot be mended; a schema that is not its version's is one."""
_BUSY_TIMEOUT_MS = 3000
_INCREMENTAL = 2


async def connect(path: Path | str) -> aiosqlite.Connection:
    """Open, check and migrate a database.

    Raises:
        StorageError: it cannot be used; the message says what to do.
    """
    if str(path) != IN_MEMORY:
        path = await asyncio.to_thread(_with_folder, Path(path))
    connection: aiosqlite.Connection | None = None
    try:
        connection = await aiosqlite.connect(path, isolation_level=None)
        connection.text_factory = text_of
        await connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        await _add_functions(connection)
        # Of a new file this is all it takes; an old one is written anew, below.
        await connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
        await migrate(connection)
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = NORMAL")
        await connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")
        # Overwriting what is deleted would double the writing, for figures that are no secret.
        await connection.execute("PRAGMA secure_delete = OFF")
        # Migrating an up-to-date file writes nothing, so a read-only one shows itself here.
        await connection.execute("BEGIN IMMEDIATE")
        await connection.execute("ROLLBACK")
        await _make_shrinkable(connection)
    except BaseException as error:
        # Whatever it is: an open connection has a thread, which keeps the process from ending.
        if connection is not None:
            await connection.close()
        if isinstance(error, sqlite3.Error | StorageError | ValueError):
            raise StorageError(f"{_shown(path)}: {_mend(error)}") from error
        raise
    return connection


async def connect_seconds() -> aiosqlite.Connection:
    """Open a database in memory for the finest history."""
    connection = await aiosqlite.connect(IN_MEMORY, isolation_level=None)
    await _add_functions(connection)
    for statement in SECONDS:
        await connection.execute(statement)
    return connection


async def _add_functions(connection: aiosqlite.Connection) -> None:
    """Teach the connection what the statements of history call."""
    await connection.create_function("added_counts", 2, added_counts, deterministic=True)
    await connection.create_function("added_latencies", 2, added_latencies, deterministic=True)


async def _make_shrinkable(connection: aiosqlite.Connection) -> None:
    """Write a file of an earlier release anew, once, so that its unused pages can be given back.

    That takes as much room as the file has: without it the file stays as large as it is, which is
    no reason not to serve.
    """
    ((kept,),) = await connection.execute_fetchall("PRAGMA auto_vacuum")
    if kept == _INCREMENTAL:
        return
    try:
        await connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
        await connection.execute("VACUUM")
    except sqlite3.OperationalError:
        if connection.in_transaction:
            await connection.execute("ROLLBACK")


def _with_folder(path: Path) -> Path:
    """Return the path without "~", its folder made."""
    try:
        path = path.expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise StorageError(
            f"{_shown(path)}: its folder cannot be made ({error}): "
            "name a writable place in storage.path"
        ) from error
    return path


def _shown(path: Path | str) -> str:
    """Return a path for a message of one line."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def damage_of(error: Exception) -> str:
    """Return what is damaged in a database, by what SQLite says; empty: it is something else."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is damaged, its text is no UTF-8 ({error.reason})"
    text = str(error)
    return text if any(sign in text for sign in _DAMAGED) else ""


def _mend(error: Exception) -> str:
    """Return what is wrong with a database and what to do about it."""
    text = str(error)
    if isinstance(error, StorageError):
        return text
    if damaged := damage_of(error):
        return f"{damaged}: move it away, edgebox makes a new one"
    if isinstance(error, ValueError):
        return f"{text}: this is no name of a file: name another in storage.path"
    if "locked" in text:
        return f"{text}: does another edgebox use it? Stop it, or name another file in storage.path"
    return f"{text}: is it writable, and is there room? storage.path names the file"
