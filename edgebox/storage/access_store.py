"""The SQLite file of tokens and browser sessions.

It is a file of its own, so that damage to the large database locks nobody out. Every method blocks
and opens the file anew, so commands and a running box can use it at the same time.
"""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgebox.domain.access import Scope, Token
from edgebox.domain.errors import KeptFileError
from edgebox.domain.home_folder import expanded
from edgebox.domain.requests import CameraId
from edgebox.storage.connecting import IN_MEMORY, DamagedError, damage_of, rename_damaged
from edgebox.storage.damage import name_of, names_full_disk, sound

_VERSION = 1
_SCHEMA = (
    """CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        scope TEXT NOT NULL,
        camera TEXT UNIQUE,
        sha256 TEXT NOT NULL UNIQUE,
        created_ms INTEGER NOT NULL,
        last_used_ms INTEGER
    ) WITHOUT ROWID""",
    """CREATE TABLE sessions (
        sha256 TEXT PRIMARY KEY,
        token TEXT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
        expires_ms INTEGER NOT NULL
    ) WITHOUT ROWID""",
)
_REVOKED = """CREATE TABLE IF NOT EXISTS revoked (
    id TEXT PRIMARY KEY,
    at_ms INTEGER NOT NULL
) WITHOUT ROWID"""
"""Not one of `_SCHEMA`, so that files of earlier releases get it, and these can read all files."""
REVOKED_KEPT_MS = 30 * 86_400_000
"""How long ids of revoked tokens are kept: longer than anything in a fleet descends from them."""
_BUSY_S = 3.0
_MODE = 0o600


class DamagedTokensError(DamagedError, KeptFileError):
    """The file of tokens is damaged, or is none."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A browser that has logged in."""

    sha256: str
    """Of its cookie, hexadecimal."""
    token: str
    """Id of the token that it logged in with."""
    expires_ms: int


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything in the file at one moment."""

    tokens: tuple[Token, ...]
    sessions: tuple[StoredSession, ...]
    revoked: Mapping[str, int] = field(default_factory=dict)
    """When tokens were revoked or replaced in the last `REVOKED_KEPT_MS`, by id: Unix milliseconds,
    and not before they were used last, even if the wall clock was behind."""


def access_file(database: str) -> str:
    """Return the file of tokens that belongs to a database's file."""
    if database == IN_MEMORY:
        return IN_MEMORY
    file = expanded(database)
    return str(file.with_name(f"{file.stem}.access.sqlite3"))


