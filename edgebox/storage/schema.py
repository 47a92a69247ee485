"""Owns the database's schema: one migration per version, applied in order, each whole or not.

`PRAGMA user_version` holds the version, `PRAGMA application_id` says the file is edgebox's. A
released migration is never changed; a new version is a new entry at the end.
"""

import aiosqlite

from edgebox.domain.errors import StorageError

APPLICATION_ID = 0x65646765  # "edge"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE profiles (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            batch_size INTEGER NOT NULL,
            quantiles_ns TEXT NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, batch_size)
        ) WITHOUT ROWID""",
        """CREATE TABLE cameras (
            camera TEXT PRIMARY KEY,
            hello TEXT NOT NULL,
            first_seen_ms INTEGER NOT NULL,
            last_seen_ms INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE metrics_minute (
            camera TEXT NOT NULL,
            minute_ms INTEGER NOT NULL,
            captured INTEGER NOT NULL,
            accepted INTEGER NOT NULL,
            on_time INTEGER NOT NULL,
            late INTEGER NOT NULL,
            dropped TEXT NOT NULL,
            latency_ms TEXT NOT NULL,
            mean_px REAL,
            variants TEXT NOT NULL,
            PRIMARY KEY (camera, minute_ms)
        ) WITHOUT ROWID""",
        "CREATE INDEX metrics_minute_by_time ON metrics_minute (minute_ms)",
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            at_ms INTEGER NOT NULL,
            level TEXT NOT NULL,
            camera TEXT,
            text TEXT NOT NULL
        )""",
        "CREATE INDEX events_by_time ON events (at_ms)",
    ),
    ("ALTER TABLE metrics_minute ADD COLUMN mismatches INTEGER NOT NULL DEFAULT 0",),
    (
        """CREATE TABLE judgements (
            family TEXT NOT NULL,
            variant TEXT NOT NULL,
            content TEXT NOT NULL,
            kind TEXT NOT NULL,
            accuracy REAL NOT NULL,
            error REAL NOT NULL,
            source TEXT NOT NULL,
            pictures INTEGER NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            set_aside TEXT NOT NULL,
            details TEXT NOT NULL,
            PRIMARY KEY (family, variant)
        ) WITHOUT ROWID""",
    ),
)


async def migrate(
    connection: aiosqlite.Connection, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS
) -> None:
    """Bring a database to the newest version.

    Args:
        connection: in autocommit mode (`isolation_level=None`).
        migrations: the statements of version 1, 2, ...

    Raises:
        StorageError: the file belongs to another program or to a newer edgebox.
        sqlite3.Error: the file is no database or cannot be written.
    """
    application = await _number(connection, "PRAGMA application_id")
    version = await _number(connection, "PRAGMA user_version")
    tables = await _number(connection, "SELECT count(*) FROM sqlite_master")
    if application != APPLICATION_ID and (application or version or tables):
        raise StorageError("another program's database: name another file in storage.path")
    if version > len(migrations):
        raise StorageError(
            f"written by a newer edgebox (schema {version}; this one knows up to "
            f"{len(migrations)}): upgrade edgebox, or move the file away to start afresh"
        )
    for number in range(version, len(migrations)):
        await connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in migrations[number]:
                await connection.execute(statement)
            await connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            await connection.execute(f"PRAGMA user_version = {number + 1}")
            await connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                await connection.execute("ROLLBACK")
            raise


async def _number(connection: aiosqlite.Connection, query: str) -> int:
    ((value,),) = await connection.execute_fetchall(query)
    return int(value)
