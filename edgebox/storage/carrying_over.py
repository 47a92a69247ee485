"""Copies tables from one database into another, as far as they can be read."""

import contextlib
import sqlite3

import aiosqlite

from edgebox.storage.damage import names_full_disk
from edgebox.storage.schema import MIGRATIONS, tables_read_at_start

_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""SQLite quotes what it finds in a damaged schema, whatever that is."""


async def carry_over(
    connection: aiosqlite.Connection, source: str, *, events: bool = False
) -> list[str]:
    """Copy what a box reads at its start from a file, which may be damaged.

    Args:
        connection: to a new database; in autocommit mode.
        source: the file's path, or its URI if the connection takes these.
        events: copy these, too.

    Returns:
        The tables of which rows may be missing.

    Raises:
        sqlite3.OperationalError: the new database's disk is full.
    """
    tables = [*tables_read_at_start(), *(("events",) if events else ())]
    try:
        await connection.execute("ATTACH ? AS file", (source,))
    except _UNREADABLE:
        return tables  # there is no file, or it is no database
    try:
        return [table for table in tables if not await _copied(connection, table)]
    finally:
        with contextlib.suppress(*_UNREADABLE):
            await connection.execute("DETACH file")


async def _copied(connection: aiosqlite.Connection, table: str) -> bool:
    """Copy a table; return whether all of it."""
    try:
        ((version,),) = await connection.execute_fetchall("PRAGMA file.user_version")
        if version != len(MIGRATIONS):
            return False
        await connection.execute(f"INSERT INTO main.{table} SELECT * FROM file.{table}")
    except _UNREADABLE as error:
        _raise_if_full(error)
        for row in await _readable_rows(connection, table):
            marks = ", ".join("?" for _ in row)
            try:
                await connection.execute(f"INSERT INTO main.{table} VALUES ({marks})", row)
            except sqlite3.Error as refused:  # it is there already, or makes no sense
                _raise_if_full(refused)
        return False
    return True


def _raise_if_full(error: Exception) -> None:
    if names_full_disk(error):
        raise error


async def _readable_rows(connection: aiosqlite.Connection, table: str) -> list[sqlite3.Row]:
    """Return the rows of a table before the first that cannot be read, and behind the last."""
    columns = await connection.execute_fetchall(f"PRAGMA main.table_info({table})")
    keys = [name for _, name in sorted((place, name) for _, name, *_, place in columns if place)]
    found = []
    for order in ("ASC", "DESC"):
        by_key = ", ".join(f"{name} {order}" for name in keys)
        query = f"SELECT * FROM file.{table} ORDER BY {by_key}"
        with contextlib.suppress(*_UNREADABLE):
            async with connection.execute(query) as rows:
                while (row := await rows.fetchone()) is not None:
                    found.append(row)
    return found
