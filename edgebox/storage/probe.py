"""Checks whether edgebox can use a database file, without changing or locking it.

Limits: it does not see the contents of the write-ahead log.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from edgebox.storage.schema import APPLICATION_ID, MIGRATIONS

_MAGIC = b"SQLite format 3\x00"


def probe(path: Path) -> str:
    """Return why the database in an existing file cannot be used; empty: it can."""
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(_MAGIC)) not in (b"", _MAGIC):
            return f"{path} is not a SQLite database"
    # Immutable: no lock, no further files, and the log is ignored.
    uri = f"{path.absolute().as_uri()}?immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            application = _number(connection, "PRAGMA application_id")
            version = _number(connection, "PRAGMA user_version")
            tables = _number(connection, "SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        return ""  # unreadable files are reported elsewhere
    except sqlite3.DatabaseError:
        return f"{path} is not a SQLite database"
    unfinished = not application and path.with_name(f"{path.name}-wal").exists()
    if application != APPLICATION_ID and (application or version or tables) and not unfinished:
        return f"{path} is another program's database"
    if version > len(MIGRATIONS):
        return f"{path} was written by a newer edgebox (schema {version} of {len(MIGRATIONS)})"
    return ""


def _number(connection: sqlite3.Connection, query: str) -> int:
    ((value,),) = connection.execute(query).fetchall()
    return int(value)
