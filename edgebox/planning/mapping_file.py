"""Owns the JSON form of a mapping problem and of its answer. Pure: the bytes come from the caller.

Every error names the source and the field.
"""

from typing import Any

from edgebox.domain.field_reader import FieldReader
from edgebox.planning.instance_file import instance_reader, refuse_twice
from edgebox.planning.mapping_problem import (
    Mapping,
    MappingCamera,
    MappingProblem,
    MappingVariant,
)

_WORKERS_MAX = 1_000
_BATCH_MAX = 4_096
_CAMERAS_MAX = 10_000
_NUMBER_MAX = 1e9


def parse_problem(text: bytes, source: str) -> MappingProblem:
    """Read a problem.

    Args:
        text: one JSON object; `docs/explanation/planning.md` describes it.
        source: what errors call it.

    Raises:
        InvalidInputError: the first mistake, with source and field.
    """
    return _read(instance_reader(text, source))


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


def _read(root: FieldReader) -> MappingProblem:
    workers = root.integer("workers", 1, _WORKERS_MAX)
    max_batch = root.integer("max_batch", 1, _BATCH_MAX)
    variants = tuple(
        MappingVariant(
            of.nonempty("name"),
            of.integer("input_px", 1, 1 << 20),
            of.number("accuracy", 0, 1),
            _numbers(of, "latency_ms", max_batch, "batch size", 0.001),
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
            of.nonempty("id"),
            of.number("rate_hz", 0.001, 10_000),
            _numbers(of, "budget_ms", len(variants), "variant", 0),
        )
        for of in found
    )
    refuse_twice(root, "variants", "name", [variant.name for variant in variants])
    refuse_twice(root, "cameras", "id", [camera.id for camera in cameras])
    return MappingProblem(workers, max_batch, variants, cameras)


def _numbers(of: FieldReader, key: str, length: int, what: str, least: float) -> tuple[float, ...]:
    numbers = of.numbers(key, least, _NUMBER_MAX)
    if len(numbers) != length:
        raise of.wrong(key, f"must have {length} numbers, one per {what}, not {len(numbers)}")
    return tuple(numbers)
