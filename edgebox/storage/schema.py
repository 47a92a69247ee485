"""The database's schema: one migration per version, applied in order, each atomically.

`PRAGMA user_version` holds the version, `PRAGMA application_id` says the file is edgebox's. A
released migration is never changed; a new version is a new entry at the end.
"""

import contextlib
import functools
import itertools
import sqlite3

import aiosqlite

from edgebox.domain.errors import StorageError
from edgebox.storage import migrate_v3

APPLICATION_ID = 0x65646765  # "edge"

APPENDED = ("history_names", "history_minute", "history_hour", "events")
"""Tables of which a box reads nothing at its start: it adds to them, and draws charts of them."""

_REASONS_3 = (
    "sender", "queue", "infeasible", "invalid", "overload", "failed", "departed", "shutdown",
)  # fmt: skip

_NAMES_3 = """CREATE TABLE history_names (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    camera TEXT NOT NULL UNIQUE
)"""


def _history_3(table: str, key: str = "at, name") -> str:
    """Return the statement that creates a table of history in version 3."""
    counts = (
        "covered_ms", "connected_ms", "captured", "accepted", "on_time", "late", "mismatches",
        *(f"dropped_{reason}" for reason in _REASONS_3),
        "width_px_sum", "received_bytes", "measured_bits", "measured_busy_us",
        "estimated_sum_bps", "estimated_count",
    )  # fmt: skip
    return f"""CREATE TABLE {table} (
        at INTEGER NOT NULL,
        name INTEGER NOT NULL,
        {", ".join(f"{count} INTEGER NOT NULL" for count in counts)},
        measured_least_bps INTEGER,
        estimated_least_bps INTEGER,
        measured_most_bps INTEGER,
        estimated_most_bps INTEGER,
        variants TEXT NOT NULL,
        latencies BLOB NOT NULL,
        PRIMARY KEY ({key})
    ) WITHOUT ROWID"""


def _carried_over_3(table: str, step_ms: int, *, box: bool) -> str:
    """Return the statement that adds the minutes of version 2 up to steps of a new table."""
    camera = "''" if box else "metrics_minute.camera"
    dropped = ", ".join(f"sum(coalesce(json_extract(dropped, '$.{r}'), 0))" for r in _REASONS_3)
    return f"""INSERT INTO {table}
        SELECT minute_ms / {step_ms} AS at,
            (SELECT id FROM history_names AS known WHERE known.camera = {camera}) AS name,
            60000 * count(DISTINCT minute_ms / 60000),
            60000 * count(DISTINCT camera || ' ' || (minute_ms / 60000)),
            sum(captured), sum(accepted), sum(on_time), sum(late), sum(mismatches),
            {dropped},
            sum(coalesce(cast(round(mean_px * (on_time + late)) AS INTEGER), 0)),
            0, 0, 0, 0, 0, NULL, NULL, NULL, NULL,
            carried_counts(json_group_array(json(variants))),
            carried_latencies(json_group_array(json_array(on_time + late, json(latency_ms))))
        FROM metrics_minute GROUP BY minute_ms / {step_ms}, {camera}"""


def _with_tracked(table: str) -> str:
    return f"ALTER TABLE {table} ADD COLUMN tracked TEXT NOT NULL DEFAULT '{{}}'"


def _with_plan(table: str) -> str:
    return f"ALTER TABLE {table} ADD COLUMN dropped_plan INTEGER NOT NULL DEFAULT 0"


def _with_classes(table: str) -> str:
    return f"ALTER TABLE {table} ADD COLUMN classes TEXT NOT NULL DEFAULT '{{}}'"


_CARRIED = {"carried_counts": migrate_v3.counts, "carried_latencies": migrate_v3.latencies}
"""SQL functions of the third migration."""

