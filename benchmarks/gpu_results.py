"""Keeps the results of benchmarks/gpu.py in one file that grows from call to call.

A lent machine ends commands after some minutes, so every row is written as soon as it is measured,
and a later call goes on where an earlier one ended: it measures what is not in the file.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from edgebox.domain.errors import EdgeboxError, InvalidInputError

UNAVAILABLE = "unavailable"
"""The only field of a row that cannot be measured on this machine: why. It is tried each time."""

COLUMNS_MAX = 9
"""Of a table whose rows are what was measured."""

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to be measured."""

    key: str
    """Unique in its part."""
    measure: Callable[[], Figures]
    """Measures it; raises EdgeboxError where this machine cannot."""


def failing(key: str, error: EdgeboxError) -> Row:
    """Return a row that cannot be measured."""

    def measure() -> Figures:
        raise error

    return Row(key, measure)


@dataclass(frozen=True, slots=True)
class Budget:
    """How long one call may go on."""

    seconds: float
    began_s: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds that are left; below 0: it is spent."""
        return self.seconds - (time.monotonic() - self.began_s)


class Results:
    """The document of one machine: what it is, and the rows of each part by key."""

    def __init__(self, file: Path, about: Mapping[str, Any]) -> None:
        """Go on with a file, or begin one.

        Args:
            file: it need not be there.
            about: the machine and the versions, all of which a later call must have, too.

        Raises:
            InvalidInputError: the file cannot be read, or has the results of something else.
        """
        self.file = file
        self.document: dict[str, Any] = {"about": dict(about), "parts": {}}
        if not file.exists():
            return
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            before, parts = dict(found["about"]), dict(found["parts"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{file} is no results file of this benchmark") from error
        wrong = sorted(name for name, value in about.items() if before.get(name) != value)
        if wrong:
            raise InvalidInputError(
                f"{file} was measured with another {', '.join(wrong)}; choose another file (--out)"
            )
        self.document["parts"] = parts

    def rows(self, part: str) -> dict[str, Figures]:
        """Return the rows of a part by key."""
        rows: dict[str, Figures] = self.document["parts"].setdefault(part, {})
        return rows

    def measure(self, part: str, rows: Iterable[Row], budget: Budget, console: Console) -> int:
        """Measure the rows that are missing, and write each; return how many the budget left out.

        A row that cannot be measured says so once for each reason.
        """
        have = self.rows(part)
        for key in [key for key, row in have.items() if UNAVAILABLE in row]:
            del have[key]
        told: set[str] = set()
        left_out = 0
        for row in rows:
            if row.key in have:
                continue
            if budget.left_s <= 0:
                left_out += 1
                continue
            try:
                have[row.key] = row.measure()
                console.print(f"{part}: {row.key} ({max(0.0, budget.left_s):.0f} s left)")
            except EdgeboxError as error:
                have[row.key] = {UNAVAILABLE: str(error)}
                if str(error) not in told:
                    console.print(f"{part}: {row.key}: {error}", style="yellow", markup=False)
                    told.add(str(error))
            self.save()
        return left_out

    def save(self) -> None:
        """Write the file, whole or not at all."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        beside = self.file.with_suffix(".part")
        beside.write_text(json.dumps(self.document, indent=1) + "\n", encoding="utf-8")
        beside.replace(self.file)


def tables(rows: Mapping[str, Figures]) -> Iterable[Table]:
    """Yield the figures of a part, a table for each kind of row; lists are left out.

    A kind with many figures has a column for each row, for a page is not wide enough.
    """
    kinds: dict[tuple[str, ...], dict[str, Figures]] = {}
    for key, row in rows.items():
        shown = tuple(name for name, value in row.items() if not isinstance(value, list | dict))
        if shown != (UNAVAILABLE,):
            kinds.setdefault(shown, {})[key] = row
    for names, of_kind in kinds.items():
        cells = [[_shown(row[name]) for name in names] for row in of_kind.values()]
        if len(names) <= COLUMNS_MAX:
            yield _table(names, list(of_kind), cells)
        else:
            yield _table(list(of_kind), names, [list(of) for of in zip(*cells, strict=True)])


def _table(columns: Sequence[str], names: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    table = Table("", *columns)
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in zip(names, cells, strict=True):
        table.add_row(name, *row)
    return table


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "" if value is None else str(value)
