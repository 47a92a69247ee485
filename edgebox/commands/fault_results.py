"""The file to which a long search for faults writes a line for every seed, so that it can go on."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson

from edgebox.domain.errors import InvalidInputError
from edgebox.simulation.faults.fault_kinds import FaultKind
from edgebox.simulation.faults.fault_search import Failure, SeedResult

_BEGINNING = b'{"seed":'
"""Of every line."""


class FaultResults:
    """One line of JSON for each seed that was run; without a path nothing is kept."""

    def __init__(self, path: Path | None, kinds: Collection[FaultKind] | None) -> None:
        """Read what an earlier search has written.

        Args:
            path: of the file, which need not exist.
            kinds: the kinds of faults of this search; None: those that each seed draws.

        Raises:
            InvalidInputError: the file is something else, or cannot be read or written.
        """
        self._path = path
        self._kinds = None if kinds is None else sorted(kinds)
        self._lines: list[dict[str, Any]] = []
        self._cut_off = b""
        if path is not None:
            with _usable(path):
                path.open("ab").close()  # a search that could keep nothing does not begin
                self._lines, self._cut_off = _read(path)

    @property
    def cut_off(self) -> bool:
        """Whether the last line is not whole: `add` writes in its place."""
        return bool(self._cut_off)

    def known(self, given: Mapping[int, int]) -> list[SeedResult]:
        """Return the results of those seeds that were run with the same events and kinds.

        Args:
            given: the events of each seed.
        """
        found = {
            line["seed"]: line
            for line in self._lines
            if line["kinds"] == self._kinds and line["given"] == given.get(line["seed"])
        }
        return [_result(line["result"]) for line in found.values()]

    def add(self, result: SeedResult, given: int) -> None:
        """Append a result; `given`: the events that the seed was to run.

        Raises:
            InvalidInputError: it cannot be written.
        """
        if self._path is None:
            return
        line = {"seed": result.seed, "given": given, "kinds": self._kinds}
        # Not asdict: it makes a Counter count its own items.
        told = {each.name: getattr(result, each.name) for each in fields(result)}
        text = orjson.dumps({**line, "result": told}, option=orjson.OPT_NON_STR_KEYS)
        with _usable(self._path), self._path.open("ab") as file:
            if self._cut_off:
                file.truncate(file.tell() - len(self._cut_off))
                self._cut_off = b""
            file.write(text + b"\n")


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise InvalidInputError(f"{path}: results cannot be kept there: {why}") from None


def _read(path: Path) -> tuple[list[dict[str, Any]], bytes]:
    """Return the lines of a file, and what there is of a last line that was cut off."""
    *texts, cut_off = path.read_bytes().split(b"\n")
    if not cut_off.startswith(_BEGINNING[: len(cut_off)]):  # none that `add` began
        texts, cut_off = [*texts, cut_off], b""
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            line = orjson.loads(text)
            _result(line["result"])
            assert {"seed", "given", "kinds"} <= line.keys()
        except (ValueError, KeyError, TypeError, AssertionError):
            message = f"{path}:{number} is no result of a seed: name a file of your own"
            raise InvalidInputError(message) from None
        lines.append(line)
    return lines, cut_off


def _result(told: dict[str, Any]) -> SeedResult:
    failure = told["failure"]
    if failure is not None:
        kinds = tuple(map(FaultKind, failure["kinds"]))
        failure = Failure(**{**failure, "kinds": kinds})
    counts = {name: Counter[str](told[name]) for name in ("ends", "losses")}
    return SeedResult(**{**told, **counts, "failure": failure})
