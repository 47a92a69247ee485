"""Terminal output: tables, progress, one line for an error."""

import contextlib
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import click
import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from edgebox.domain.errors import EdgeboxError

_WIDTH_ELSEWHERE = 120
"""Columns where the output is no terminal (a file, a journal): tables are not squeezed."""
LINE_PERIOD_S = 15.0
"""Where the output is no terminal, progress is told at each quarter and as often as this."""


class _Errors(Console):
    """Standard error, which a program outlives: a box whose log nobody reads any more serves on."""

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on; rich would end the process."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stderr.fileno())
            os.close(nowhere)


def _console(stream: TextIO, stderr: bool) -> Console:
    width = None if stream.isatty() else _WIDTH_ELSEWHERE
    made = _Errors if stderr else Console
    # What is told has names and messages of others: ":x:" in them is no emoji.
    return made(stderr=stderr, highlight=False, emoji=False, width=width)


err = _console(sys.stderr, True)
out = _console(sys.stdout, False)

HEALTH_STYLES = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


def print_json(document: object) -> None:
    """Print one JSON document, for programs."""
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


class Speaker:
    """Tells people what a command does, on stderr."""

    structured = False
    """Whether every line has one format, for programs."""

    def tell(self, markup: str, level: int = logging.INFO) -> None:
        """Tell a text with rich's markup; the level is for programs."""
        # One line stays one, so that it is found in a file; a terminal breaks it by itself.
        err.print(markup, soft_wrap=True)


_speakers = [Speaker()]


@contextlib.contextmanager
def speak_with(speaker: Speaker) -> Iterator[None]:
    """Let another speaker tell people meanwhile."""
    _speakers.append(speaker)
    try:
        yield
    finally:
        _speakers.remove(speaker)


def tell(markup: str, level: int = logging.INFO) -> None:
    """Tell people a text with rich's markup."""
    _speakers[-1].tell(markup, level)


@contextlib.contextmanager
def clear_errors(command: str) -> Iterator[None]:
    """Turn an EdgeboxError into one message on stderr and its exit code, mostly 1."""
    try:
        yield
    except EdgeboxError as error:
        tell(f"[bold red]edgebox {command}:[/] {escape(str(error))}", logging.ERROR)
        raise SystemExit(error.exit_code) from None


@contextlib.contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """Show long work as a bar on a terminal, as a few lines elsewhere; callable from any thread."""
    if quiet:
        yield lambda text, share: None
        return
    if _speakers[-1].structured or not err.is_terminal:
        told, told_s = "", -math.inf

        def line(text: str, share: float) -> None:
            nonlocal told, told_s
            now_s = time.monotonic()
            quarter = f"{text}: {share * 4 // 1 * 25:.0f} %"
            if quarter != told:
                tell(escape(quarter))
            elif now_s - told_s >= LINE_PERIOD_S:
                tell(escape(f"{text}: {share * 100:.0f} %"))
            else:
                return
            told, told_s = quarter, now_s

        yield line
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    ) as bars:
        tasks: dict[str, Any] = {}

        def bar(text: str, share: float) -> None:
            if text not in tasks:
                tasks[text] = bars.add_task(text, total=1.0)
            bars.update(tasks[text], completed=share)

        yield bar


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table; the first column is text, the others are figures."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="dim")
    for number, heading in enumerate(headings):
        made.add_column(heading, justify="right" if number else "left")
    for row in rows:
        made.add_row(*row)
    return made


def scatter(
    points: Sequence[tuple[float, float, str]], across: str, *, width: int = 60, height: int = 10
) -> list[str]:
    """Return a plot of (x, y, mark) as lines of text, x on a logarithmic scale; later marks win.

    Args:
        points: at least one, x above 0.
        across: what x is.
        width: columns between the axes.
        height: lines.
    """
    xs, ys = [math.log(x) for x, _, _ in points], [y for _, y, _ in points]
    left, wide = min(xs), (max(xs) - min(xs)) or 1.0
    low, tall = min(ys), (max(ys) - min(ys)) or 1.0
    cells = [[" "] * width for _ in range(height)]
    for x, y, (_, _, mark) in zip(xs, ys, points, strict=True):
        row = round((height - 1) * (1 - (y - low) / tall))
        cells[row][round((width - 1) * (x - left) / wide)] = mark
    labels = {0: f"{max(ys):.3f}", height - 1: f"{low:.3f}"}
    lines = [f"{labels.get(at, ''):>7} │{''.join(row)}" for at, row in enumerate(cells)]
    first, last = f"{points[xs.index(min(xs))][0]:.1f}", f"{points[xs.index(max(xs))][0]:.1f}"
    middle = across.center(width - len(first) - len(last))
    return [*lines, f"{'':>7} └{'─' * width}", f"{'':>9}{first}{middle}{last}"]
