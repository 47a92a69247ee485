"""Opens databases: folder, schema, settings, and advice when it fails.

Unused pages are returned (`auto_vacuum`), and the write-ahead log is truncated after each
checkpoint, so that the files are as small as their contents.
"""

import asyncio
import contextlib
import errno
import shutil
import sqlite3
import time
from collections.abc import Iterator
from glob import escape
from pathlib import Path

import aiosqlite

from edgebox.domain.errors import StorageError
from edgebox.domain.home_folder import expanded
from edgebox.storage.carrying_over import carry_over
from edgebox.storage.damage import names_full_disk, text_of
from edgebox.storage.levels import added_classes, added_counts, added_latencies
from edgebox.storage.schema import (
    MIGRATIONS,
    SECONDS,
    ForeignDatabaseError,
    NoSchemaError,
    migrate,
)

IN_MEMORY = ":memory:"

WAL_BYTES_MAX = 4 << 20
"""Size to which the log is truncated, and which triggers a checkpoint."""

_DAMAGED = (
    "not a database", "malformed", "already exists", "no such table", "no such column",
    "duplicate column", "Could not decode",
)  # fmt: skip
"""SQLite's messages about a damaged file, or one with a wrong schema."""
_BUSY_TIMEOUT_MS = 3000
_INCREMENTAL = 2
PARTS = ("", "-wal", "-shm", "-journal")
"""What the names of a database's files end with: its own, and those of its logs."""


_ROOM_BYTES = 1 << 16
"""Less free space counts as a full disk: SQLite creates a file of 32 KiB and a log."""


class NoRoomError(StorageError):
    """The disk is full, so the database cannot be opened; the file may be intact."""


class DamagedError(StorageError):
    """The file is damaged, or no database."""

    def __init__(self, path: Path | str, reason: str) -> None:
        """Name the damage."""
        super().__init__(f"{_shown(path)}: {reason}: move it away, edgebox makes a new one")
        self.path = path
        self.reason = reason


