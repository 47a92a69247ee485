"""Owns the routes of the history: what a chart may ask for, and its answer.

docs/http-api.md specifies both. Everything is read and put together off the event loop.
"""

import time

from aiohttp import web

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import CameraId
from edgebox.storage.charts import POINTS_MAX, POINTS_MIN, SPAN_MAX_MS
from edgebox.storage.history import History
from edgebox.storage.periods import BOX

RANGES_MS = {
    "1m": 60_000,
    "15m": 900_000,
    "1h": 3_600_000,
    "6h": 21_600_000,
    "24h": 86_400_000,
    "7d": 7 * 86_400_000,
    "30d": 30 * 86_400_000,
}
_RANGE = "1h"
_POINTS = 300
_INSTANT_MAX_MS = 2**53


def history_routes(history: History) -> list[web.RouteDef]:
    """Return the routes that read a history."""

    async def of_box(request: web.Request) -> web.Response:
        return await _chart(history, BOX, request)

    async def of_camera(request: web.Request) -> web.Response:
        return await _chart(history, CameraId(request.match_info["camera"]), request)

    return [
        web.get("/v1/history", of_box),
        web.get("/v1/cameras/{camera}/history", of_camera),
    ]


async def _chart(history: History, camera: CameraId, request: web.Request) -> web.Response:
    from_ms, to_ms = _span(request)
    points = _whole(request, "points", POINTS_MIN, POINTS_MAX, _POINTS)
    body = await history.chart(camera, from_ms, to_ms, points)
    return web.Response(body=body, content_type="application/json")


def _span(request: web.Request) -> tuple[int, int]:
    """Return from when to when, Unix milliseconds.

    Raises:
        InvalidInputError: the query says something else, or too much.
    """
    query = request.query
    now_ms = time.time_ns() // 1_000_000
    if "from_ms" not in query and "to_ms" not in query:
        name = query.get("range", _RANGE)
        if name not in RANGES_MS:
            raise InvalidInputError(f"range must be one of {', '.join(RANGES_MS)}, not {name[:20]}")
        return now_ms - RANGES_MS[name], now_ms
    if "range" in query:
        raise InvalidInputError("range goes without from_ms and to_ms")
    to_ms = _whole(request, "to_ms", 0, _INSTANT_MAX_MS, now_ms)
    if "from_ms" not in query:
        raise InvalidInputError("to_ms goes with from_ms")
    from_ms = _whole(request, "from_ms", 0, _INSTANT_MAX_MS, 0)
    if not 0 < to_ms - from_ms <= SPAN_MAX_MS:
        days = SPAN_MAX_MS // 86_400_000
        raise InvalidInputError(f"to_ms must be after from_ms, by at most {days} days")
    return from_ms, to_ms


def _whole(request: web.Request, name: str, low: int, high: int, default: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17 and low <= int(text) <= high):
        raise InvalidInputError(f"{name} must be a whole number from {low} to {high}")
    return int(text)
