"""Owns the validation of JSON objects from outside, field by field, with all errors at once.

Pure: no clock, no I/O. Independent of any particular message.
"""

import math
import re
from collections.abc import Callable, Mapping

import orjson

from edgebox.domain.errors import InvalidInputError

INTEGER_MAX = 2**53 - 1
INSTANT_MAX_NS = 2**63 - 1
"""A monotonic clock passes 2**53 ns after 104 days of uptime."""

_SHOWN_CHARACTERS = 40


def parse_object(text: str | bytes) -> dict[str, object]:
    """Parse a text message.

    Raises:
        InvalidInputError: not JSON, or not an object.
    """
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"a text message must be JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InvalidInputError(f"a text message must be a JSON object, not {shown(parsed)}")
    return parsed


def shown(value: object) -> str:
    """Return a value as JSON, short enough for an error message."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


class FieldReader:
    """A reader of one object's fields that collects their errors until `finish`.

    A field that is absent takes its default; without one it is an error. `null` counts as absent.
    After an error a reader method returns some value of the right type, so that the remaining
    fields can be checked too; `finish` then raises.
    """

    def __init__(self, where: str, fields: Mapping[str, object]) -> None:
        self.where = where
        self.errors: list[str] = []
        self._fields = fields

    def finish(self) -> None:
        """Raise all collected errors.

        Raises:
            InvalidInputError: at least one field was wrong.
        """
        if self.errors:
            raise InvalidInputError("; ".join(self.errors))

    def text(
        self,
        name: str,
        default: str | None = None,
        *,
        length_min: int = 0,
        length_max: int = 64,
        pattern: re.Pattern[str] | None = None,
        expected: str | None = None,
    ) -> str:
        """Read a printable text."""
        wanted = expected or f"a text of {length_min} to {length_max} printable characters"

        def fits(value: object) -> bool:
            return (
                isinstance(value, str)
                and length_min <= len(value) <= length_max
                and value.isprintable()
                and (pattern is None or pattern.fullmatch(value) is not None)
            )

        return str(self._read(name, default, "", wanted, fits))

    def number(
        self,
        name: str,
        low: float,
        high: float,
        default: float | None = None,
        *,
        above: bool = False,
    ) -> float:
        """Read a finite number from `low` (excluded if `above`) to `high`."""
        if above:
            wanted = f"a number above {low:g} and at most {high:g}"
        elif math.isinf(high):
            wanted = "a number" if math.isinf(low) else f"a number of at least {low:g}"
        else:
            wanted = f"a number from {low:g} to {high:g}"

        def fits(value: object) -> bool:
            return (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and (low < value if above else low <= value)
                and value <= high
                and -math.inf < value < math.inf
            )

        value = self._read(name, default, low, wanted, fits)
        assert isinstance(value, int | float)
        return float(value) if abs(value) <= INTEGER_MAX else low

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """Read an integer from `low` to `high`; 3.0 is not one."""

        def fits(value: object) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

        value = self._read(name, default, low, f"an integer from {low} to {high}", fits)
        assert isinstance(value, int)
        return value

    def instant(self, name: str) -> int:
        """Read an instant on any monotonic clock, in ns."""
        return self.integer(name, 0, INSTANT_MAX_NS)

    def count(self, name: str, default: int | None = None) -> int:
        """Read a count."""
        return self.integer(name, 0, INTEGER_MAX, default)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Read true or false."""
        return bool(
            self._read(name, default, False, "true or false", lambda v: isinstance(v, bool))
        )

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Read one of some words."""
        wanted = "one of " + ", ".join(choices)
        return str(self._read(name, None, choices[0], wanted, lambda v: v in choices))

    def items(
        self, name: str, length_max: int, default: list[object] | None = None
    ) -> list[object]:
        """Read an array without checking its items."""
        wanted = f"an array of at most {length_max} items"

        def fits(value: object) -> bool:
            return isinstance(value, list) and len(value) <= length_max

        value = self._read(name, default, [], wanted, fits)
        assert isinstance(value, list)
        return value

    def inner(self, name: str, *, optional: bool = False) -> "FieldReader":
        """Read an object; its errors are collected here."""
        default: dict[str, object] | None = {} if optional else None
        value = self._read(name, default, {}, "an object", lambda v: isinstance(v, dict))
        assert isinstance(value, dict)
        reader = FieldReader(f"{self.where}.{name}", value)
        # A missing object is reported once, and not again for every field.
        missing = not optional and not isinstance(self._fields.get(name), dict)
        reader.errors = [] if missing else self.errors
        return reader

    def names(self) -> list[str]:
        """Return the names of all fields, known or not."""
        return list(self._fields)

    def _read(
        self,
        name: str,
        default: object,
        fallback: object,
        wanted: str,
        fits: Callable[[object], bool],
    ) -> object:
        value = self._fields.get(name)
        if value is None:
            if default is None:
                self.errors.append(f"{self.where}.{name} is missing: it must be {wanted}")
                return fallback
            return default
        if not fits(value):
            self.errors.append(f"{self.where}.{name} must be {wanted}, not {shown(value)}")
            return fallback
        return value
