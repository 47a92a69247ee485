"""Owns the reading of typed values from a TOML file; errors name file, line and key.

Pure: the text is an argument. Lines are found by scanning the text for headers and keys, because
Python's parser keeps none: O(lines), once.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgebox.domain.errors import InvalidInputError
from edgebox.link.fields import shown

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"' ]+?)\s*=")


def parse_toml(text: str, name: str) -> "Table":
    """Read a document.

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
    return Table(values, (), _LineNumbers(name, _lines(text)))


@dataclass(frozen=True, slots=True)
class _LineNumbers:
    """The file's name and the lines of its headers and keys."""

    name: str
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the table that contains it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class Table:
    """One table of the document; `finish` reports every key that was not read."""

    def __init__(self, values: dict[str, Any], path: Path, line_numbers: _LineNumbers) -> None:
        self._values = values
        self._path = path
        self._line_numbers = line_numbers
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        """Say whether a key exists."""
        return key in self._values

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        low: float = 0.0,
        high: float = 1e9,
        above: bool = False,
    ) -> float:
        """Return a number from `low` (or above it) to `high`; without a default it is required.

        Raises:
            InvalidInputError: it is missing or not such a number.
        """
        return self._as_number(key, self._value(key, default), low=low, high=high, above=above)

    def whole(
        self, key: str, default: int | None = None, *, low: int = 0, high: int = 1 << 53
    ) -> int:
        """Return a whole number.

        Raises:
            InvalidInputError: it is missing or not one in this range.
        """
        value = self._value(key, default)
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(key, f"must be a whole number from {low} to {high}", value)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text that is not empty.

        Raises:
            InvalidInputError: it is missing or not one.
        """
        value = self._value(key, default)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, "must be a text that is not empty", value)
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false.

        Raises:
            InvalidInputError: it is neither.
        """
        value = self._values.get(key, default)
        self._read.add(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "must be true or false", value)
        return value

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return one of some texts.

        Raises:
            InvalidInputError: it is missing or another one.
        """
        value = self._value(key, default)
        if value not in choices:
            raise self.wrong(key, f"must be one of {', '.join(choices)}", value)
        return str(value)

    def numbers(
        self, key: str, *, length: int | None = None, low: float = 0.0, high: float = 1e9
    ) -> list[float]:
        """Return a list of numbers, at least one, or exactly this many.

        Raises:
            InvalidInputError: it is missing or not such a list.
        """
        value = self._value(key, None)
        if not isinstance(value, list) or not value or (length and len(value) != length):
            count = f"{length} numbers" if length else "numbers, at least one"
            raise self.wrong(key, f"must be a list of {count}", value)
        return [self._as_number(key, entry, low=low, high=high) for entry in value]

    def texts(self, key: str) -> list[str]:
        """Return a list of texts, empty if it is not there.

        Raises:
            InvalidInputError: it is not one.
        """
        value = self._value(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise self.wrong(key, "must be a list of texts", value)
        return value

    def is_list(self, key: str) -> bool:
        """Say whether the value is a list."""
        return isinstance(self._values.get(key), list)

    def is_text(self, key: str) -> bool:
        """Say whether the value is a text."""
        return isinstance(self._values.get(key), str)

    def keys(self) -> list[str]:
        """Return the keys that are there."""
        return list(self._values)

    def table(self, key: str) -> "Table":
        """Return a table, an empty one if it is not there.

        Raises:
            InvalidInputError: it is not a table.
        """
        value = self._value(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a table", value)
        return Table(value, (*self._path, key), self._line_numbers)

    def tables(self, key: str) -> list["Table"]:
        """Return an array of tables, written `[[key]]`; none if it is not there.

        Raises:
            InvalidInputError: it is not one.
        """
        value = self._value(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.wrong(key, f"must be tables, each under [[{key}]]", value)
        return [
            Table(entry, (*self._path, key, at), self._line_numbers)
            for at, entry in enumerate(value)
        ]

    def finish(self) -> None:
        """Refuse keys that were not read.

        Raises:
            InvalidInputError: there is one.
        """
        for key in self._values:
            if key not in self._read:
                known = ", ".join(sorted(self._read))
                raise self.wrong(key, f"there is no such key (there are: {known})")

    def wrong(self, key: str, what: str, value: Any = None) -> InvalidInputError:
        """Return the error that names a key's line."""
        path = (*self._path, key)
        if key in self._values and value is not None:
            what += f", not {shown(value)}"
        return InvalidInputError(
            f"{self._line_numbers.name}:{self._line_numbers.line(path)}: {_dotted(path)}: {what}"
        )

    def _as_number(
        self, key: str, value: Any, *, low: float, high: float, above: bool = False
    ) -> float:
        good = type(value) in (int, float) and math.isfinite(value) and low <= value <= high
        if not good or (above and value == low):
            start = f"above {low:g}, up to" if above else f"from {low:g} to"
            raise self.wrong(key, f"must be a number {start} {high:g}", value)
        return float(value)

    def _value(self, key: str, default: Any) -> Any:
        self._read.add(key)
        if key in self._values:
            return self._values[key]
        if default is None:
            raise self.wrong(key, "is missing")
        return default


def _lines(text: str) -> dict[Path, int]:
    """Return where each header and each key at the start of a line is."""
    found: dict[Path, int] = {}
    seen: Counter[str] = Counter()
    at: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            names = _parts(header[2])
            if header[1] == "[[":
                dotted = ".".join(names)
                at = (*names, seen[dotted])
                seen[dotted] += 1
            else:
                first = names[0]
                inside = (seen[first] - 1,) if seen[first] else ()
                at = (first, *inside, *names[1:])
            found.setdefault(at, number)
        elif key := _KEY.match(line):
            found.setdefault((*at, *_parts(key[1])), number)
    return found


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _dotted(path: Path) -> str:
    out = ""
    for part in path:
        out += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return out.removeprefix(".")
