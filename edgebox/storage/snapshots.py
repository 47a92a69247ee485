"""Copies of databases that are in use, and their check. Everything here blocks."""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgebox.domain.errors import StorageError
from edgebox.storage.damage import names_full_disk
from edgebox.storage.schema import APPLICATION_ID

_BUSY_S = 10.0
_PAGES_PER_STEP = 1000
_PAUSE_S = 0.001
_UNUSED_S = 0.5


@dataclass(frozen=True, slots=True)
class DatabaseAbout:
    """What a database says of itself."""

    application: int
    schema: int

    @property
    def is_edgeboxs(self) -> bool:
        """Whether edgebox made it."""
        return self.application == APPLICATION_ID


def snapshot(file: Path, copy: Path) -> DatabaseAbout:
    """Copy a database as it is at one moment, and check the copy; the box may write meanwhile.

    Args:
        file: the database.
        copy: does not exist yet; readable for its owner alone.

    Raises:
        StorageError: the database cannot be read, or is damaged.
        OSError: the copy cannot be written.
    """
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with contextlib.closing(_opened(file)) as source, contextlib.closing(_new(copy)) as target:
            # One transaction: else the copy would begin anew with each write of the box.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchall()
            source.backup(target, pages=_PAGES_PER_STEP, sleep=_PAUSE_S)
            source.execute("ROLLBACK")
            # A copy lies alone: without a log beside it.
            target.execute("PRAGMA journal_mode = DELETE")
        return check(copy)
    except sqlite3.Error as error:
        if names_full_disk(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(copy)) from error
        raise StorageError(f"{file}: cannot be copied ({error})") from error


def check(file: Path) -> DatabaseAbout:
    """Check a whole database that nobody uses; return what it says of itself.

    Raises:
        StorageError: it is damaged, or no database.
    """
    try:
        with contextlib.closing(_opened(file)) as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
            ((application,),) = connection.execute("PRAGMA application_id").fetchall()
            ((schema,),) = connection.execute("PRAGMA user_version").fetchall()
    except sqlite3.Error as error:
        raise StorageError(f"{file}: is damaged ({error})") from error
    if found != ["ok"]:
        raise StorageError(f"{file}: is damaged ({'; '.join(found)})")
    return DatabaseAbout(int(application), int(schema))


@contextlib.contextmanager
def unused(file: Path) -> Iterator[None]:
    """Insist that no program uses a database, and let none begin to meanwhile.

    Raises:
        StorageError: one does.
    """
    if not file.exists():
        yield
        return
    try:
        connection = sqlite3.connect(file, isolation_level=None, timeout=_UNUSED_S)
    except sqlite3.Error as error:
        raise StorageError(f"{file}: cannot be opened ({error})") from error
    with contextlib.closing(connection):
        try:
            # What its log has goes into the file, which is then whole under any name. That fails
            # while another connection is open, even if it is idle.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StorageError(
                    f"{file}: a box or a command uses it ({error}): stop it first"
                ) from error
            # else its disk is full or it cannot be written: its log goes with it
        except sqlite3.DatabaseError:
            pass  # it is damaged, which is a reason to restore another one
        yield


def _opened(file: Path) -> sqlite3.Connection:
    uri = f"{file.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_S)


def _new(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None)
