"""Owns how a route is declared: a table per module, which the server collects.

One declaration routes the request, guards it, checks its query, and describes it in the OpenAPI
document, so that these cannot drift apart.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import orjson
from aiohttp import web

from edgebox.config.host_names import host_of
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.web.hosts import HostError, authority_of
from edgebox.web.problems import ProblemKind
from edgebox.web.query_parameters import Parameter, check_names
from edgebox.web.schemas import JsonSchema, Schema
from edgebox.web.web_context import WebContext

JSON = "application/json"


class NotReadyError(EdgeboxError):
    """The box is still starting, or is stopping."""

    http_status = 503
    code = "not_ready"
    title = "The box is not ready"


class ForeignOriginError(EdgeboxError):
    """A web page of another site tried to use this box through its visitor's browser."""

    http_status = 403
    code = "foreign_origin"
    title = "Pages of other sites may not use this box"


class AdminOffError(EdgeboxError):
    """The box was not told to let people do this over HTTP."""

    http_status = 403
    code = "admin_off"
    title = "This box lets nobody do this over HTTP"


class ContentTypeError(EdgeboxError):
    """The body is said to be of a type that this route does not take."""

    http_status = 415
    code = "content_type"
    title = "The body is of another content type than is taken here"


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries: for each content type that is taken, its schema."""

    content: Mapping[str, Schema | JsonSchema]
    doc: str
    any_type: bool = False
    """Taken whatever its content type is said to be."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One way a request is answered that is no problem."""

    doc: str
    schema: Schema | JsonSchema | None
    status: int = 200
    content_type: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method on one path."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """As aiohttp and OpenAPI both write it: "/v1/cameras/{id}"."""
    answer: Callable[[WebContext, web.Request], Awaitable[web.StreamResponse]]
    summary: str
    doc: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    answers: tuple[Answer, ...] = ()
    problems: tuple[type[EdgeboxError] | ProblemKind, ...] = ()
    """Beside those that its guards may raise (`kinds`)."""
    told: tuple[type[EdgeboxError], ...] = ()
    """Problems that its answers tell of, without being ones."""
    needs_ready: bool = False
    """Refused until the box is ready."""
    needs_admin: bool = False
    """Refused unless the configuration lets people import models and measure (server.admin)."""
    any_origin: bool = False
    """Also for pages of other sites: it tells nothing and does nothing."""
    kind: Literal["api", "websocket", "page"] = "api"
    """A WebSocket is listed in the OpenAPI document, which has no words for what it says; a page
    is for browsers, and is not."""

    def kinds(self) -> tuple[ProblemKind, ...]:
        """Return every kind of problem it declares."""
        errors: list[type[EdgeboxError] | ProblemKind] = [*self.problems, HostError]
        if self.kind != "page":
            errors.append(InvalidInputError)
        if not self.any_origin:
            errors.append(ForeignOriginError)
        if self.needs_admin:
            errors.append(AdminOffError)
        if self.needs_ready:
            errors.append(NotReadyError)
        if self.body is not None and not self.body.any_type:
            errors.append(ContentTypeError)
        return tuple(dict.fromkeys(map(ProblemKind.of, errors)))


def guarded(
    route: Route, site: WebContext
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return what aiohttp calls for a route: its guards, then its answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if not route.any_origin:
            refuse_foreign_pages(request)
        if route.kind != "page":
            check_names(request, route.parameters)
        if route.needs_admin and not site.config.server.admin:
            raise AdminOffError(
                "importing and measuring models over HTTP is off on this box (server.admin): set "
                "admin = true under [server] in its configuration file, and start it again"
            )
        if route.needs_ready:
            refuse_unready(site)
        if route.body is not None and not route.body.any_type:
            _check_content_type(request, route.body)
        return await route.answer(site, request)

    return answer


def json_response(document: object, status: int = 200) -> web.Response:
    """Return a JSON document as an answer."""
    return web.Response(body=orjson.dumps(document), status=status, content_type=JSON)


def refuse_foreign_pages(request: web.Request) -> None:
    """Refuse what another site's page sends: browsers allow it WebSockets to anywhere.

    Raises:
        ForeignOriginError: the browser names an origin that is not this box.
    """
    origin = request.headers.get("Origin")
    if origin is None:
        return
    box = authority_of(request)
    if box is None or _place(origin.split("://", 1)[-1]) != _place(box):
        raise ForeignOriginError(f"pages of {origin} may not use this box")


def _place(authority: str) -> str:
    """Return an authority in small letters, and an IPv6 address as browsers write it."""
    host = host_of(authority)
    if host is None or ":" not in host:
        return authority.lower()
    return f"[{host}]{authority.rpartition(']')[2]}"


def refuse_unready(site: WebContext) -> None:
    """Refuse what only a box can do whose models are warm.

    Raises:
        NotReadyError: saying what is missing.
    """
    if not site.box.ready:
        raise NotReadyError(f"the box is not ready: {site.box.not_ready_because}")


def _check_content_type(request: web.Request, body: Body) -> None:
    """Refuse other content types: what a form of another site can send is never among ours.

    Raises:
        ContentTypeError: naming what is taken.
    """
    if request.content_type not in body.content:
        taken = " or ".join(body.content)
        raise ContentTypeError(f"the body must be {taken}, not {request.content_type}")
