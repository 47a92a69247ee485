"""Says which other boxes of a fleet have a history of a camera, and since when.

Histories stay on the box that made them. Each box is asked when somebody wants to know, so what is
said is what is there now; boxes that cannot be asked are named, because they may have more.
"""

import asyncio
import time
from dataclasses import dataclass

import aiohttp
import orjson
from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import InvalidInputError, StorageError
from edgebox.domain.field_reader import INTEGER_MAX, FieldReader, parse_object
from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxReport
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED
from edgebox.web.fleet_answers import NoFleetError, member_of, route_for_boxes
from edgebox.web.fleet_member import FleetMember
from edgebox.web.fleet_requests import answer_of, explained
from edgebox.web.query_parameters import InPath, Text
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import COUNT, TEXT, Schema, array, described, nullable, record
from edgebox.web.web_context import WebContext

PATH = "/v1/fleet/history"
_TIMEOUT_S = 2.0
_ANSWER_BYTES_MAX = 1_000
_ID = InPath("id", "The camera's name, as in its hello")
_CAMERA = Text(
    "camera", "The camera's name", required=True, pattern=NAME_PATTERN, expected=NAME_WANTED
)


@dataclass(frozen=True, slots=True)
class _Span:
    """From when to when a box has a history, Unix milliseconds; None: it has none."""

    from_ms: int | None
    to_ms: int | None


async def _own(context: WebContext, member: FleetMember, request: web.Request) -> bytes:
    camera = _CAMERA.read(request)
    assert camera is not None
    span = await context.storage.history.span_ms(CameraId(camera))
    from_ms, to_ms = span or (None, None)
    return orjson.dumps({"from_ms": from_ms, "to_ms": to_ms})


async def _elsewhere(context: WebContext, request: web.Request) -> web.Response:
    member = member_of(context)
    camera = _ID.read(request)
    if not NAME_PATTERN.fullmatch(camera):
        raise InvalidInputError(f"a camera's name must be {NAME_WANTED}")
    up = {report.box: report for report in member.known.fresh(time.monotonic_ns())}
    asked = {address: up[box] for address, box in member.asked_at.items() if box in up}
    async with aiohttp.ClientSession() as client:
        found = await asyncio.gather(*(_ask(client, member, each, camera) for each in asked))
    boxes: dict[str, dict[str, object]] = {}
    silent = dict.fromkeys(member.asked_at.keys() - asked.keys(), "it has not reported lately")
    unanswered = silent | member.left_out
    for (address, report), said in zip(asked.items(), found, strict=True):
        if isinstance(said, str):
            unanswered[address] = said
        elif said.from_ms is not None:
            boxes[report.box] = _document(report, said)
    return json_response(
        {
            "boxes": [boxes[name] for name in sorted(boxes)],
            "unanswered": [
                {"address": address, "reason": why} for address, why in sorted(unanswered.items())
            ],
        }
    )


async def _ask(
    client: aiohttp.ClientSession, member: FleetMember, address: str, camera: str
) -> _Span | str:
    """Return what a box has, or why it does not say."""
    try:
        body = await answer_of(
            client,
            f"{address.rstrip('/')}{PATH}?camera={camera}",
            secret=member.secret,
            name=member.name,
            bytes_max=_ANSWER_BYTES_MAX,
            timeout_s=_TIMEOUT_S,
        )
        return _read(body)
    except Exception as error:  # whatever it was, the others are asked
        return explained(error)


def _read(body: bytes) -> _Span:
    read = FieldReader("history", parse_object(body, "an answer about history"))
    if read.raw("from_ms") is None:
        return _Span(None, None)
    span = _Span(read.integer("from_ms", 0, INTEGER_MAX), read.integer("to_ms", 0, INTEGER_MAX))
    read.finish()
    return span


def _document(report: BoxReport, span: _Span) -> dict[str, object]:
    return {
        "box": report.box,
        "address": report.address,
        "from_ms": span.from_ms,
        "to_ms": span.to_ms,
    }


ROUTES = (
    Route(
        method="GET",
        path="/v1/cameras/{id}/history/boxes",
        answer=_elsewhere,
        scope=Scope.VIEWER,
        summary="The other boxes of the fleet that have a history of a camera",
        doc="They are asked now. Histories stay on their box: its own page and API have them.",
        parameters=(_ID,),
        answers=(
            Answer(
                "The boxes.",
                Schema(
                    "HistoryBoxes",
                    record(
                        boxes=array(
                            record(
                                box=TEXT,
                                address=TEXT,
                                from_ms=described(COUNT, "Where its history begins."),
                                to_ms=described(COUNT, "Where it ends."),
                            )
                        ),
                        unanswered=described(
                            array(record(address=TEXT, reason=TEXT)),
                            "Where no box says whether it has any, and why.",
                        ),
                    ),
                ),
            ),
        ),
        problems=(NoFleetError, InvalidInputError),
    ),
    route_for_boxes(
        method="GET",
        path=PATH,
        document=_own,
        summary="Whether this box has a history of a camera, for another box",
        parameters=(_CAMERA,),
        answer=Answer(
            "From when to when; null: it has none.",
            record(from_ms=nullable(COUNT), to_ms=nullable(COUNT)),
        ),
        problems=(InvalidInputError, StorageError),
    ),
)