class AccessStore:
    """Tokens and sessions in a file, or in memory for as long as this object lives."""

    def __init__(self, path: str) -> None:
        """Use a file, which is created when something is first written; or `IN_MEMORY`."""
        self._path = path
        self._seen = False
        """Whether the file had its tables before: then somebody took it away if it has none."""
        self._kept: sqlite3.Connection | None = None
        if path == IN_MEMORY:
            self._kept = sqlite3.connect(IN_MEMORY, isolation_level=None, check_same_thread=False)
            _prepare(self._kept)

    def version(self) -> object:
        """Return a value that differs after other processes have written."""
        with contextlib.suppress(OSError):
            found = Path(self._path).stat()
            return found.st_mtime_ns, found.st_size, found.st_ino
        return None

    def load(self, now_ms: int) -> Stored:
        """Return all tokens, the oldest first, and all sessions that have not expired.

        Raises:
            StorageError: the file cannot be read; the message says what to do.
        """
        if self._kept is None and not self._seen and not Path(self._path).exists():
            return Stored((), ())
        with self._connection(write=False) as connection:
            if not _version_of(connection):
                return Stored((), ())  # a file that was created and never written
            self._seen = True
            tokens = connection.execute(
                "SELECT id, name, scope, camera, sha256, created_ms, last_used_ms FROM tokens"
                " ORDER BY created_ms, id"
            ).fetchall()
            sessions = connection.execute(
                "SELECT sha256, token, expires_ms FROM sessions WHERE expires_ms > ?", (now_ms,)
            ).fetchall()
            revoked = _revoked_in(connection, now_ms)
        return Stored(
            tuple(sound(tokens, _token_of, "tokens", 1)),
            tuple(StoredSession(*row) for row in sessions),
            dict(sound(revoked, _revoked_of, "revoked tokens", 0)),
        )

    def add(self, token: Token) -> None:
        """Store a token; one of the same camera is revoked.

        Raises:
            StorageError: it cannot be written; the message says what to do.
        """
        with self._connection() as connection:
            if token.camera is not None:
                _revoke(connection, "camera", token.camera, token.created_ms)
            connection.execute(
                "INSERT INTO tokens (id, name, scope, camera, sha256, created_ms, last_used_ms)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    token.id, token.name, token.scope.value, token.camera, token.sha256,
                    token.created_ms, token.last_used_ms,
                ),
            )  # fmt: skip

    def remove(self, token_id: str, now_ms: int) -> None:
        """Revoke a token; StorageError if that cannot be stored."""
        with self._connection() as connection:
            _revoke(connection, "id", token_id, now_ms)

    def add_session(self, session: StoredSession, now_ms: int) -> None:
        """Store a session, and forget those that have expired; StorageError if it cannot be."""
        with self._connection() as connection:
            connection.execute("DELETE FROM sessions WHERE expires_ms <= ?", (now_ms,))
            connection.execute(
                "INSERT INTO sessions (sha256, token, expires_ms) VALUES (?, ?, ?)",
                (session.sha256, session.token, session.expires_ms),
            )

    def remove_session(self, sha256: str) -> None:
        """Delete a session; StorageError if it cannot be."""
        with self._connection() as connection:
            connection.execute("DELETE FROM sessions WHERE sha256 = ?", (sha256,))

    def used(self, last_used_ms: Mapping[str, int]) -> None:
        """Store when tokens were used last, by id; StorageError if it cannot be.

        What is stored is never earlier than before: then the wall clock is behind.
        """
        rows = [(ms, token) for token, ms in last_used_ms.items()]
        with self._connection() as connection:
            connection.executemany(
                "UPDATE tokens SET last_used_ms = MAX(COALESCE(last_used_ms, 0), ?) WHERE id = ?",
                rows,
            )

    def rename_damaged(self) -> Path:
        """Rename a damaged file, so that the next write makes a new one; return its new path.

        Raises:
            StorageError: it cannot be renamed.
        """
        self._seen = False
        try:
            return rename_damaged(Path(self._path))
        except OSError as error:
            raise KeptFileError(f"{self._path}: cannot be renamed ({error})") from error

    def _check_there(self) -> None:
        """Check that a file that had tables was neither deleted nor emptied.

        Without this everybody's tokens would end, and the next write would make a file without any.

        Raises:
            StorageError: it was.
        """
        if self._kept is not None or not self._seen:
            return
        try:
            there = Path(self._path).stat().st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            there = False
        except OSError:
            return  # opening it says why
        if not there:
            raise KeptFileError(
                f"{self._path}: the file of tokens was deleted or emptied: put it back, or start "
                "edgebox again, which makes a new administrator's token"
            )

    @contextlib.contextmanager
    def _connection(self, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        """Give a connection in a transaction, which is committed at the end.

        Raises:
            DamagedError: the contents are not those of a file of tokens.
            StorageError: SQLite cannot do it; the message says what to do.
        """
        self._check_there()
        try:
            connection = self._kept or (_writable if write else _readable)(Path(self._path))
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield connection
                    connection.execute("COMMIT")
                    self._seen = self._seen or write
                except BaseException:
                    # A full disk may have ended the transaction.
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            finally:
                if connection is not self._kept:
                    connection.close()
        except (sqlite3.Error, OSError, ValueError) as error:
            if isinstance(error, ValueError) or damage_of(error):
                raise DamagedTokensError(self._path, str(error)) from error
            raise KeptFileError(
                f"{self._path}: the file of tokens cannot be used ({error}): {_remedy(error)}"
            ) from error


def _remedy(error: sqlite3.Error | OSError) -> str:
    if names_full_disk(error) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
        return "make room on its disk"
    if "is locked" in str(error):
        return "another program holds it; try again"
    return "make it writable"


def _readable(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=_BUSY_S
    )


def _writable(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Created here, so that nobody else can read it from its first moment on.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, _MODE))
    connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    # Few writes: each is on the disk when it returns, and no log lies beside the file.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    if not _version_of(connection):
        connection.execute("BEGIN IMMEDIATE")
        if not _version_of(connection):
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    connection.execute(_REVOKED)


def _revoke(connection: sqlite3.Connection, column: str, value: str, now_ms: int) -> None:
    """Delete a token and the sessions that began with it, and keep its id for a while.

    A board without a battery for its clock is in 1970 until it has asked for the time. What is
    revoked then must not look as if it were long forgotten: it counts as revoked when it was used
    last.
    """
    connection.execute("DELETE FROM revoked WHERE at_ms <= ?", (now_ms - REVOKED_KEPT_MS,))
    connection.execute(
        "INSERT OR REPLACE INTO revoked (id, at_ms)"
        " SELECT id, MAX(?, created_ms, COALESCE(last_used_ms, 0))"
        f" FROM tokens WHERE {column} = ?",
        (now_ms, value),
    )
    connection.execute(f"DELETE FROM tokens WHERE {column} = ?", (value,))


def _revoked_in(connection: sqlite3.Connection, now_ms: int) -> list[Any]:
    """Return rows of revoked tokens, ids and instants; none in a file of an earlier release."""
    found = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'revoked'"
    if not connection.execute(found).fetchall():
        return []
    kept = "SELECT id, at_ms FROM revoked WHERE at_ms > ? ORDER BY id"
    return connection.execute(kept, (now_ms - REVOKED_KEPT_MS,)).fetchall()


def _version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a file's tables; 0: it has none yet; ValueError: unknown."""
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    if version not in (0, _VERSION):
        raise ValueError(f"its tables are of version {version}, this edgebox knows {_VERSION}")
    return int(version)


def _revoked_of(row: Sequence[Any]) -> tuple[str, int]:
    id_, at_ms = row
    if not name_of(id_).isalnum() or not id_.isascii():
        raise ValueError("no id of a token")
    return str(id_), int(at_ms)


def _token_of(row: Sequence[Any]) -> Token:
    id_, name, scope, camera, sha256, created_ms, last_used_ms = row
    return Token(
        name_of(id_),
        name_of(name),
        Scope(scope),
        None if camera is None else CameraId(name_of(camera)),
        name_of(sha256),
        int(created_ms),
        None if last_used_ms is None else int(last_used_ms),
    )
