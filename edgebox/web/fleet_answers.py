"""Answers other boxes of a fleet: only those that know its secret, and signed with it."""

import time
from dataclasses import dataclass

from aiohttp import hdrs, web

from edgebox.domain.access import UnauthorizedError
from edgebox.domain.errors import UnknownNameError
from edgebox.fleet.ticket import answer_signature, is_box_ticket
from edgebox.web.fleet_member import FleetMember
from edgebox.web.fleet_requests import SIGNATURE
from edgebox.web.routes import JSON
from edgebox.web.web_context import WebContext

_BEARER = "Bearer "


class NoFleetError(UnknownNameError):
    """The box has no fleet."""

    code = "no_fleet"
    title = "This box is not in a fleet"


@dataclass(frozen=True, slots=True)
class AskedByBox:
    """A request of another box of the fleet."""

    member: FleetMember
    """This box."""
    ticket: str

    def answer(self, body: bytes) -> web.Response:
        """Return JSON with the signature that proves whose it is."""
        signature = answer_signature(self.member.secret, self.ticket, body)
        return web.Response(body=body, content_type=JSON, headers={SIGNATURE: signature})


def member_of(context: WebContext) -> FleetMember:
    """Return this box as one of a fleet.

    Raises:
        NoFleetError: it is alone.
    """
    if context.fleet is None:
        raise NoFleetError("this box is not in a fleet: its configuration has no [fleet]")
    return context.fleet


def asked_by_box(context: WebContext, request: web.Request) -> AskedByBox:
    """Return a request of another box.

    Raises:
        NoFleetError: this box is alone.
        UnauthorizedError: it shows no ticket of this fleet's boxes.
    """
    member = member_of(context)
    said = request.headers.get(hdrs.AUTHORIZATION, "")
    ticket = said.removeprefix(_BEARER)
    if not said.startswith(_BEARER) or not is_box_ticket(member.secret, ticket, time.time()):
        raise UnauthorizedError("only boxes that know this fleet's secret may read its reports")
    return AskedByBox(member, ticket)
