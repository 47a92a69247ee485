"""One SQLite connection: writing from a bounded buffer, reading between transactions.

Recording never waits and never raises: rows go into a buffer, which one task writes, one
transaction at a time. When the disk is full or fails, serving goes on: rows wait (a full buffer
drops the oldest), the writer retries, and `failures` and `last_error` report it. A file that turns
out to be damaged is replaced, where that is allowed, and the rows go into the new one.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import aiosqlite

from edgebox.domain.errors import StorageError
from edgebox.storage.connecting import damage_of

_Row = tuple[str, tuple[Any, ...]]
"""A statement and its parameters."""

_Replace = Callable[[str], Awaitable[tuple[aiosqlite.Connection, Path | None]]]

_ROW_REFUSED = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeEncodeError,
)
"""Errors of the row itself, where a retry cannot help."""

_WRITE_ERRORS = (*_ROW_REFUSED, sqlite3.Error, ValueError)
_REPLACE_PERIOD_S = 86_400.0
"""How long a file is not replaced again: a disk that damages file after file would be filled."""
_SUM_FAILED = "user-defined function"
"""SQLite's message where a row cannot be added to the one that is there, which is damaged."""


class Writer:
    """An open connection and its buffer of rows."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        *,
        file: Path | None,
        buffer_rows_max: int,
        retry_s: float,
    ) -> None:
        """Take over a connection in autocommit mode; nothing is written before `start`.

        Args:
            connection: closed by `close`.
            file: the existing file it writes to; None: memory.
            buffer_rows_max: rows that may wait for the disk.
            retry_s: pause after a failed write.
        """
        self.failures = 0
        """Write attempts that failed since the start."""
        self.last_error = ""
        """Why rows are not stored; empty once writing works again."""
        self.lost_rows = 0
        """Lost rows: the buffer overflowed, or the database refused them."""
        self.replace: _Replace | None
        """Opens another file in place of a damaged one, given the damage; returns what `__init__`
        takes. None: it is left as it is."""
        self.replace = None
        self._replaced_s = -_REPLACE_PERIOD_S
        self._connection = connection
        self._file = file
        self._inode = _inode(file)
        self._buffer_rows_max = buffer_rows_max
        self._retry_s = retry_s
        self._buffer: deque[_Row] = deque()
        self._wake = asyncio.Event()
        # All share one connection, so a read must not see half of a transaction.
        self._exclusive = asyncio.Lock()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._flushing: set[asyncio.Task[bool]] = set()

    def start(self) -> None:
        """Begin to write recorded rows."""
        self._task = asyncio.create_task(self._write_forever(), name="storage-writer")

    async def close(self) -> None:
        """Write buffered rows, with one retry, and close the connection. Idempotent."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self.flush()
        self.lost_rows += len(self._buffer)
        self._buffer.clear()
        with contextlib.suppress(sqlite3.Error):
            await self._connection.close()

    @property
    def waiting_rows(self) -> int:
        """Rows recorded and not yet written."""
        return len(self._buffer)

    def record(self, statement: str, *parameters: Any) -> None:
        """Queue a statement; statements are executed in order."""
        while len(self._buffer) >= self._buffer_rows_max:
            self._buffer.popleft()
            self.lost_rows += 1
        self._buffer.append((statement, parameters))
        self._wake.set()

    async def read(self, *queries: tuple[str, Sequence[Any]]) -> list[list[Any]]:
        """Return the rows of each query, read in one transaction.

        Raises:
            StorageError: the database cannot be read.
        """
        try:
            async with self._exclusive:
                try:
                    return await self._read(queries)
                except (sqlite3.Error, UnicodeDecodeError) as error:
                    if not await self._mended(error):
                        raise
                    return await self._read(queries)
        except (sqlite3.Error, ValueError) as error:  # ValueError: the connection is closed
            mend = ": move the file of storage.path away, edgebox makes a new one"
            todo = mend if damage_of(error) else ""
            raise StorageError(f"the database cannot be read: {error}{todo}") from error

    async def _read(self, queries: Sequence[tuple[str, Sequence[Any]]]) -> list[list[Any]]:
        return [
            list(await self._connection.execute_fetchall(statement, parameters))
            for statement, parameters in queries
        ]

    async def execute(self, statement: str, *parameters: Any) -> list[Any]:
        """Execute one statement now, outside any transaction, and return its rows.

        Raises:
            StorageError: it failed; counted like a failed write.
        """
        async with self._exclusive:
            try:
                return list(await self._connection.execute_fetchall(statement, parameters))
            except (sqlite3.Error, ValueError) as error:
                await self._failed(error)
                raise StorageError(f"the database cannot be written: {error}") from error

    async def flush(self) -> bool:
        """Try to write all buffered rows now; return whether that succeeded.

        Who is cancelled waits no longer. The transaction goes on, since its rows are others' too.
        """
        flushing = asyncio.create_task(self._flush(), name="storage-flush")
        self._flushing.add(flushing)
        flushing.add_done_callback(self._flushing.discard)
        return await asyncio.shield(flushing)

    async def _flush(self) -> bool:
        async with self._exclusive:
            batch = list(self._buffer)
            self._buffer.clear()
            try:
                await self._write(batch)
            except _WRITE_ERRORS as error:
                if _is_refused(error):
                    return await self._write_each(batch)
                self._put_back(batch)
                await self._failed(error)
                return False
            self.last_error = await self._lost_file() if batch else self.last_error
        return True

    async def _write_each(self, batch: Sequence[_Row]) -> bool:
        """Write rows one by one, so that a bad one does not block the others."""
        for at, row in enumerate(batch):
            try:
                await self._write([row])
            except _WRITE_ERRORS as error:
                if not _is_refused(error):
                    self._put_back(batch[at:])
                    await self._failed(error)
                    return False
                self.lost_rows += 1
                await self._failed(error)
        return True

    async def _lost_file(self) -> str:
        """Return an error if the file was deleted, replaced or emptied: SQLite does not notice."""
        if self._file is None or await asyncio.to_thread(_inode, self._file) == self._inode:
            return ""
        gone = "was deleted or replaced, or is empty"
        return f"{self._file} {gone}: start edgebox again to have a new one"

    async def _write_forever(self) -> None:
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            if not await self.flush() and not self._closing:
                await self._pause()

    async def _pause(self) -> None:
        """Wait before the next attempt; only closing interrupts it."""
        waited_until = time.monotonic() + self._retry_s
        while not self._closing and (left := waited_until - time.monotonic()) > 0:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout=left)
        self._wake.set()

    async def _write(self, rows: Sequence[_Row]) -> None:
        """Write some rows in one transaction, all or none."""
        if not rows:
            return
        connection = self._connection
        await connection.execute("BEGIN IMMEDIATE")
        try:
            for statement, group in groupby(rows, key=itemgetter(0)):
                await connection.executemany(statement, [parameters for _, parameters in group])
            await connection.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction.
            if connection.in_transaction:
                await connection.execute("ROLLBACK")
            raise

    async def _failed(self, error: Exception) -> None:
        """Count a failure. Where the file is lost, as with its disk, that is the reason."""
        self.failures += 1
        self.last_error = await self._lost_file() or str(error)
        await self._mended(error)

    async def _mended(self, error: Exception) -> bool:
        """Go on with another file if this one is damaged; return whether that is so."""
        damage, now_s = damage_of(error), time.monotonic()
        if self.replace is None or not damage or now_s - self._replaced_s < _REPLACE_PERIOD_S:
            return False
        if await self._lost_file():
            return False  # what is there now is somebody else's
        self._replaced_s = now_s
        mending = asyncio.create_task(self._change_file(damage, self.replace), name="storage-mend")
        cancelled: asyncio.CancelledError | None = None
        while not mending.done():  # cut off, it would leave no connection at all
            try:
                await asyncio.wait({mending})
            except asyncio.CancelledError as stop:
                cancelled = stop
        if cancelled is not None:
            raise cancelled
        mending.result()
        return True

    async def _change_file(self, damage: str, replace: _Replace) -> None:
        """Close the file and go on with another one."""
        with contextlib.suppress(sqlite3.Error):
            await self._connection.close()
        self._connection, self._file = await replace(damage)
        self._inode = await asyncio.to_thread(_inode, self._file)
        self.last_error = ""

    def _put_back(self, rows: Sequence[_Row]) -> None:
        """Return rows to the front of the buffer; the oldest go when it overflows."""
        room = self._buffer_rows_max - len(self._buffer)
        kept = rows[max(0, len(rows) - room) :]
        self.lost_rows += len(rows) - len(kept)
        self._buffer.extendleft(reversed(kept))


def _inode(file: Path | None) -> tuple[int, int] | None:
    """Return the identity of the file at a path; None: there is none, or it is empty."""
    try:
        found = None if file is None else file.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found is not None and found.st_size else None


def _is_refused(error: Exception) -> bool:
    """Return whether the database never takes a row, however often it is tried."""
    return isinstance(error, _ROW_REFUSED) or _SUM_FAILED in str(error)