SECONDS = (
    _NAMES_3,
    # By name first: in memory, writing a second to many places is cheap.
    _history_3("history_second", "name, at"),
    _with_tracked("history_second"),
    _with_plan("history_second"),
    _with_classes("history_second"),
    "CREATE INDEX history_second_by_time ON history_second (at)",
)
"""Schema of the database in memory with the finest history."""

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
        "ALTER TABLE cameras ADD COLUMN overrides TEXT NOT NULL DEFAULT '{}'",
        _NAMES_3,
        "INSERT INTO history_names (camera) SELECT '' UNION SELECT camera FROM metrics_minute",
        *(
            statement
            for table, step_ms in (("history_minute", 60_000), ("history_hour", 3_600_000))
            for statement in (
                _history_3(table),
                _carried_over_3(table, step_ms, box=False),
                _carried_over_3(table, step_ms, box=True),
            )
        ),
        "DROP TABLE metrics_minute",
    ),
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
    (
        """CREATE TABLE learned_work (
            fingerprint TEXT NOT NULL,
            variant TEXT NOT NULL,
            app TEXT NOT NULL,
            work BLOB NOT NULL,
            learned_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, variant, app)
        ) WITHOUT ROWID""",
        """CREATE TABLE learned_drift (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            factor REAL NOT NULL,
            learned_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant)
        ) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE interference (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            neighbours TEXT NOT NULL,
            interference REAL NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant)
        ) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE judgements RENAME TO accuracy_reports",
        "ALTER TABLE accuracy_reports RENAME COLUMN set_aside TO dominated",
    ),
    (
        # What was measured while all others ran says nothing of fewer: it is measured again.
        "DROP TABLE interference",
        """CREATE TABLE interference (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            beside TEXT NOT NULL,
            others INTEGER NOT NULL,
            neighbours TEXT NOT NULL,
            factor REAL NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, beside, others)
        ) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE core_factors (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            batch_size INTEGER NOT NULL,
            threads INTEGER NOT NULL,
            factor REAL NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, batch_size, threads)
        ) WITHOUT ROWID""",
    ),
    (_with_tracked("history_minute"), _with_tracked("history_hour")),
    (
        """CREATE TABLE cascade_evidence (
            camera TEXT PRIMARY KEY,
            decider TEXT NOT NULL,
            hard BLOB NOT NULL,
            easy BLOB NOT NULL,
            logits BLOB NOT NULL,
            recorded_at_ms INTEGER NOT NULL
        ) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE sources (
            camera TEXT PRIMARY KEY,
            settings TEXT NOT NULL
        ) WITHOUT ROWID""",
    ),
    (_with_plan("history_minute"), _with_plan("history_hour")),
    (_with_classes("history_minute"), _with_classes("history_hour")),
    (
        """CREATE TABLE fleet_settings (
            camera TEXT NOT NULL,
            setting TEXT NOT NULL,
            counter INTEGER NOT NULL,
            box TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (camera, setting)
        ) WITHOUT ROWID""",
    ),
    ("ALTER TABLE fleet_settings ADD COLUMN here INTEGER NOT NULL DEFAULT 0",),
)


@functools.cache
def tables_read_at_start() -> tuple[str, ...]:
    """Return the tables of the newest version that a box reads at its start."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for name in _CARRIED:
            connection.create_function(name, 1, lambda value: value)
        for statement in itertools.chain(*MIGRATIONS):
            connection.execute(statement)
        rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    tables = {name for (name,) in rows if not name.startswith("sqlite_")}
    return tuple(sorted(tables.difference(APPENDED)))


class ForeignDatabaseError(StorageError):
    """The file belongs to another program or to a newer edgebox, so a person has to decide."""

    exit_code = 78
    """As for a wrong configuration: another start cannot succeed."""


class NoSchemaError(StorageError):
    """The version of a database was never written by edgebox."""


async def migrate(
    connection: aiosqlite.Connection, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS
) -> None:
    """Bring a database to the newest version.

    Args:
        connection: in autocommit mode (`isolation_level=None`).
        migrations: the statements of version 1, 2, ...

    Raises:
        NoSchemaError: the file is damaged.
        ForeignDatabaseError: the file belongs to another program or to a newer edgebox.
        sqlite3.Error: the file is not a database or cannot be written.
    """
    application = await _number(connection, "PRAGMA application_id")
    version = await _number(connection, "PRAGMA user_version")
    tables = await _number(connection, "SELECT count(*) FROM sqlite_master")
    if application != APPLICATION_ID and (application or version or tables):
        raise ForeignDatabaseError("another program's database: name another file in storage.path")
    if version < 0 or (application == APPLICATION_ID and not version):
        raise NoSchemaError(f"damaged: there is no schema {version}")
    if version > len(migrations):
        raise ForeignDatabaseError(
            f"written by a newer edgebox (schema {version}; this one knows up to "
            f"{len(migrations)}), it is left as it is: upgrade edgebox, or restore a backup of "
            "this version (edgebox restore), or move the file away to start afresh"
        )
    for name, function in _CARRIED.items():
        await connection.create_function(name, 1, function)
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
