"""Owns how a configuration key is declared: default, range and explanation, in one place."""

from dataclasses import field
from typing import Any


def key(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    may_be_empty: bool = False,
) -> Any:
    """Declare a key: its default (whose type is the key's), its range, what it means."""
    return field(
        default=default,
        metadata={
            "doc": doc, "low": low, "high": high, "choices": choices, "may_be_empty": may_be_empty,
        },
    )  # fmt: skip


def repeated(section: type) -> Any:
    """Declare a section that may come any number of times, as TOML's array of tables."""
    return field(default=(), metadata={"of": section})