def rename_damaged(file: Path) -> Path:
    """Rename a database and its log; return its new name."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (
        f"{file.name}.corrupt-{stamp}{more}" for more in ("", *(f"-{n}" for n in range(2, 99)))
    )
    aside = next(name for name in map(file.with_name, names) if not name.exists())
    for part in reversed(PARTS):  # a log that stays alone would belong to the next database
        with contextlib.suppress(FileNotFoundError):
            file.with_name(file.name + part).rename(aside.with_name(aside.name + part))
    return aside


async def connect(path: Path | str) -> aiosqlite.Connection:
    """Open, check and migrate a database.

    Raises:
        NoRoomError: its disk is full.
        StorageError: it cannot be used; the message says what to do.
    """
    if str(path) != IN_MEMORY:
        path = await asyncio.to_thread(_with_folder, Path(path))
    connection: aiosqlite.Connection | None = None
    try:
        connection = await _opened(path)
        connection.text_factory = text_of
        await connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        await _add_functions(connection)
        ((pages,),) = await connection.execute_fetchall("PRAGMA page_count")
        if not pages:  # a new file; to an old one this would write before it is checked
            await connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
        await migrate(connection)
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = NORMAL")
        await connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")
        # Overwriting deleted rows would double the writing, for figures that are not secret.
        await connection.execute("PRAGMA secure_delete = OFF")
        # Detects a read-only file: migrating an up-to-date one writes nothing.
        await connection.execute("BEGIN IMMEDIATE")
        await connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        await connection.execute("ROLLBACK")
        await _make_shrinkable(connection)
    except BaseException as error:
        # On any error: an open connection has a thread that keeps the process alive.
        if connection is not None:
            await connection.close()
        if isinstance(error, sqlite3.OperationalError) and _is_full(Path(path), error):
            raise NoRoomError(f"{_shown(path)}: there is no room on its disk ({error})") from error
        if isinstance(error, sqlite3.Error | UnicodeDecodeError) and damage_of(error):
            raise DamagedError(path, damage_of(error)) from error
        if isinstance(error, NoSchemaError):
            raise DamagedError(path, str(error)) from error
        if isinstance(error, ForeignDatabaseError):
            raise ForeignDatabaseError(f"{_shown(path)}: {error}") from error
        if isinstance(error, sqlite3.Error | StorageError | ValueError):
            raise StorageError(f"{_shown(path)}: {_mend(error)}") from error
        raise
    return connection


async def _opened(path: Path | str) -> aiosqlite.Connection:
    """Open a database's file on a worker thread.

    aiosqlite's own `connect` does not wait for its thread where the file cannot be opened. The
    thread then writes a traceback, if the event loop has ended before it.

    Raises:
        sqlite3.Error, ValueError: the file cannot be opened.
    """
    opened = await asyncio.to_thread(
        sqlite3.connect, path, isolation_level=None, uri=str(path) == IN_MEMORY,
        check_same_thread=False,  # the connection's own thread uses it from here
    )  # fmt: skip
    return await aiosqlite.Connection(lambda: opened, iter_chunk_size=64)


async def connect_copy(path: Path | str) -> aiosqlite.Connection:
    """Open a database in memory with a copy of a file's tables, without writing to its disk.

    History, events and the contents of the write-ahead log are not copied.
    """
    connection = await connect(IN_MEMORY)
    await carry_over(connection, f"{file_at(path).as_uri()}?immutable=1")
    return connection


def file_at(path: Path | str) -> Path:
    """Return the absolute path of a database."""
    return expanded(path).absolute()


def has_room(folder: Path) -> bool:
    """Return whether the disk of a folder has room for a database.

    A file system without blocks, such as /proc, is never full.
    """
    usage = shutil.disk_usage(folder)
    return usage.total == 0 or usage.free >= _ROOM_BYTES


def _is_full(path: Path, error: sqlite3.OperationalError) -> bool:
    # With a log SQLite does not always name the cause.
    if names_full_disk(error):
        return True
    with contextlib.suppress(OSError):
        return not has_room(path.parent)
    return False


async def connect_seconds() -> aiosqlite.Connection:
    """Open a database in memory for the finest history."""
    connection = await aiosqlite.connect(IN_MEMORY, isolation_level=None)
    await _add_functions(connection)
    for statement in SECONDS:
        await connection.execute(statement)
    return connection


async def _add_functions(connection: aiosqlite.Connection) -> None:
    """Define the SQL functions of the history's statements."""
    await connection.create_function("added_counts", 2, added_counts, deterministic=True)
    await connection.create_function("added_classes", 2, added_classes, deterministic=True)
    await connection.create_function("added_latencies", 2, added_latencies, deterministic=True)


async def _make_shrinkable(connection: aiosqlite.Connection) -> None:
    """Rewrite a file of an earlier release once, so that its unused pages can be returned.

    That needs as much room as the file has. Without room the file stays as it is.
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
        path = expanded(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        for file in _own_files(path):  # earlier versions let all read
            # Another user's, missing, or (told when it is opened) no name of a file.
            with contextlib.suppress(OSError, ValueError):
                file.chmod(file.stat().st_mode & ~0o077)
    except (OSError, RuntimeError, ValueError) as error:
        full = isinstance(error, OSError) and error.errno == errno.ENOSPC
        raise (NoRoomError if full else StorageError)(
            f"{_shown(path)}: its folder cannot be made ({error}): "
            "name a writable place in storage.path"
        ) from error
    return path


def _own_files(path: Path) -> Iterator[Path]:
    """Yield a database, its log, and what of them was set aside under another name."""
    for part in PARTS:
        yield path.with_name(path.name + part)
    for aside in ("corrupt", "before-restore"):
        yield from path.parent.glob(f"{escape(path.name)}.{aside}-*")


def _shown(path: Path | str) -> str:
    """Return a path for a message of one line."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def damage_of(error: Exception) -> str:
    """Return the damage of a database from SQLite's error; empty: another error."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is damaged, its text is no UTF-8 ({error.reason})"
    text = str(error)
    return text if any(sign in text for sign in _DAMAGED) else ""


def _mend(error: Exception) -> str:
    """Return a message about a database's error, with advice."""
    text = str(error)
    if isinstance(error, StorageError):
        return text
    if isinstance(error, ValueError):
        return f"{text}: this is no name of a file: name another in storage.path"
    if "locked" in text:
        return f"{text}: does another edgebox use it? Stop it, or name another file in storage.path"
    return f"{text}: is it writable, and is there room? storage.path names the file"
