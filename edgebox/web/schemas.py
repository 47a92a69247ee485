"""Owns the words that schemas of documents are written in: a few, to keep them readable."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

JsonSchema = Mapping[str, Any]
"""A JSON Schema; in place of one inside it, a `Schema` stands for a reference to it."""


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


def some_of(**fields: object) -> JsonSchema:
    """Describe an object that has any of these fields and no others."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


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
    """Describe one of some words."""
    return {"type": "string", "enum": list(words)}


def constant(value: object) -> JsonSchema:
    """Describe the one value there is."""
    return {"const": value}


def described(schema: JsonSchema, doc: str) -> JsonSchema:
    """Add what a value means."""
    return {**schema, "description": doc}


def nullable(schema: object) -> JsonSchema:
    """Describe a value that may be null: not known, or not there."""
    return {"anyOf": [schema, {"type": "null"}]}
