"""Licences of packages, from whatever of the metadata says it best."""

import re
from collections.abc import Mapping
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import pytest

from edgebox.web.schemas import Schema
from edgebox.web.system import ROUTES, licence_of, packages


def about(*fields: tuple[str, str]) -> metadata.PackageMetadata:
    message = Message()
    for name, value in fields:
        message[name] = value
    return cast(metadata.PackageMetadata, message)


MIT = ("Classifier", "License :: OSI Approved :: MIT License")


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT OR Apache-2.0"), MIT], "MIT OR Apache-2.0"),
        ([MIT, ("License", "see LICENSE")], "MIT License"),
        ([("Classifier", "License :: OSI Approved"), ("License", "BSD")], "BSD"),
        ([("License", "\nThe Long Licence\n\nPermission is hereby")], "The Long Licence"),
        ([("Classifier", "Topic :: Multimedia")], None),
        ([], None),
    ],
)
def test_a_licence_is_named_by_what_says_it_best(
    fields: list[tuple[str, str]], licence: str | None
) -> None:
    assert licence_of(about(*fields)) == licence


def test_what_edgebox_stands_on_is_listed_once_with_its_licence() -> None:
    names = [package["name"].lower() for package in packages()]
    assert names == sorted(set(names))
    by_name = {package["name"].lower(): package for package in packages()}
    assert by_name["aiohttp"]["version"] == metadata.version("aiohttp")
    assert "Apache" in by_name["aiohttp"]["licence"]


def test_the_documentation_names_every_field() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/http-api.md").read_text()
    section = text[text.index("`GET /v1/system` describes") :].partition("\n## ")[0]
    schema = ROUTES[0].answers[0].schema
    assert isinstance(schema, Schema)
    wanted = set()
    for name, of in cast(Mapping[str, Any], schema.definition["properties"]).items():
        if isinstance(of, Schema):
            inner = cast(Mapping[str, Any], of.definition["properties"])
            wanted |= {f"{name}.{field}" for field in inner}
        else:
            wanted.add(name)
    assert wanted == set(re.findall(r"`([a-z_.]+)`", section)) - {"name", "version", "licence"}
