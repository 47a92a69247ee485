"""Owns the validation of everything that comes from outside: one object's fields, one by one.

Messages, request bodies, scenarios, workloads, mapping problems and manifests are read here; the
configuration and query parameters use the same checks of single values. Pure: no clock, no I/O.
"""

import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import orjson

from edgebox.domain.errors import EdgeboxError, InvalidInputError

INTEGER_MAX = 2**53 - 1
INSTANT_MAX_NS = 2**63 - 1
"""A monotonic clock passes 2**53 ns after 104 days of uptime."""

FieldPath = tuple[str | int, ...]
"""The names and positions that lead from the document to a field."""

_SHOWN_CHARACTERS = 60
_MESSAGE_CHARACTERS = 40
_UNSET = object()


# -- single values --------------------------------------------------------------------------------


_FLOAT_MAX = sys.float_info.max
"""Larger whole numbers are no floats."""


def is_number(
    value: object, low: float = -math.inf, high: float = math.inf, *, above: bool = False
) -> TypeGuard[int | float]:
    """Return whether a value is a finite number from `low` (excluded if `above`) to `high`."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (low < value if above else low <= value)
        and value <= high
        and -_FLOAT_MAX <= value <= _FLOAT_MAX
    )


def is_integer(value: object, low: int, high: int) -> TypeGuard[int]:
    """Return whether a value is an integer from `low` to `high`; 3.0 is not one."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def number_range(low: float, high: float, *, above: bool = False) -> str:
    """Return what `is_number` accepts, in words."""
    if above:
        return f"a number above {low:g} and at most {high:g}"
    if math.isinf(high):
        return "a number" if math.isinf(low) else f"a number of at least {low:g}"
    return f"a number from {low:g} to {high:g}"


def shown(value: object, characters: int = _MESSAGE_CHARACTERS) -> str:
    """Return a value as JSON, short enough for an error message."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        text = repr(value)
    return text if len(text) <= characters else text[: characters - 3] + "..."


def shown_in_document(value: object) -> str:
    """Return a value as JSON, as errors about files show it."""
    return shown(value, _SHOWN_CHARACTERS)


def dotted(path: FieldPath, first: int = 0) -> str:
    """Return a path as text: "cameras[0].rate_hz"; `first` is the number of the first position."""
    text = "".join(f"[{part + first}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def parse_object(text: str | bytes, what: str = "a text message") -> dict[str, object]:
    """Parse a JSON object.

    Raises:
        InvalidInputError: not JSON, or not an object; `what` names it.
    """
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"{what} must be JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InvalidInputError(f"{what} must be a JSON object, not {shown(parsed)}")
    return parsed


# -- objects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notation:
    """How the errors about one kind of document are written, in that document's own terms."""

    locate: Callable[[FieldPath], str] = lambda path: f"{dotted(path)} "
    """Returns the beginning of a message: where the field is, up to "must be"."""
    error: type[EdgeboxError] = InvalidInputError
    show: Callable[[object], str] = shown_in_document
    word: Callable[[str], str] = str
    """Returns one choice of several as it is written in the document."""
    integer: str = "a whole number"
    array: str = "a list"
    object: str = "an object"
    missing: str = "is missing"
    """May name what a missing field must be: `{}`."""
    unknown: str = "there is no such key (there are: {})"
    collects: bool = False
    """Whether `finish` raises all errors together; else the first one is raised at once."""
    null_is_absent: bool = False


MESSAGE = Notation(
    show=shown,
    integer="an integer",
    array="an array",
    missing="is missing: it must be {}",
    unknown="is not known; there are {}",
    collects=True,
    null_is_absent=True,
)
"""Messages and requests: their sender learns of every wrong field at once."""


