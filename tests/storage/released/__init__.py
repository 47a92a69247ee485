"""Databases of earlier versions: `schema-N.sql` was written by an edgebox whose schema was N.

    python -m tests.storage.released DATABASE > tests/storage/released/schema-N.sql

prints the schema of a box's database and some rows of each table. To be run with a database that a
box has served with, before the next migration is added. There was no version with schema 5.
"""

import sqlite3
from pathlib import Path

FOLDER = Path(__file__).parent
ROWS = 3
"""Of each table; of `history_names` all, since others refer to them."""


def dump(connection: sqlite3.Connection) -> str:
    """Return a database's schema and its first rows as SQL."""
    ((application,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    lines = [f"PRAGMA application_id = {application};", f"PRAGMA user_version = {version};"]
    made = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        " AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    ).fetchall()
    lines += [f"{sql};" for _, _, sql in made]
    for kind, name, _ in made:
        if kind != "table":
            continue
        columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({name})")]
        quoted = " || ', ' || ".join(f"quote({column})" for column in columns)
        limit = "" if name == "history_names" else f" LIMIT {ROWS}"
        lines += [
            f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({values});"
            for (values,) in connection.execute(f"SELECT {quoted} FROM {name}{limit}")
        ]
    return "\n".join(lines) + "\n"


def released() -> dict[int, Path]:
    """Return the dumps by version of the schema."""
    return {int(file.stem.split("-")[1]): file for file in FOLDER.glob("schema-*.sql")}


def build(version: int, file: Path) -> None:
    """Make the database of a version."""
    connection = sqlite3.connect(file)
    connection.executescript(released()[version].read_text("utf-8"))
    connection.close()
