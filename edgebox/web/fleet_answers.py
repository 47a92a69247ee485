"""Answers other boxes of a fleet: only those that know its secret, and signed with it."""

import time
from collections.abc import Awaitable, Callable
from typing import Literal

from aiohttp import hdrs, web

from edgebox.domain.access import UnauthorizedError
from edgebox.domain.errors import EdgeboxError, UnknownNameError
from edgebox.fleet.ticket import answer_signature, is_box_ticket
from edgebox.web.fleet_member import FleetMember
from edgebox.web.fleet_requests import SIGNATURE
from edgebox.web.query_parameters import Parameter
from edgebox.web.routes import JSON, Answer, Body, Route
from edgebox.web.web_context import WebContext

_BEARER = "Bearer "


class NoFleetError(UnknownNameError):
    """The box has no fleet."""

    code = "no_fleet"
    title = "This box is not in a fleet"


def member_of(context: WebContext) -> FleetMember:
    """Return this box as one of a fleet.

    Raises:
        NoFleetError: it is alone.
    """
    if context.fleet is None:
        raise NoFleetError("this box is not in a fleet: its configuration has no [fleet]")
    return context.fleet


def route_for_boxes(
    *,
    method: Literal["GET", "POST"],
    path: str,
    document: Callable[[WebContext, FleetMember, web.Request], Awaitable[bytes]],
    summary: str,
    answer: Answer,
    doc: str = "",
    parameters: tuple[Parameter, ...] = (),
    body: Body | None = None,
    problems: tuple[type[EdgeboxError], ...] = (),
) -> Route:
    """Return a route that answers only boxes of this fleet, and signs what it answers.

    Args:
        method: as in `Route`.
        path: as in `Route`.
        document: returns the JSON of an answer, on this box as one of the fleet.
        summary: as in `Route`.
        answer: what is answered.
        doc: what is to be said besides who may ask.
        parameters: as in `Route`.
        body: as in `Route`.
        problems: besides that there is no fleet, or that the one who asks is none of its boxes.
    """

    async def signed(context: WebContext, request: web.Request) -> web.Response:
        member = member_of(context)
        ticket = _ticket_of_box(member, request)
        content = await document(context, member, request)
        signature = answer_signature(member.secret, ticket, content)
        return web.Response(body=content, content_type=JSON, headers={SIGNATURE: signature})

    who = "For boxes that share the fleet's secret: they show a ticket that it signs."
    return Route(
        method=method,
        path=path,
        answer=signed,
        scope=None,
        summary=summary,
        doc=f"{who} {doc}".rstrip(),
        parameters=parameters,
        body=body,
        answers=(answer,),
        problems=(NoFleetError, UnauthorizedError, *problems),
    )


def _ticket_of_box(member: FleetMember, request: web.Request) -> str:
    """Return the ticket with which another box asks.

    Raises:
        UnauthorizedError: it shows none of this fleet's boxes.
    """
    said = request.headers.get(hdrs.AUTHORIZATION, "")
    ticket = said.removeprefix(_BEARER)
    if not said.startswith(_BEARER) or not is_box_ticket(member.secret, ticket, time.time()):
        raise UnauthorizedError("only boxes that know this fleet's secret may ask this")
    return ticket