class FieldReader:
    """A reader of one object's fields.

    A field that is absent takes its default; without one it is an error. If errors are collected,
    a reader method returns some value of the right type after one, so that the remaining fields can
    be checked too; `finish` then raises.
    """

    def __init__(
        self,
        where: str | FieldPath,
        fields: Mapping[str, object],
        notation: Notation = MESSAGE,
    ) -> None:
        """Read `fields`, which are at `where` in their document."""
        self.path: FieldPath = (where,) if isinstance(where, str) else where
        self.errors: list[str] = []
        self._fields = fields
        self._notation = notation
        self._used: dict[str, None] = {}

    def __contains__(self, name: str) -> bool:
        """Say whether a field is there."""
        return name in self._fields

    def names(self) -> list[str]:
        """Return the names of all fields, known or not."""
        return list(self._fields)

    def raw(self, name: str) -> object:
        """Return a field's value unchecked; None: it is absent."""
        self._used[name] = None
        return self._fields.get(name)

    # -- errors -----------------------------------------------------------------------------

    def wrong(self, name: str | FieldPath, problem: str, value: object = _UNSET) -> EdgeboxError:
        """Return the error that says what is wrong with a field; a `value` is shown."""
        return self._notation.error(self._message(name, problem, value))

    def refuse(self, name: str | FieldPath, problem: str, value: object = _UNSET) -> None:
        """Collect what is wrong with a field, or raise it."""
        message = self._message(name, problem, value)
        if not self._notation.collects:
            raise self._notation.error(message)
        self.errors.append(message)

    def refuse_unknown(self, known: Collection[str] | None = None) -> None:
        """Refuse fields that are not `known`; None: those that nobody has read so far."""
        for name in self._fields:
            if name not in (self._used if known is None else known):
                there_are = sorted(self._used) if known is None else known
                self.refuse(name, self._notation.unknown.format(", ".join(there_are)))

    def finish(self) -> None:
        """Raise all collected errors.

        Raises:
            EdgeboxError: at least one field was wrong.
        """
        if self.errors:
            raise self._notation.error("; ".join(self.errors))

    def _message(self, name: str | FieldPath, problem: str, value: object) -> str:
        path = (*self.path, name) if isinstance(name, str) else (*self.path, *name)
        found = "" if value is _UNSET else f", not {self._notation.show(value)}"
        return f"{self._notation.locate(path)}{problem}{found}"

    # -- one value --------------------------------------------------------------------------

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

        def fits(value: object) -> bool:
            return (
                isinstance(value, str)
                and length_min <= len(value) <= length_max
                and value.isprintable()
                and (pattern is None or pattern.fullmatch(value) is not None)
            )

        def wanted() -> str:
            return expected or f"a text of {length_min} to {length_max} printable characters"

        return str(self._read(name, default, "", wanted, fits))

    def nonempty(self, name: str, default: str | None = None) -> str:
        """Read a text that is not empty; the default may be."""
        wanted = "a text that is not empty"
        return str(self._read(name, default, "", wanted, lambda v: isinstance(v, str) and v != ""))

    def number(
        self,
        name: str,
        low: float,
        high: float,
        default: float | None = None,
        *,
        above: bool = False,
        expected: str | None = None,
    ) -> float:
        """Read a finite number from `low` (excluded if `above`) to `high`."""
        value = self._read(
            name,
            default,
            low,
            lambda: expected or number_range(low, high, above=above),
            lambda value: is_number(value, low, high, above=above),
        )
        assert isinstance(value, int | float)
        return float(value) if abs(value) <= INTEGER_MAX else low

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """Read an integer from `low` to `high`; 3.0 is not one."""
        value = self._read(
            name,
            default,
            low,
            lambda: f"{self._notation.integer} from {low} to {high}",
            lambda value: is_integer(value, low, high),
        )
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

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """Read one of some words."""
        return str(
            self._read(
                name,
                default,
                choices[0],
                lambda: "one of " + ", ".join(map(self._notation.word, choices)),
                lambda value: value in choices,
            )
        )

    # -- several values ---------------------------------------------------------------------

    def items(
        self, name: str, length_max: int | None = None, default: list[object] | None = None
    ) -> list[object]:
        """Read an array without checking its items; None: of any length."""

        def wanted() -> str:
            array = self._notation.array
            return array if length_max is None else f"{array} of at most {length_max} items"

        def fits(value: object) -> bool:
            return isinstance(value, list) and (length_max is None or len(value) <= length_max)

        value = self._read(name, default, [], wanted, fits)
        assert isinstance(value, list)
        return value

    def texts(self, name: str) -> list[str]:
        """Read an array of texts that are not empty; one that is absent is empty."""

        def fits(value: object) -> bool:
            return isinstance(value, list) and all(isinstance(v, str) and v for v in value)

        value = self._read(name, [], [], lambda: f"{self._notation.array} of texts", fits)
        assert isinstance(value, list)
        return value

    def numbers(
        self,
        name: str,
        low: float,
        high: float,
        *,
        length: int | None = None,
        default: list[object] | None = None,
    ) -> list[float]:
        """Read an array of numbers: so many, or any number but none."""

        def wanted() -> str:
            count = f"{length} numbers" if length else "numbers, at least one"
            return f"{self._notation.array} of {count}"

        def fits(value: object) -> bool:
            return isinstance(value, list) and (len(value) == length if length else len(value) > 0)

        value = self._read(name, default, [low] * (length or 1), wanted, fits)
        assert isinstance(value, list)
        for at, entry in enumerate(value):
            if not is_number(entry, low, high):
                self.refuse((name, at), f"must be {number_range(low, high)}", entry)
        return [float(entry) if is_number(entry) else low for entry in value]

    def inner(self, name: str, *, optional: bool = False) -> "FieldReader":
        """Read an object; its errors are collected here."""
        default: dict[str, object] | None = {} if optional else None
        value = self._read(
            name, default, {}, lambda: self._notation.object, lambda v: isinstance(v, dict)
        )
        assert isinstance(value, dict)
        reader = FieldReader((*self.path, name), value, self._notation)
        # A missing object is reported once, and not again for every field.
        missing = not optional and not isinstance(self._fields.get(name), dict)
        reader.errors = [] if missing else self.errors
        return reader

    def objects(
        self, name: str, length_max: int | None = None, default: list[object] | None = None
    ) -> list["FieldReader"]:
        """Read an array of objects; their errors are collected here."""
        readers = []
        for at, item in enumerate(self.items(name, length_max, default)):
            if isinstance(item, dict):
                reader = FieldReader((*self.path, name, at), item, self._notation)
                reader.errors = self.errors
                readers.append(reader)
            else:
                self.refuse((name, at), f"must be {self._notation.object}", item)
        return readers

    def _read(
        self,
        name: str,
        default: object,
        fallback: object,
        wanted: str | Callable[[], str],
        fits: Callable[[object], bool],
    ) -> object:
        self._used[name] = None
        value = self._fields.get(name)
        if value is None and (self._notation.null_is_absent or name not in self._fields):
            if default is not None:
                return default
            expected = wanted if isinstance(wanted, str) else wanted()
            self.refuse(name, self._notation.missing.format(expected))
            return fallback
        if not fits(value):
            expected = wanted if isinstance(wanted, str) else wanted()
            self.refuse(name, f"must be {expected}", value)
            return fallback
        return value
