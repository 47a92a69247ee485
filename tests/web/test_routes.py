"""Declared routes: what a query may say, what errors look like, and that every problem is known."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer, make_mocked_request

from edgebox.domain.errors import InvalidInputError, UnknownNameError
from edgebox.web.api_discovery import kinds_of
from edgebox.web.problems import problem_documents
from edgebox.web.query_parameters import (
    Choice,
    Integer,
    Number,
    Parameter,
    Text,
    Texts,
    check_names,
)
from edgebox.web.server import ROUTES

SHARE = Number("share", 0.0, 1.0, 0.5, "")
COUNT = Integer("count", 1, 10, None, "")
FORM = Choice("form", ("round", "square"), "round", "")
NAME = Text("name", "")
NAMES = Texts("names", "")
ENDS = Texts("ends", "", ("late", "on_time", "dropped"))
ALL: tuple[Parameter, ...] = (SHARE, COUNT, FORM, NAME, NAMES, ENDS)


def request(query: str) -> web.Request:
    return make_mocked_request("GET", f"/?{query}")


@pytest.mark.parametrize(
    ("parameter", "query", "value"),
    [
        (SHARE, "", 0.5),
        (SHARE, "share=0.25", 0.25),
        (SHARE, "share=1e-1", 0.1),
        (COUNT, "", None),
        (COUNT, "count=10", 10),
        (FORM, "", "round"),
        (FORM, "form=square", "square"),
        (NAME, "", None),
        (NAME, "name=gate%202", "gate 2"),
        (NAMES, "", ()),
        (NAMES, "names=b&share=1&names=a", ("b", "a")),
        (ENDS, "ends=dropped&ends=late", ("dropped", "late")),
    ],
)
def test_a_parameter_is_read(parameter: Parameter, query: str, value: object) -> None:
    assert parameter.read(request(query)) == value


@pytest.mark.parametrize(
    ("parameter", "query", "message"),
    [
        (SHARE, "share=1.01", "share must be a number from 0 to 1, not '1.01'"),
        (SHARE, "share=nan", "share must be a number from 0 to 1, not 'nan'"),
        (SHARE, "share=0_1", "share must be a number"),
        (SHARE, "share=%D9%A1", "share must be a number"),
        (SHARE, "share=0&share=0", "share may be given once, not 2 times"),
        (COUNT, "count=0", "count must be a whole number from 1 to 10, not '0'"),
        (COUNT, "count=2.0", "count must be a whole number"),
        (COUNT, "count=" + "9" * 5000, "count must be a whole number"),
        (FORM, "form=flat", "form must be round or square, not 'flat'"),
        (NAME, "name=a&name=b", "name may be given once"),
        (ENDS, "ends=late&ends=lost", "ends must be late, on_time or dropped, not 'lost'"),
    ],
)
def test_what_is_no_such_value_is_refused(parameter: Parameter, query: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message.replace("(", r"\(")):
        parameter.read(request(query))


def test_a_name_that_nobody_declared_is_refused() -> None:
    check_names(request("share=1&name=x"), ALL)
    with pytest.raises(InvalidInputError, match="no parameter 'shore'; there are share, count"):
        check_names(request("shore=1"), ALL)
    with pytest.raises(InvalidInputError, match="this route has none"):
        check_names(request("share=1"), ())


async def fails_as_told(request: web.Request) -> web.Response:
    raise UnknownNameError("no such thing")


async def fails_inside(request: web.Request) -> web.Response:
    raise ZeroDivisionError("secret")


@pytest.fixture
async def address() -> AsyncIterator[str]:
    app = web.Application(middlewares=[problem_documents(kinds_of(ROUTES))])
    app.router.add_get("/told", fails_as_told)
    app.router.add_get("/inside", fails_inside)
    server = TestServer(app)
    await server.start_server()
    try:
        yield str(server.make_url("/")).rstrip("/")
    finally:
        await server.close()


async def problem(address: str, path: str, method: str = "GET") -> dict[str, Any]:
    async with ClientSession() as client, client.request(method, address + path) as response:
        assert response.content_type == "application/problem+json"
        document: dict[str, Any] = await response.json(content_type="application/problem+json")
        assert document["status"] == response.status
        if response.status == 405:
            assert response.headers["Allow"] == "GET, HEAD"
        return document


async def test_an_error_is_a_problem_document(address: str) -> None:
    assert await problem(address, "/told") == {
        "type": "/v1/problems/unknown",
        "title": "The box has nothing of that name",
        "status": 404,
        "detail": "no such thing",
        "code": "unknown",
    }


async def test_a_status_that_says_it_all_has_no_type_of_its_own(address: str) -> None:
    found = await problem(address, "/nowhere")
    assert (found["type"], found["title"], found["code"]) == (
        "about:blank", "Not Found", "not_found",
    )  # fmt: skip
    found = await problem(address, "/told", "DELETE")
    assert (found["type"], found["title"], found["code"]) == (
        "about:blank", "Method Not Allowed", "method_not_allowed",
    )  # fmt: skip


async def test_a_failure_tells_where_to_look_and_nothing_else(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = await problem(address, "/inside")
    assert (found["status"], found["code"]) == (500, "internal")
    assert "secret" not in str(found)
    assert found["instance"].startswith("urn:uuid:")
    assert found["instance"] in caplog.text
    assert "ZeroDivisionError: secret" in caplog.text


def test_one_code_is_one_kind_of_problem() -> None:
    kinds = {kind for route in ROUTES for kind in route.kinds()}
    codes = [kind.code for kind in kinds]
    assert len(codes) == len(set(codes)), sorted(codes)


def test_every_route_is_declared_once() -> None:
    declared = [(route.method, route.path) for route in ROUTES]
    assert len(declared) == len(set(declared))
