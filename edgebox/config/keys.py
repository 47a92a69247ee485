"""Owns how a configuration key is declared, and which values it takes."""

import difflib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import Field, dataclass, field
from typing import Any, Literal

from edgebox.domain.field_reader import is_number

Secret = Literal["", "all", "path"]
"""What of a value nobody may see: nothing, all of it, or what follows the host of a URL."""


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """One key of the configuration, for people."""

    section: str
    repeated: bool
    """Whether the section may come any number of times: [[section]]."""
    name: str
    default: str
    """As it is written in TOML."""
    expected: str
    doc: str
    secret: Secret
    """What of its value is not to be shown to anybody."""


def key(
    default: Any,
    doc: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    may_be_empty: bool = False,
    secret: Secret = "",
    of: type = str,
    pattern: str = "",
    wanted: str = "",
    words: tuple[str, ...] = (),
) -> Any:
    """Declare a key: its default (whose type is the key's), its range, what it means.

    `of` is what a list has: `str`, `int` (0 or more), `float` (from `low` to `high`) or `tuple`
    (points of two numbers). A text must match `pattern`. `wanted` says in words what the value must
    be, where type, range and pattern do not. `words` may stand in place of a number.
    """
    return field(
        default=default,
        metadata={
            "doc": doc, "low": low, "high": high, "choices": choices, "may_be_empty": may_be_empty,
            "secret": secret, "of": of, "pattern": pattern, "wanted": wanted, "words": words,
        },
    )  # fmt: skip


def repeated(section: type) -> Any:
    """Declare a section that may come any number of times, as TOML's array of tables."""
    return field(default=(), metadata={"of": section})


def is_tables(declared: Field[Any]) -> bool:
    """Return whether it is a section that may come any number of times, not a key."""
    return "doc" not in declared.metadata


def converted(key: Field[Any], value: Any) -> Any:
    """Return a value as its key's type; None: it is of another type or out of range."""
    kind = type(key.default)
    if kind is tuple:
        of = key.metadata["of"]
        if of is float:
            low, high = key.metadata["low"], key.metadata["high"]
            fits = isinstance(value, list | tuple) and all(is_number(v, low, high) for v in value)
            return tuple(map(float, value)) if fits else None
        if of is tuple:
            return _points(value)
        fits = isinstance(value, list | tuple) and all(
            type(v) is of and (v if of is str else v >= 0) for v in value
        )
        return tuple(value) if fits else None
    if kind is float and type(value) is int and is_number(value):
        value = float(value)
    if type(value) is not kind:  # exactly: True is no number
        return value if value in key.metadata["words"] else None
    if kind is str:
        return value if _is_text(key, str(value)) else None
    fits = kind is bool or is_number(value, key.metadata["low"], key.metadata["high"])
    return value if fits else None


def _points(value: Any) -> tuple[tuple[float, float], ...] | None:
    pairs = isinstance(value, list | tuple) and all(
        isinstance(point, list | tuple) and len(point) == 2 and all(map(is_number, point))
        for point in value
    )
    return tuple((float(x), float(y)) for x, y in value) if pairs else None


def _is_text(key: Field[Any], text: str) -> bool:
    choices, pattern = key.metadata["choices"], key.metadata["pattern"]
    return (
        (not choices or text in choices)
        and (not pattern or re.fullmatch(pattern, text) is not None)
        and (text != "" or key.metadata["may_be_empty"])
    )


def expected(key: Field[Any]) -> str:
    """Return what a key's value must be, in words."""
    kind: type = type(key.default)
    if key.metadata["wanted"]:
        return str(key.metadata["wanted"])
    if kind is tuple:
        whats = {
            str: "texts",
            int: "whole numbers, 0 or more",
            tuple: "points, each [x, y]",
            float: f"numbers from {key.metadata['low']:g} to {key.metadata['high']:g}",
        }
        return f"a list of {whats[key.metadata['of']]}"
    if kind is bool:
        return "true or false"
    if kind is str:
        if key.metadata["choices"]:
            return "one of " + ", ".join(as_toml(choice) for choice in key.metadata["choices"])
        return "a text" if key.metadata["may_be_empty"] else "a text that is not empty"
    noun = "a whole number" if kind is int else "a number"
    words = "".join(f"{as_toml(word)}, " for word in key.metadata["words"])
    words = f"{words[:-2]} or " if words else ""
    return f"{words}{noun} from {key.metadata['low']:g} to {key.metadata['high']:.10g}"


def as_toml(value: Any) -> str:
    """Return a value as TOML writes it, near enough for people."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(as_toml(entry) for entry in value) + "]"
    return "a table" if isinstance(value, dict) else str(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return how to go on after a name that is not known: the closest one, or all there are."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f" (there are: {', '.join(known) or 'none'})"


def one_too_many(key: str, other: str) -> str:
    """Return what is wrong with a key that says what another one of its section says, too."""
    return f"{key}: there is a {other}, too; keep one of them"
