"""The OpenAPI document: it describes exactly what the server routes, in sound schemas."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from edgebox.storage.database import IN_MEMORY, Storage
from edgebox.web.openapi import document
from edgebox.web.page import ASSETS
from edgebox.web.routes import Answer, Route
from edgebox.web.schemas import Schema
from edgebox.web.server import ROUTES, application
from tests.web.sites import site_of

DOCUMENT = document(ROUTES, "1.2.3")
OTHER_PROTOCOLS = ("/v2", "/v1/vision")
PAGES = {("GET", "/"), ("GET", "/camera")}


async def routed() -> set[tuple[str, str]]:
    """Return every method and path that the server's own router knows."""
    storage = await Storage.open(IN_MEMORY)
    app = application(site_of(storage))
    await storage.close()
    return {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None
        and not route.resource.canonical.startswith((ASSETS, *OTHER_PROTOCOLS))
    }


async def test_the_document_and_the_router_know_the_same() -> None:
    described = {
        (method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods
    }
    sockets = {("GET", path) for path in DOCUMENT["x-websockets"]}
    known = await routed()
    heads = {(method, path) for method, path in known if method == "HEAD"}
    assert known - heads == described | sockets | PAGES
    assert {path for _, path in heads} == {p for m, p in described if m == "GET"} | {
        p for _, p in PAGES
    }


def test_a_websocket_says_how_it_is_opened_and_what_else_it_answers() -> None:
    results = DOCUMENT["x-websockets"]["/v1/results"]
    names = [each["name"] for each in results["parameters"]]
    assert names == ["camera", "class", "score_min", "outcome", "max_hz", "format", "empty"]
    assert list(results["responses"]["200"]["content"]) == ["text/event-stream"]
    assert "`too_many_subscribers`" in results["responses"]["503"]["description"]
    assert set(DOCUMENT["x-websockets"]) == {"/v1/results", "/v1/stream", "/v1/ui"}


def operations() -> Iterator[Any]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield pytest.param(path, operation, id=f"{method} {path}")


@pytest.mark.parametrize(("path", "operation"), [*operations()])
def test_an_operation_says_what_it_takes_and_what_may_come_of_it(
    path: str, operation: dict[str, Any]
) -> None:
    parameters = operation.get("parameters", [])
    in_path = [each["name"] for each in parameters if each["in"] == "path"]
    assert in_path == re.findall(r"{(\w+)}", path)
    assert all(each["description"] for each in parameters)
    statuses = list(operation["responses"])
    assert any(status.startswith("2") for status in statuses)
    for status, response in operation["responses"].items():
        assert response["description"]
        if status == "default" or (status.startswith("4") and status != "404"):
            assert list(response["content"]) == ["application/problem+json"]


def test_operations_have_names_of_their_own() -> None:
    names = [o["operationId"] for methods in DOCUMENT["paths"].values() for o in methods.values()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_schemas_are_sound_and_whole(name: str) -> None:
    schema = DOCUMENT["components"]["schemas"][name]
    Draft202012Validator.check_schema(schema)
    for reference in re.findall(r"#/components/schemas/(\w+)", str(schema)):
        assert reference in DOCUMENT["components"]["schemas"]


def test_two_schemas_of_one_name_are_refused() -> None:
    def route(path: str, schema: Schema) -> Route:
        return Route(
            method="GET", path=path, answer=ROUTES[0].answer, summary=path, scope=None,
            answers=(Answer("It.", schema),),
        )  # fmt: skip

    one, two = Schema("A", {"type": "string"}), Schema("A", {"type": "number"})
    document((route("/a", one), route("/b", one)), "1")
    with pytest.raises(ValueError, match="two schemas are called A"):
        document((route("/a", one), route("/b", two)), "1")
