"""Owns the JSON form of a mapping problem and of its answer. Pure: the bytes come from the caller.

Every error names the source and the field.
"""

import math
from typing import Any

import orjson

from edgebox.domain.errors import InvalidInputError
from edgebox.link.fields import shown
from edgebox.planning.mapping_problem import (
    Mapping,
    MappingCamera,
    MappingProblem,
    MappingVariant,
)

_WORKERS_MAX = 1_000
_BATCH_MAX = 4_096
_CAMERAS_MAX = 10_000


def parse_problem(text: bytes, source: str) -> MappingProblem:
    """Read a problem.

    Args:
        text: one JSON object; `docs/explanation/planning.md` describes it.
        source: what errors call it.

    Raises:
        InvalidInputError: the first mistake, with source and field.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"{source}: is not JSON: {error}") from None
    return _read(_Fields(document, source, ""))


def mapping_document(problem: MappingProblem, mapping: Mapping) -> dict[str, Any]:
    """Return an answer as programs read it."""
    return {
        "served": mapping.served,
        "objective": mapping.objective(problem),
        "workers": [
            {
                "variant": problem.variants[worker.variant].name,
                "batch": worker.batch,
                "cameras": [problem.cameras[camera].id for camera in worker.cameras],
            }
            for worker in mapping.workers
        ],
    }


class _Fields:
    """One JSON object of the document, and where it is."""

    def __init__(self, value: Any, source: str, path: str) -> None:
        self._source, self._path = source, path
        if not isinstance(value, dict):
            raise self.wrong("", "must be a JSON object")
        self._value = value

    def wrong(self, key: str, what: str) -> InvalidInputError:
        """Return the error that says what is wrong with a field."""
        where = ".".join(part for part in (self._path, key) if part)
        return InvalidInputError(f"{self._source}: {where + ': ' if where else ''}{what}")

    def text(self, key: str) -> str:
        """Return a text that is not empty."""
        value = self._present(key)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, f"must be a text that is not empty, not {shown(value)}")
        return value

    def whole(self, key: str, most: int) -> int:
        """Return a whole number from 1."""
        value = self._present(key)
        if type(value) is not int or not 1 <= value <= most:
            raise self.wrong(key, f"must be a whole number from 1 to {most}, not {shown(value)}")
        return value

    def number(self, key: str, least: float, most: float) -> float:
        """Return a number within bounds."""
        return self._number(key, self._present(key), least, most)

    def numbers(self, key: str, length: int, of: str, least: float, most: float) -> Any:
        """Return a tuple of so many numbers within bounds."""
        value = self._list(key)
        if len(value) != length:
            raise self.wrong(key, f"must have {length} numbers, one per {of}, not {len(value)}")
        entries = enumerate(value)
        return tuple(self._number(f"{key}[{at}]", entry, least, most) for at, entry in entries)

    def objects(self, key: str) -> list["_Fields"]:
        """Return a list of objects."""
        return [
            _Fields(entry, self._source, f"{key}[{at}]") for at, entry in enumerate(self._list(key))
        ]

    def _list(self, key: str) -> list[Any]:
        value = self._present(key)
        if not isinstance(value, list):
            raise self.wrong(key, f"must be a list, not {shown(value)}")
        return value

    def _number(self, key: str, value: Any, least: float, most: float) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or not least <= value <= most:
            bounds = f"a number from {least:g} to {most:g}"
            raise self.wrong(key, f"must be {bounds}, not {shown(value)}")
        return float(value)

    def _present(self, key: str) -> Any:
        if key not in self._value:
            raise self.wrong(key, "is missing")
        return self._value[key]


def _read(root: _Fields) -> MappingProblem:
    workers = root.whole("workers", _WORKERS_MAX)
    max_batch = root.whole("max_batch", _BATCH_MAX)
    variants = tuple(
        MappingVariant(
            of.text("name"),
            of.whole("input_px", 1 << 20),
            of.number("accuracy", 0, 1),
            of.numbers("latency_ms", max_batch, "batch size", 0.001, 1e9),
        )
        for of in root.objects("variants")
    )
    if not variants:
        raise root.wrong("variants", "must have at least one entry")
    found = root.objects("cameras")
    if len(found) > _CAMERAS_MAX:
        raise root.wrong("cameras", f"must be at most {_CAMERAS_MAX}, not {len(found)}")
    cameras = tuple(
        MappingCamera(
            of.text("id"),
            of.number("rate_hz", 0.001, 10_000),
            of.numbers("budget_ms", len(variants), "variant", 0, 1e9),
        )
        for of in found
    )
    _refuse_twice(root, "variants", "name", [variant.name for variant in variants])
    _refuse_twice(root, "cameras", "id", [camera.id for camera in cameras])
    return MappingProblem(workers, max_batch, variants, cameras)


def _refuse_twice(root: _Fields, of: str, key: str, names: list[str]) -> None:
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name in seen:
            raise root.wrong(f"{of}[{at}].{key}", f"{shown(name)} is there twice")
        seen.add(name)
