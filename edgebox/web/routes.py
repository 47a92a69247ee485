"""Declares routes: one table per module, which the server collects.

One declaration routes the request, guards it, checks its query and describes it in the OpenAPI
document, so that these always agree.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import orjson
from aiohttp import web

from edgebox.domain.access import ForbiddenError, Scope, UnauthorizedError
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.web.hosts import HostError
from edgebox.web.identification import ForeignOriginError, identify, refuse_foreign_pages
from edgebox.web.problems import ProblemKind
from edgebox.web.query_parameters import Parameter, check_names
from edgebox.web.request_limits import SlowBodyError, TooBusyError
from edgebox.web.schemas import JsonSchema, Schema
from edgebox.web.web_context import WebContext

JSON = "application/json"


class NotReadyError(EdgeboxError):
    """The box is still starting, or is stopping."""

    http_status = 503
    code = "not_ready"
    title = "The box is not ready"


class ContentTypeError(EdgeboxError):
    """This route does not accept the body's content type."""

    http_status = 415
    code = "content_type"
    title = "This route does not accept the body's content type"


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body: the schema of each accepted content type."""

    content: Mapping[str, Schema | JsonSchema]
    doc: str
    any_type: bool = False
    """Whether any other content type is accepted, too."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer."""

    doc: str
    schema: Schema | JsonSchema | None
    status: int = 200
    content_type: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method on one path."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """Path in the notation of aiohttp and OpenAPI: "/v1/cameras/{id}"."""
    answer: Callable[[WebContext, web.Request], Awaitable[web.StreamResponse]]
    summary: str
    scope: Scope | None
    """What its requests' tokens must allow; None: nobody needs a token."""
    doc: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    answers: tuple[Answer, ...] = ()
    problems: tuple[type[EdgeboxError] | ProblemKind, ...] = ()
    """Possible problems, besides those of its guards (`kinds`)."""
    reported: tuple[type[EdgeboxError], ...] = ()
    """Problems that its successful answers may contain."""
    needs_ready: bool = False
    """Whether it is refused until the box is ready."""
    any_origin: bool = False
    """Whether pages of other origins may use it: it reveals nothing and changes nothing."""
    kind: Literal["api", "websocket", "page"] = "api"
    """A WebSocket is listed in the OpenAPI document with its `messages`; a page is not listed."""
    messages: tuple[Schema, ...] = ()
    """JSON that a WebSocket sends, as far as schemas describe it."""

    def kinds(self) -> tuple[ProblemKind, ...]:
        """Return every kind of problem it declares."""
        errors: list[type[EdgeboxError] | ProblemKind] = [*self.problems, HostError, TooBusyError]
        if self.kind != "page":
            errors.append(InvalidInputError)
        if not self.any_origin:
            errors.append(ForeignOriginError)
        if self.scope is not None:
            errors += [UnauthorizedError, ForbiddenError]
        if self.needs_ready:
            errors.append(NotReadyError)
        if self.body is not None:
            errors.append(SlowBodyError)
            if not self.body.any_type:
                errors.append(ContentTypeError)
        return tuple(dict.fromkeys(map(ProblemKind.of, errors)))


def guarded(
    route: Route, context: WebContext
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return the handler of a route for aiohttp: its guards, then its answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if not route.any_origin:
            refuse_foreign_pages(request)
        identify(context.access, request, route.scope)
        if route.kind != "page":
            check_names(request, route.parameters)
        if route.needs_ready:
            refuse_unready(context)
        if route.body is not None and not route.body.any_type:
            _check_content_type(request, route.body)
        return await route.answer(context, request)

    return answer


def json_response(document: object, status: int = 200) -> web.Response:
    """Return a JSON document as an answer."""
    return web.Response(body=orjson.dumps(document), status=status, content_type=JSON)


def refuse_unready(context: WebContext) -> None:
    """Refuse a request until the models are warm.

    Raises:
        NotReadyError: says what is missing.
    """
    if not context.box.ready:
        raise NotReadyError(f"the box is not ready: {context.box.not_ready_because}")


def _check_content_type(request: web.Request, body: Body) -> None:
    """Refuse other content types. No accepted type can be sent by another site's form.

    Raises:
        ContentTypeError: names the accepted types.
    """
    if request.content_type not in body.content:
        taken = " or ".join(body.content)
        raise ContentTypeError(f"the body must be {taken}, not {request.content_type}")
