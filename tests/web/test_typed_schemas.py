"""Schemas derived from types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import pytest

from edgebox.web.schemas import BOOLEAN, COUNT, NUMBER, SHARE, TEXT, Schema
from edgebox.web.typed_schemas import Share, WithSchema, schema_of, value_schema

Name = NewType("Name", str)


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass
class Point:
    x: float
    label: Name

    @property
    def shown(self) -> str:
        return f"{self.label} at {self.x}"


class Shape(TypedDict):
    corners: Sequence[Point]
    note: NotRequired[Annotated[str, "What it is"]]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, TEXT),
        (Name, TEXT),
        (bool, BOOLEAN),
        (int, COUNT),
        (float, NUMBER),
        (Share, SHARE),
        (Share | None, {"anyOf": [SHARE, {"type": "null"}]}),
        (Literal["state"], {"const": "state"}),
        (Literal["in", "out"], {"type": "string", "enum": ["in", "out"]}),
        (Colour, {"type": "string", "enum": ["red", "green"]}),
        (list[int], {"type": "array", "items": COUNT}),
        (tuple[int, ...], {"type": "array", "items": COUNT}),
        (
            tuple[float, int],
            {"type": "array", "prefixItems": [NUMBER, COUNT], "minItems": 2, "maxItems": 2},
        ),
        (Mapping[Name, int], {"type": "object", "additionalProperties": COUNT}),
        (Annotated[int, "Frames"], {**COUNT, "description": "Frames"}),
        (Annotated[Any, WithSchema(TEXT), "Free"], {**TEXT, "description": "Free"}),
    ],
)
def test_types_and_their_schemas(hint: Any, schema: Any) -> None:
    assert value_schema(hint) == schema


def test_a_document_is_described_by_its_fields() -> None:
    shape = schema_of(Shape)
    corners = shape.definition["properties"]["corners"]["items"]
    assert shape.name == "Shape"
    assert shape.definition["required"] == ["corners"]
    assert shape.definition["properties"]["note"] == {**TEXT, "description": "What it is"}
    assert corners == Schema(
        "Point",
        {"type": "object", "properties": {"x": NUMBER, "label": TEXT}, "required": ["x", "label"]},
    )


def test_a_type_has_one_schema() -> None:
    """Two objects would be two schemas of one name, which the OpenAPI document refuses."""
    assert schema_of(Point) is schema_of(Shape).definition["properties"]["corners"]["items"]


def test_a_named_schema_cannot_be_described_by_a_field() -> None:
    with pytest.raises(TypeError, match="Point describes itself"):
        value_schema(Annotated[Point, "The first corner"])
