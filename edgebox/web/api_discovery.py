"""Routes that describe the API: the OpenAPI document and every kind of problem."""

from collections.abc import Iterable

from aiohttp import web

from edgebox import __version__
from edgebox.domain.errors import UnknownNameError
from edgebox.web.openapi import document
from edgebox.web.problems import INTERNAL, TYPES_PATH, ProblemKind
from edgebox.web.query_parameters import InPath
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import COUNT, TEXT, Schema, array, record
from edgebox.web.web_context import WebContext

_KIND = Schema("ProblemKind", record(type=TEXT, code=TEXT, status=COUNT, title=TEXT))
_CODE = InPath("code", "The `code` of a problem document")


def kinds_of(routes: Iterable[Route]) -> tuple[ProblemKind, ...]:
    """Return every kind of problem that some routes may return or report, by code."""
    found = {
        kind.code: kind
        for route in routes
        for kind in (*route.kinds(), *map(ProblemKind.of, route.reported))
    }
    found[INTERNAL.code] = INTERNAL
    return tuple(found[code] for code in sorted(found))


def routes_about(routes: tuple[Route, ...]) -> tuple[Route, ...]:
    """Return the routes that explain some routes, and themselves."""
    kinds = {kind.code: kind for kind in kinds_of(routes)}

    def shown(kind: ProblemKind) -> dict[str, object]:
        return {
            "type": kind.reference, "code": kind.code, "status": kind.status, "title": kind.title,
        }  # fmt: skip

    async def all_kinds(context: WebContext, request: web.Request) -> web.Response:
        return json_response([shown(kind) for kind in kinds.values()])

    async def one_kind(context: WebContext, request: web.Request) -> web.Response:
        code = _CODE.read(request)
        if code not in kinds:
            raise UnknownNameError(f"there is no problem {code!r}; there are {', '.join(kinds)}")
        return json_response(shown(kinds[code]))

    async def openapi(context: WebContext, request: web.Request) -> web.Response:
        return json_response(written)

    about = (
        Route(
            method="GET",
            path="/v1/openapi.json",
            answer=openapi,
            scope=None,
            summary="This API as an OpenAPI 3.1 document",
            answers=(Answer("The document.", {"type": "object"}),),
        ),
        Route(
            method="GET",
            path=TYPES_PATH.rstrip("/"),
            answer=all_kinds,
            scope=None,
            summary="Every kind of problem",
            answers=(Answer("By code.", array(_KIND)),),
        ),
        Route(
            method="GET",
            path=f"{TYPES_PATH}{{code}}",
            answer=one_kind,
            scope=None,
            summary="What a problem document's type refers to",
            parameters=(_CODE,),
            answers=(Answer("The kind of problem.", _KIND),),
            problems=(UnknownNameError,),
        ),
    )
    written = document((*routes, *about), __version__)
    return about
