"""Skips damaged rows, and logs one line about them.

A file that was edited, or is on a failing disk, may have damaged rows. They must not keep a box
from starting, or make other rows unreadable.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import orjson

_Row = TypeVar("_Row")

_log = logging.getLogger(__name__)

_UNREADABLE = "\ufffd"
READ_ERRORS = (TypeError, ValueError, OverflowError)
"""Exceptions of readers for a damaged row."""


def names_full_disk(error: Exception) -> bool:
    """Return whether an error of SQLite says that the disk is full."""
    return "disk is full" in str(error)


def text_of(stored: bytes) -> str:
    """Return text from the database; bytes that are not UTF-8 become U+FFFD."""
    return stored.decode(errors="replace")


def name_of(stored: Any) -> str:
    """Return a name.

    Raises:
        TypeError: it is no text.
        ValueError: it is not as it was written.
    """
    if not isinstance(stored, str):
        raise TypeError("a name that is no text")
    if _UNREADABLE in stored:
        raise ValueError("a name that is no UTF-8")
    return stored


def object_of(stored: Any) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        TypeError: it is no text.
        ValueError: it is no JSON, or no object.
    """
    value = orjson.loads(stored)
    if not isinstance(value, dict):
        raise TypeError("JSON that is no object")
    return value


def sound(
    rows: Iterable[Sequence[Any]], read: Callable[[Sequence[Any]], _Row], what: str, name_at: int
) -> list[_Row]:
    """Return the readable rows; log one line about the others.

    Args:
        rows: as SQLite returns them.
        read: converts a row, or raises one of `READ_ERRORS`.
        what: the rows' contents, in the plural, for the log.
        name_at: the column that identifies a row.
    """
    found: list[_Row] = []
    damaged: list[str] = []
    for row in rows:
        try:
            found.append(read(row))
        except READ_ERRORS as error:
            damaged.append(f"{row[name_at]}: {error}")
    if damaged:
        _log.warning(
            "%d damaged rows of %s are ignored (the first: %s)", len(damaged), what, damaged[0]
        )
    return found
