"""Derives schemas of documents from Python types, so that builder and schema cannot differ. Pure.

A document's type is a `TypedDict`, which mypy compares with what fills it, or a dataclass that is
written as it is. Its fields may be annotated: a text describes the field, `WithSchema` replaces the
schema that its type would have.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Union

from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    JsonSchema,
    Schema,
    array,
    constant,
    described,
    mapping,
    nullable,
    one_of,
    record,
    tuple_of,
    with_optional,
)


@dataclass(frozen=True, slots=True, eq=False)
class WithSchema:
    """An annotation: values have this schema, which may say more than their type."""

    schema: JsonSchema | Schema


Share = Annotated[float, WithSchema(SHARE)]
"""A number from 0 to 1."""

_PLAIN: Mapping[object, JsonSchema] = {str: TEXT, bool: BOOLEAN, int: COUNT, float: NUMBER}
_UNIONS = (Union, types.UnionType)


@cache
def schema_of(document: type) -> Schema:
    """Return the schema of a `TypedDict` or a dataclass, under the type's name."""
    hints = typing.get_type_hints(document, include_extras=True)
    if dataclasses.is_dataclass(document):
        hints = {field.name: hints[field.name] for field in dataclasses.fields(document)}
    required, optional = {}, {}
    for name, hint in hints.items():
        if typing.get_origin(hint) is NotRequired:
            (optional[name],) = map(value_schema, typing.get_args(hint))
        else:
            required[name] = value_schema(hint)
    return Schema(document.__name__, with_optional(record(**required), **optional))


def value_schema(hint: Any) -> JsonSchema | Schema:  # noqa: PLR0911
    """Return the schema of the values of a type."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _annotated(*parts)
    if origin is Literal:
        return constant(parts[0]) if len(parts) == 1 else one_of(*parts)
    if origin in _UNIONS:
        (present,) = (part for part in parts if part is not types.NoneType)
        return nullable(value_schema(present))
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple_of(*map(value_schema, parts))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return mapping(value_schema(parts[1]))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return array(value_schema(parts[0]))
    if (plain := _PLAIN.get(getattr(hint, "__supertype__", hint))) is not None:
        return plain
    if issubclass(hint, StrEnum):
        return one_of(*hint)
    return schema_of(hint)


def _annotated(hint: Any, *annotations: object) -> JsonSchema | Schema:
    schema: JsonSchema | Schema | None = None
    text = ""
    for annotation in annotations:
        if isinstance(annotation, str):
            text = annotation
        elif isinstance(annotation, WithSchema):
            schema = annotation.schema
    found = value_schema(hint) if schema is None else schema
    if not text:
        return found
    if isinstance(found, Schema):
        raise TypeError(f"{found.name} describes itself; the field cannot: {text}")
    return described(found, text)
