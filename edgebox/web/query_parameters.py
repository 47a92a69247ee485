"""Declares parameters of routes: one declaration reads and describes a parameter.

Reading is strict: a value that is out of range, repeated or malformed is refused with a message
that names what was expected. So is an undeclared parameter.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from aiohttp import web

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import is_number, number_range, shown

Default = TypeVar("Default")
Location = Literal["query", "path"]

_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def decimal(text: str) -> float:
    """Return a decimal number; NaN: it is none. Only ASCII digits are digits."""
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


@dataclass(frozen=True, slots=True)
class Number(Generic[Default]):
    """A number in the query."""

    name: str
    low: float
    high: float
    default: Default
    doc: str
    location: Location = "query"

    def read(self, request: web.Request) -> float | Default:
        """Return a request's value, or the default.

        Raises:
            InvalidInputError: it is not a number in the range.
        """
        text = _only(request, self.name)
        if text is None:
            return self.default
        value = decimal(text)
        if not is_number(value, self.low, self.high):
            wanted = number_range(self.low, self.high)
            raise InvalidInputError(f"{self.name} must be {wanted}, not {text!r}")
        return value

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its values."""
        return _with_default(
            {"type": "number", "minimum": self.low, "maximum": self.high}, self.default
        )


@dataclass(frozen=True, slots=True)
class Integer(Generic[Default]):
    """A whole number in the query."""

    name: str
    low: int
    high: int
    default: Default
    doc: str
    location: Location = "query"

    def read(self, request: web.Request) -> int | Default:
        """Return a request's value, or the default.

        Raises:
            InvalidInputError: it is not a number in the range.
        """
        text = _only(request, self.name)
        if text is None:
            return self.default
        if not _WHOLE.fullmatch(text) or not self.low <= int(text) <= self.high:
            wanted = f"a whole number from {self.low} to {self.high}"
            raise InvalidInputError(f"{self.name} must be {wanted}, not {text!r}")
        return int(text)

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its values."""
        return _with_default(
            {"type": "integer", "minimum": self.low, "maximum": self.high}, self.default
        )


@dataclass(frozen=True, slots=True)
class Choice(Generic[Default]):
    """A choice of words in the query."""

    name: str
    choices: tuple[str, ...]
    default: Default
    doc: str
    location: Location = "query"

    def read(self, request: web.Request) -> str | Default:
        """Return a request's value, or the default.

        Raises:
            InvalidInputError: it is not one of the words.
        """
        text = _only(request, self.name)
        if text is None:
            return self.default
        if text not in self.choices:
            raise InvalidInputError(f"{self.name} must be {_any(self.choices)}, not {text!r}")
        return text

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its values."""
        return _with_default({"type": "string", "enum": list(self.choices)}, self.default)


@dataclass(frozen=True, slots=True)
class Text:
    """A text in the query, None where it is missing."""

    name: str
    doc: str
    location: Location = "query"
    required: bool = False
    pattern: re.Pattern[str] | None = None
    """The whole text must match it; None: any text will do."""
    expected: str = "another text"
    """Description of the pattern."""

    def read(self, request: web.Request) -> str | None:
        """Return a request's value.

        Raises:
            InvalidInputError: it is repeated, does not match, or is missing although required.
        """
        text = _only(request, self.name)
        if text is None and self.required:
            raise InvalidInputError(f"the parameter {self.name} is missing: {self.doc}")
        if text is not None and self.pattern is not None and not self.pattern.fullmatch(text):
            raise InvalidInputError(f"{self.name} must be {self.expected}, not {shown(text)}")
        return text

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its values."""
        if self.pattern is None:
            return {"type": "string"}
        return {"type": "string", "pattern": f"^{self.pattern.pattern}$"}


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in the query, each under the parameter's name: "?camera=gate&camera=door"."""

    name: str
    doc: str
    choices: tuple[str, ...] = ()
    """The permitted texts; empty: any text will do."""
    location: Location = "query"

    def read(self, request: web.Request) -> tuple[str, ...]:
        """Return a request's values, in its order.

        Raises:
            InvalidInputError: a value is not one of the choices.
        """
        texts = tuple(request.query.getall(self.name, ()))
        for text in texts:
            if self.choices and text not in self.choices:
                raise InvalidInputError(f"{self.name} must be {_any(self.choices)}, not {text!r}")
        return texts

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its values."""
        text: dict[str, Any] = {"type": "string"}
        if self.choices:
            text["enum"] = list(self.choices)
        return {"type": "array", "items": text}


@dataclass(frozen=True, slots=True)
class InPath:
    """A part of the path, `{name}` in it. Any text will do; the route looks it up."""

    name: str
    doc: str
    location: Location = field(default="path", init=False)

    def read(self, request: web.Request) -> str:
        """Return the part in a request's path."""
        return request.match_info[self.name]

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its values."""
        return {"type": "string", "minLength": 1}


Parameter = Number[Any] | Integer[Any] | Choice[Any] | Text | Texts | InPath


def check_names(request: web.Request, parameters: tuple[Parameter, ...]) -> None:
    """Refuse a query with undeclared parameters, which would be ignored silently.

    Raises:
        InvalidInputError: with the list of parameters.
    """
    known = [each.name for each in parameters if each.location == "query"]
    for name in request.query:
        if name not in known:
            there_is = f"there are {', '.join(known)}" if known else "this route has none"
            raise InvalidInputError(f"there is no parameter {name!r}; {there_is}")


def _only(request: web.Request, name: str) -> str | None:
    values = request.query.getall(name, [])
    if len(values) > 1:
        raise InvalidInputError(f"{name} may be given once, not {len(values)} times")
    return values[0] if values else None


def _any(choices: tuple[str, ...]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _with_default(schema: dict[str, Any], default: object) -> dict[str, Any]:
    return schema if default is None else {**schema, "default": default}
