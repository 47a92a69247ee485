"""GET /v1/state, /v1/plan and /v1/events: the box as a whole. docs/reference/http-api.md."""

from typing import Any, cast, get_args

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import StorageError
from edgebox.domain.requests import CameraId
from edgebox.runtime.box import Box
from edgebox.storage.rows import Level
from edgebox.web.limits import LIMIT, REMEDY, RESOURCE_PRICE, limit_document, price_document
from edgebox.web.query_parameters import Choice, Integer, Text
from edgebox.web.routes import JSON, Answer, Route, json_response
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    TEXT,
    Schema,
    array,
    mapping,
    nullable,
    one_of,
    record,
)
from edgebox.web.state_document import group_documents
from edgebox.web.state_types import Group, State
from edgebox.web.typed_schemas import schema_of
from edgebox.web.web_context import WebContext

_LIMIT = Integer("limit", 1, 1_000, 100, "At most so many")
_BEFORE = Integer("before", 1, 2**53 - 1, None, "Only those older than the event with this id")
_CAMERA = Text("camera", "Only those of this camera")
_LEVELS = get_args(Level)
_LEVEL = Choice("level", _LEVELS, None, "Only those of this level")


async def _state(context: WebContext, request: web.Request) -> web.Response:
    return web.Response(body=await context.states.document(), content_type=JSON)


async def _plan(context: WebContext, request: web.Request) -> web.Response:
    return json_response(_plan_document(context.box))


def _plan_document(box: Box) -> dict[str, Any]:
    assignments, groups, slowdown, age_s, plan = [], [], {}, None, box.last_plan.plan
    if box.ready:
        scheduler = box.driver.scheduler
        groups = group_documents(scheduler.groups)
        slowdown = {executor: round(by, 3) for executor, by in scheduler.slowdown.items()}
        assignments = [
            {
                "camera": camera,
                "variant": given.variant,
                "rate_hz": given.rate_hz,
                "quality": given.quality,
                "served": given.served,
                "reason": given.reason,
                "limit": limit_document(given.limit),
                "remedies": given.remedies,
            }
            for camera, given in scheduler.assignments.items()
        ]
        age_ns = box.last_plan.age_ns(box.driver.clock_ns())
        age_s = None if age_ns is None else round(age_ns / 1e9, 3)
    return {
        "runs": box.last_plan.runs,
        "age_s": age_s,
        "took_ms": round(box.last_plan.took_ns / 1e6, 3) if plan is not None else None,
        "utilisation": None if plan is None else round(plan.utilisation, 4),
        "slowdown": slowdown,
        "groups": groups,
        "prices": [] if plan is None else [price_document(p) for p in plan.prices],
        "assignments": assignments,
    }


async def _events(context: WebContext, request: web.Request) -> web.Response:
    limit, camera = _LIMIT.read(request), _CAMERA.read(request)
    before, level = _BEFORE.read(request), cast(Level | None, _LEVEL.read(request))
    await context.storage.catch_up()  # includes the latest events
    found = await context.storage.events(
        limit + 1,
        before=before,
        camera=None if camera is None else CameraId(camera),
        level=level,
    )
    page = found[:limit]
    return json_response(
        {"events": page, "next_before": page[-1].id if len(found) > limit else None}
    )


_ASSIGNMENT = Schema(
    "Assignment",
    record(
        camera=TEXT, variant=TEXT, rate_hz=NUMBER, quality=COUNT, served=BOOLEAN, reason=TEXT,
        limit=nullable(LIMIT),
        remedies=array(REMEDY),
    ),
)  # fmt: skip
_PLAN = Schema(
    "Plan",
    record(
        runs=COUNT,
        age_s=nullable(NUMBER),
        took_ms=nullable(NUMBER),
        utilisation=nullable(NUMBER),
        slowdown=mapping(NUMBER),
        groups=array(schema_of(Group)),
        prices=array(RESOURCE_PRICE),
        assignments=array(_ASSIGNMENT),
    ),
)
_EVENT = Schema(
    "Event",
    record(id=COUNT, at_ms=COUNT, level=one_of(*_LEVELS), camera=nullable(TEXT), text=TEXT),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/state",
        answer=_state,
        scope=Scope.VIEWER,
        summary="The state of the box, as the page shows it",
        answers=(Answer("The box and its cameras now.", schema_of(State)),),
    ),
    Route(
        method="GET",
        path="/v1/plan",
        answer=_plan,
        scope=Scope.VIEWER,
        summary="The plan: what each camera should send, and why",
        answers=(Answer("The plan in force.", _PLAN),),
    ),
    Route(
        method="GET",
        path="/v1/events",
        answer=_events,
        scope=Scope.VIEWER,
        summary="Events, newest first",
        doc="A page of it: `next_before`, given as `before`, fetches the next; null: no more.",
        parameters=(_LIMIT, _BEFORE, _CAMERA, _LEVEL),
        problems=(StorageError,),
        answers=(
            Answer("A page of events.", record(events=array(_EVENT), next_before=nullable(COUNT))),
        ),
    ),
)
