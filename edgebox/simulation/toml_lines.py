"""Owns the place of every value in a TOML file, so that errors name file, line and key.

Pure: the text is an argument. Lines are found by scanning the text for headers and keys, because
Python's parser keeps none: O(lines), once.
"""

import re
import tomllib

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import FieldPath, FieldReader, Notation, dotted

_SHOWN_CHARACTERS = 60
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"' ]+?)\s*=")


def parse_toml(text: str, name: str) -> FieldReader:
    """Return a reader of a document.

    Args:
        text: of the file.
        name: of the file, for messages.

    Raises:
        InvalidInputError: it is not TOML.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        line = int(where[1]) if where else max(1, len(text.splitlines()))
        raise InvalidInputError(f"{name}:{line}: is not valid TOML: {error}") from None
    lines = _lines(text)

    def locate(path: FieldPath) -> str:
        return f"{name}:{_line(path, lines)}: {dotted(path, first=1)}: "

    return FieldReader((), values, Notation(locate, show=_shown, object="a table"))


def _line(path: FieldPath, lines: dict[FieldPath, int]) -> int:
    """Return the line of a value, or of the table that contains it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _lines(text: str) -> dict[FieldPath, int]:
    """Return where each header and each key at the start of a line is."""
    found: dict[FieldPath, int] = {}
    seen: dict[FieldPath, int] = {}
    at: FieldPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            at = _place(_parts(header[2]), seen, is_entry=header[1] == "[[")
            found.setdefault(at, number)
        elif key := _KEY.match(line):
            found.setdefault((*at, *_parts(key[1])), number)
    return found


def _place(names: tuple[str, ...], seen: dict[FieldPath, int], *, is_entry: bool) -> FieldPath:
    """Return the path of a header's table; count it if it is an entry of an array of tables.

    Args:
        names: of the header.
        seen: the number of entries of each array so far.
        is_entry: whether the header has double brackets.
    """
    at: FieldPath = ()
    for depth, name in enumerate(names, 1):
        at = (*at, name)
        if is_entry and depth == len(names):
            seen[at] = seen.get(at, 0) + 1
        if at in seen:
            at = (*at, seen[at] - 1)
    return at


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
