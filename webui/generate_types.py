"""Writes what the page knows of the box's answers, from the box's own OpenAPI document.

    python -m webui.generate_types      writes webui/src/api/api-types.ts and api-shapes.ts

The types are for the compiler. The shapes are for the page while it runs: an answer that is not as
described is refused where it comes in. A test compares both files with what this would write.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgebox.web import openapi
from edgebox.web.server import ROUTES

SOURCES = Path(__file__).resolve().parent / "src" / "api"
TYPES = SOURCES / "api-types.ts"
SHAPES = SOURCES / "api-shapes.ts"

OPERATIONS = (
    "GET /v1/addresses",
    "POST /v1/cameras",
    "POST /v1/sources/discover",
    "POST /v1/sources/test",
    "GET /v1/cameras/{id}",
    "GET /v1/cameras/{id}/history/boxes",
    "PATCH /v1/cameras/{id}",
    "DELETE /v1/cameras/{id}",
    "GET /v1/cameras/{id}/explanation",
    "GET /v1/cameras/{id}/history",
    "GET /v1/config",
    "GET /v1/events",
    "GET /v1/fleet",
    "GET /v1/jobs",
    "GET /v1/models",
    "GET /v1/pipelines",
    "POST /v1/models/{family}/profile",
    "POST /v1/models/{family}/default",
    "DELETE /v1/models/{family}",
    "POST /v1/infer",
    "GET /v1/plan",
    "GET /v1/state",
    "GET /v1/system",
    "GET /v1/session",
    "POST /v1/login",
    "POST /v1/logout",
    "GET /v1/tokens",
    "POST /v1/tokens",
    "DELETE /v1/tokens/{id}",
    "POST /v1/pairings",
    "POST /v1/pair",
)
"""What the page asks the box."""
ALSO = ("Batch", "DroppedRequest", "LiveFrameHeader", "PlanChange")
"""What comes over the page's WebSocket besides states; of its timeline, the parts."""

_HEADER = "// Written by webui/generate_types.py from the box's OpenAPI document: do not edit.\n\n"
_REFERENCE = "#/components/schemas/"
_PRIMITIVES = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}


def files() -> dict[Path, str]:
    """Return what the generated files must contain."""
    document = openapi.document(ROUTES, "0")
    schemas: dict[str, Any] = document["components"]["schemas"]
    answers = {name: _answer(document, name) for name in OPERATIONS}
    named = _reachable([*answers.values(), *(_reference(name) for name in ALSO)], schemas)
    types = [f"export type {name} = {_type(schemas[name])}\n" for name in named]
    answered = "".join(f"  '{name}': {_type(schema, 1)}\n" for name, schema in answers.items())
    types.append(
        "/** What each operation that the page uses answers. */\n"
        f"export interface Answers {{\n{answered}}}\n"
    )
    shapes = {name: _shape(schemas[name]) for name in named}
    operations = {name: _shape(schema) for name, schema in answers.items()}
    return {
        TYPES: _HEADER + "\n".join(types),
        SHAPES: _HEADER
        + "import type { Shape } from './shape'\n\n"
        + f"export const NAMED: Readonly<Record<string, Shape>> = {_object(shapes)}\n\n"
        + f"export const ANSWERS: Readonly<Record<string, Shape>> = {_object(operations)}\n",
    }


def _answer(document: Mapping[str, Any], operation: str) -> Any:
    """Return the schema of an operation's answer where it succeeds; null: it has no body."""
    method, path = operation.split(" ")
    responses = document["paths"][path][method.lower()]["responses"]
    (success,) = (answer for status, answer in responses.items() if status.startswith("2"))
    content = success.get("content", {})
    return content["application/json"]["schema"] if content else {"type": "null"}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": _REFERENCE + name}


def _reachable(roots: list[Any], schemas: Mapping[str, Any]) -> list[str]:
    """Return the names that some schemas refer to, in the order of the alphabet."""
    found: set[str] = set()
    waiting = [name for root in roots for name in _references(root)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_references(schemas[name]))
    return sorted(found)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(_REFERENCE)
        for part in schema.values():
            yield from _references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _type(schema: Mapping[str, Any], depth: int = 0) -> str:  # noqa: PLR0911
    """Write a schema as a TypeScript type."""
    match schema:
        case {"$ref": reference}:
            return str(reference).removeprefix(_REFERENCE)
        case {"const": value}:
            return _literal(value)
        case {"enum": values}:
            return " | ".join(map(_literal, values))
        case {"anyOf": options}:
            return " | ".join(dict.fromkeys(_type(option, depth) for option in options))
        case {"type": "array", "prefixItems": items}:
            return f"readonly [{', '.join(_type(item, depth) for item in items)}]"
        case {"type": "array"}:
            item = _type(schema["items"], depth) if schema.get("items") else "unknown"
            return f"ReadonlyArray<{item}>"
        case {"type": "object", "properties": fields}:
            return _fields(fields, schema.get("required", ()), depth)
        case {"type": "object", "additionalProperties": Mapping() as values}:
            return f"Readonly<Record<string, {_type(values, depth)}>>"
        case {"type": "null"}:
            return "null"
        case {"type": str() as name} if name in _PRIMITIVES:
            return _PRIMITIVES[name]
    return "unknown"


def _fields(fields: Mapping[str, Any], required: Any, depth: int) -> str:
    space = "  " * (depth + 1)
    lines = []
    for name, field in fields.items():
        if "description" in field:
            lines.append(f"{space}/** {field['description']} */\n")
        mark = "" if name in required else "?"
        lines.append(f"{space}{name}{mark}: {_type(field, depth + 1)}\n")
    return "{\n" + "".join(lines) + "  " * depth + "}"


def _shape(schema: Mapping[str, Any]) -> Any:  # noqa: PLR0911
    """Write a schema as a shape. Words of a list are not checked: a newer box may have more."""
    match schema:
        case {"$ref": reference}:
            return ["named", str(reference).removeprefix(_REFERENCE)]
        case {"const": value}:
            return ["const", value]
        case {"anyOf": options}:
            return ["any", *(_shape(option) for option in options)]
        case {"type": "array", "prefixItems": items}:
            return ["tuple", *(_shape(item) for item in items)]
        case {"type": "array"}:
            return ["array", _shape(schema.get("items", {}))]
        case {"type": "object", "properties": fields}:
            required = schema.get("required", ())
            shapes = {
                name if name in required else f"{name}?": _shape(field)
                for name, field in fields.items()
            }
            return ["object", shapes]
        case {"type": "object", "additionalProperties": Mapping() as values}:
            return ["map", _shape(values)]
        case {"type": "null"}:
            return "null"
        case {"type": str() as name} if name in _PRIMITIVES:
            return _PRIMITIVES[name]
    return "unknown"


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else json.dumps(value)


def _object(entries: Mapping[str, Any]) -> str:
    lines = (f"  {_key(name)}: {_written(shape)},\n" for name, shape in entries.items())
    return "{\n" + "".join(lines) + "}"


def _written(shape: Any) -> str:
    if isinstance(shape, Mapping):
        return "{ " + ", ".join(f"{_key(k)}: {_written(v)}" for k, v in shape.items()) + " }"
    if isinstance(shape, list):
        return "[" + ", ".join(map(_written, shape)) + "]"
    return _literal(shape)


def _key(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else f"'{name}'"


def main() -> int:
    """Write the files."""
    for file, text in files().items():
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
