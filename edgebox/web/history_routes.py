"""GET /v1/history: series for charts, of the box or of a camera. docs/reference/http-api.md.

Everything is read and assembled outside the event loop.
"""

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import InvalidInputError, StorageError, UnknownNameError
from edgebox.domain.requests import CameraId
from edgebox.storage.charts import POINTS_MAX, POINTS_MIN, SPAN_MAX_MS
from edgebox.storage.periods import BOX
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.web.query_parameters import Choice, InPath, Integer
from edgebox.web.routes import Answer, Route
from edgebox.web.schemas import (
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
from edgebox.web.web_context import WebContext

RANGES_MS = {
    "1m": 60_000,
    "15m": 900_000,
    "1h": 3_600_000,
    "6h": 21_600_000,
    "24h": 86_400_000,
    "7d": 7 * 86_400_000,
    "30d": 30 * 86_400_000,
}
_INSTANT_MAX_MS = 2**53

_RANGE = Choice("range", tuple(RANGES_MS), "1h", "How much before its end, without from_ms")
_FROM = Integer("from_ms", 0, _INSTANT_MAX_MS, None, "Where it begins, Unix milliseconds")
_TO = Integer("to_ms", 0, _INSTANT_MAX_MS, None, "Where it ends, Unix milliseconds; else now")
_POINTS = Integer("points", POINTS_MIN, POINTS_MAX, 300, "At most so many steps")
_ID = InPath("id", "The camera's name, as in its hello")


async def _of_box(context: WebContext, request: web.Request) -> web.Response:
    return await _chart(context, BOX, request)


async def _of_camera(context: WebContext, request: web.Request) -> web.Response:
    camera = CameraId(_ID.read(request))
    if camera not in context.box.cameras:  # one that has just connected has no steps yet
        await context.storage.history.check_camera(camera)
    return await _chart(context, camera, request)


async def _chart(context: WebContext, camera: CameraId, request: web.Request) -> web.Response:
    from_ms, to_ms = _span(request)
    body = await context.storage.history.chart(camera, from_ms, to_ms, _POINTS.read(request))
    return web.Response(body=body, content_type="application/json")


def _span(request: web.Request) -> tuple[int, int]:
    """Return the requested span, Unix milliseconds.

    Raises:
        InvalidInputError: the query is malformed, or the span too long.
    """
    to_ms = _TO.read(request)
    if to_ms is None:
        to_ms = wall_clock_ms()
    range_ms = RANGES_MS[_RANGE.read(request)]  # refused if wrong, also where from_ms wins
    from_ms = _FROM.read(request)
    if from_ms is None:
        from_ms = max(0, to_ms - range_ms)
    if not 0 < to_ms - from_ms <= SPAN_MAX_MS:
        days = SPAN_MAX_MS // 86_400_000
        raise InvalidInputError(f"to_ms must be after from_ms, by at most {days} days")
    return from_ms, to_ms


_COUNTS, _NUMBERS = array(nullable(COUNT)), array(nullable(NUMBER))
_PARTS = Schema(
    "HistoryLatency",
    record(
        network=_NUMBERS, queue=_NUMBERS, inference=_NUMBERS, total=_NUMBERS,
        **{"return": _NUMBERS},
    ),
)  # fmt: skip
_BANDWIDTH = Schema("HistoryBandwidth", record(mean=_NUMBERS, min=_COUNTS, max=_COUNTS))
_CROSSINGS = Schema("HistoryCrossings", record(**{"in": _COUNTS, "out": _COUNTS}))
_HISTORY = Schema(
    "History",
    record(
        camera=nullable(TEXT), from_ms=COUNT, to_ms=COUNT,
        segments=array(
            record(
                level=one_of("second", "minute", "hour"), from_ms=COUNT, step_ms=COUNT,
                points=COUNT,
            )
        ),
        at_ms=array(COUNT), covered_ms=_COUNTS, connected=_NUMBERS,
        captured=_COUNTS, accepted=_COUNTS, on_time=_COUNTS, late=_COUNTS, mismatches=_COUNTS,
        dropped=mapping(_COUNTS), variants=mapping(_COUNTS), zones=mapping(_NUMBERS),
        lines=mapping(_CROSSINGS), classes=mapping(_NUMBERS), fps=_NUMBERS, width_px=_NUMBERS,
        latency_ms=record(p50=_PARTS, p99=_PARTS),
        received_bps=_NUMBERS,
        bandwidth_bps=record(measured=_BANDWIDTH, estimated=_BANDWIDTH),
    ),
)  # fmt: skip

ROUTES = (
    Route(
        method="GET",
        path="/v1/history",
        answer=_of_box,
        scope=Scope.VIEWER,
        summary="History of all cameras together, over a minute to a year",
        doc="A value per step in every series; null where nothing was kept.",
        parameters=(_RANGE, _FROM, _TO, _POINTS),
        answers=(Answer("The steps.", _HISTORY),),
        problems=(InvalidInputError, StorageError),
    ),
    Route(
        method="GET",
        path="/v1/cameras/{id}/history",
        answer=_of_camera,
        scope=Scope.VIEWER,
        summary="History of a camera's frames, over a minute to a year",
        doc="A value per step in every series; null where nothing was kept.",
        parameters=(_ID, _RANGE, _FROM, _TO, _POINTS),
        answers=(Answer("The steps.", _HISTORY),),
        problems=(InvalidInputError, StorageError, UnknownNameError),
    ),
)
