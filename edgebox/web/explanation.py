"""GET /v1/cameras/{id}/explanation: what the planner weighs for one camera. http-api.md."""

import asyncio
from collections.abc import Mapping
from typing import Any, get_args

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import UnknownNameError
from edgebox.domain.model_family import FamilyName
from edgebox.domain.requests import CameraId
from edgebox.inference.family import Family
from edgebox.planning.explain import OptionExplanation, Verdict, explanation
from edgebox.runtime.planning_thread import PLANNER_ITERATIONS_MAX
from edgebox.web.limits import LIMIT, REMEDY, limit_document
from edgebox.web.model_list import ACCURACY, accuracy_document
from edgebox.web.query_parameters import InPath
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import COUNT, NUMBER, TEXT, Schema, array, nullable, one_of, record
from edgebox.web.web_context import WebContext

_ID = InPath("id", "The camera's name, as in its hello")


async def _explanation(context: WebContext, request: web.Request) -> web.Response:
    camera = CameraId(_ID.read(request))
    if camera not in context.box.cameras:
        raise UnknownNameError(f"no camera {camera!r} was here in the last ten minutes")
    driver = context.box.driver
    snapshot = driver.scheduler.snapshot(driver.clock_ns())
    # Off the loop, like planning itself.
    found = await asyncio.to_thread(
        explanation,
        snapshot,
        camera,
        context.config.planning_parameters(),
        PLANNER_ITERATIONS_MAX,
    )
    bandwidth_bps = None if found is None else found.bandwidth_bps
    return json_response(
        {
            "camera": camera,
            "bandwidth_bps": None if bandwidth_bps is None else round(bandwidth_bps),
            "options": []
            if found is None
            else [_document(option, context.box.families) for option in found.options],
        }
    )


def _document(option: OptionExplanation, families: Mapping[FamilyName, Family]) -> dict[str, Any]:
    return {
        "variant": option.variant.name,
        **accuracy_document(option.variant, families.get(option.variant.family)),
        "width_px": option.width_px,
        "height_px": option.height_px,
        "frame_bytes": option.frame_bytes,
        "needed_bps": None if option.needed_bps is None else round(option.needed_bps),
        "needed_ms": round(option.needed_ns / 1e6, 2),
        "left_ms": round(option.left_ns / 1e6, 2),
        "verdict": option.verdict,
        "why": option.why,
        "limit": limit_document(option.limit),
        "remedies": option.remedies,
    }


_OPTION = Schema(
    "ExplainedOption",
    record(
        variant=TEXT, **ACCURACY, width_px=COUNT, height_px=COUNT, frame_bytes=COUNT,
        needed_bps=nullable(COUNT), needed_ms=NUMBER, left_ms=NUMBER,
        verdict=one_of(*get_args(Verdict)), why=TEXT, limit=nullable(LIMIT),
        remedies=array(REMEDY),
    ),
)  # fmt: skip

ROUTES = (
    Route(
        method="GET",
        path="/v1/cameras/{id}/explanation",
        answer=_explanation,
        scope=Scope.VIEWER,
        summary="Every size the planner considers for a camera, and its verdict",
        parameters=(_ID,),
        answers=(
            Answer(
                "The sizes of its family, from the smallest up; none while it is not connected.",
                record(camera=TEXT, bandwidth_bps=nullable(COUNT), options=array(_OPTION)),
            ),
        ),
        problems=(UnknownNameError,),
        needs_ready=True,
    ),
)
