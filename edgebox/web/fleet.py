"""Owns a box's part in a fleet while it runs, and its routes; without `[fleet]` there is nothing.

The report is for boxes of the fleet, which show a ticket signed with the secret that all share;
the list is for people and programs that may see the box.
"""

import asyncio
import functools
import time

import orjson
from aiohttp import web

from edgebox.config.config_file import Config
from edgebox.config.fleet_section import SECRET_LENGTH_MIN
from edgebox.config.secret_values import secret
from edgebox.domain.access import Scope
from edgebox.domain.errors import ConfigError
from edgebox.fleet.report_document import encoded
from edgebox.runtime.box import Box
from edgebox.storage.database import Storage
from edgebox.web.addresses import reachable_at
from edgebox.web.fleet_answers import NoFleetError, member_of, route_for_boxes
from edgebox.web.fleet_exchange import PATH, FleetExchange
from edgebox.web.fleet_member import FleetMember
from edgebox.web.fleet_settings import FleetSettings
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    TEXT,
    Schema,
    array,
    described,
    mapping,
    nullable,
    record,
)
from edgebox.web.web_context import WebContext


def fleet_member(config: Config, box: Box, storage: Storage) -> FleetMember | None:
    """Return this box as one of a fleet; None: it is alone.

    Raises:
        ConfigError: the secret cannot be read.
    """
    fleet = config.fleet
    if not fleet.is_on:
        return None
    shared = secret("fleet.secret", fleet.secret_file, fleet.secret_env) or ""
    if len(shared) < SECRET_LENGTH_MIN:
        raise ConfigError(
            f"fleet.secret_file: the secret must have at least {SECRET_LENGTH_MIN} characters: "
            "`openssl rand -hex 32` makes one"
        )
    return FleetMember(
        box,
        FleetSettings(box, storage),
        secret=shared,
        cameras_max=config.limits.cameras_max,
        parameters=config.planning_parameters(),
    )


class Fleet:
    """The tasks of a box in its fleet."""

    def __init__(self, context: WebContext) -> None:
        """Do nothing yet."""
        self._context = context
        self._config = context.config
        self._member = context.fleet
        self._warn = functools.partial(context.box.notices.publish, "warning")
        self._tasks: list[asyncio.Task[None]] = []
        if self._member is not None:
            context.access.tickets = self._member
            context.access.on_change = functools.partial(self._share_revoked, self._member)
            self._member.close_ended = context.close_revoked
            self._member.on_shown = context.access.shown
            self._member.settings.on_revoked = context.close_revoked
            context.states.in_fleet = True

    def start(self, port: int, fingerprint: str | None) -> None:
        """Ask the other boxes, and move cameras, from now on."""
        member = self._member
        if member is None:
            return
        member.listens(_address(self._config, port, fingerprint is not None), fingerprint)
        self._share_revoked(member)
        exchange = FleetExchange(self._config.fleet, member, self._warn)
        self._tasks = [
            asyncio.create_task(exchange.run(), name="fleet reports"),
            asyncio.create_task(member.run(), name="fleet moves"),
        ]

    def _share_revoked(self, member: FleetMember) -> None:
        """Tell the fleet which tokens were revoked here, and let nobody stay who had one."""
        member.settings.revoked_here(self._context.access.revoked)
        self._context.close_revoked()

    async def drain(self) -> None:
        """Stop asking and moving; from now on cameras are sent to the boxes that are known."""
        if self._member is not None:
            self._member.draining = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


def _address(config: Config, port: int, tls: bool) -> str:
    """Return where cameras reach this box."""
    if config.fleet.address:
        return config.fleet.address.rstrip("/")
    host = next(iter(reachable_at(config.server.host)), "127.0.0.1")
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


async def _report(context: WebContext, member: FleetMember, request: web.Request) -> bytes:
    return encoded(member.report())


async def _boxes(context: WebContext, request: web.Request) -> web.Response:
    member = member_of(context)
    known = member.known.fresh(time.monotonic_ns())
    reports = [orjson.loads(encoded(report)) for report in (member.report(), *known)]
    for report in reports:
        del report["absent_s"], report["settings"]
    left_out = [
        {"address": address, "reason": why} for address, why in sorted(member.left_out.items())
    ]
    return json_response({"boxes": reports, "left_out": left_out})


_FIELDS = {
    "box": described(TEXT, "Its name."),
    "address": described(TEXT, "Where cameras reach it."),
    "fingerprint": described(nullable(TEXT), "SHA-256 of its certificate."),
    "load": described(
        NUMBER,
        "What its cameras need at their smallest variants, as a share of what it may plan.",
    ),
    "services": described(mapping(NUMBER), "Frames/s that would be a load of 1, by model."),
    "cameras": COUNT,
    "cameras_max": COUNT,
    "draining": described(BOOLEAN, "Whether it takes no cameras: it stops, or is not ready."),
    "ready": described(
        BOOLEAN, "Whether it has begun to serve; one that is draining and ready is about to stop."
    ),
    "version": TEXT,
}
_BOXES = Schema(
    "FleetBoxes",
    record(
        boxes=described(array(record(**_FIELDS)), "This box, then the others that are up."),
        left_out=described(
            array(record(address=TEXT, reason=TEXT)), "Where no box gives a report, and why."
        ),
    ),
)
_REPORT = Schema(
    "FleetReport",
    record(
        **_FIELDS,
        absent_s=described(
            mapping(NUMBER), "The cameras it knows: seconds since they were connected; 0: they are."
        ),
        settings=described(TEXT, "A digest of all settings of cameras that it knows."),
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/fleet",
        answer=_boxes,
        scope=Scope.VIEWER,
        summary="The boxes of the fleet",
        answers=(Answer("The boxes that are up, and why others are left out.", _BOXES),),
        problems=(NoFleetError,),
    ),
    route_for_boxes(
        method="GET",
        path=PATH,
        document=_report,
        summary="What this box reports to the others of its fleet",
        answer=Answer("The report.", _REPORT),
    ),
)
