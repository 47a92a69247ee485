"""A few functions in which the schemas of documents are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

JsonSchema = Mapping[str, Any]
"""A JSON Schema; a `Schema` inside it stands for a reference."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON Schema with a name, described once in the OpenAPI document."""

    name: str
    definition: JsonSchema


TEXT: JsonSchema = {"type": "string"}
BOOLEAN: JsonSchema = {"type": "boolean"}
NUMBER: JsonSchema = {"type": "number"}
COUNT: JsonSchema = {"type": "integer", "minimum": 0}
SHARE: JsonSchema = {"type": "number", "minimum": 0, "maximum": 1}


def record(**fields: object) -> JsonSchema:
    """Describe an object that has all of these fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def with_optional(schema: JsonSchema, **fields: object) -> JsonSchema:
    """Describe an object like `record`'s that may have further fields."""
    return {**schema, "properties": {**schema["properties"], **fields}}


def some_of(**fields: object) -> JsonSchema:
    """Describe an object that has any of these fields and no others."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


def request_of(required: Mapping[str, object], **optional: object) -> JsonSchema:
    """Describe a request's object, which may have no other fields."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def mapping(values: object) -> JsonSchema:
    """Describe an object of any names."""
    return {"type": "object", "additionalProperties": values}


def array(items: object) -> JsonSchema:
    """Describe a list."""
    return {"type": "array", "items": items}


def tuple_of(*items: object) -> JsonSchema:
    """Describe a list of a fixed length."""
    return {
        "type": "array", "prefixItems": list(items), "minItems": len(items),
        "maxItems": len(items),
    }  # fmt: skip


def one_of(*words: str) -> JsonSchema:
    """Describe a choice of words."""
    return {"type": "string", "enum": list(words)}


def any_of(*schemas: object) -> JsonSchema:
    """Describe a value that matches one of these."""
    return {"anyOf": list(schemas)}


def constant(value: object) -> JsonSchema:
    """Describe a constant."""
    return {"const": value}


def described(schema: JsonSchema, doc: str) -> JsonSchema:
    """Add a description."""
    return {**schema, "description": doc}


def nullable(schema: object) -> JsonSchema:
    """Describe a value that may be null: unknown or absent."""
    return {"anyOf": [schema, {"type": "null"}]}
