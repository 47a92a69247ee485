"""GET /v1/results: results of cameras' frames, for programs. docs/reference/http-api.md.

A WebSocket, or server-sent events on request. A slow subscriber misses results (subscription.py).
Without subscribers the results cost nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from edgebox.domain.access import Scope
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import parse_object
from edgebox.domain.requests import Outcome
from edgebox.web.detection_documents import SCORE_MIN
from edgebox.web.feed import Feed, TooManySubscribersError
from edgebox.web.identification import sender_of
from edgebox.web.query_parameters import Choice, Number, Texts
from edgebox.web.rationed_socket import ClientSocket
from edgebox.web.result_formats import RESULT_FORMATS
from edgebox.web.routes import Answer, Route
from edgebox.web.schemas import TEXT, described
from edgebox.web.subscription import RATE_MAX_HZ, RATE_MIN_HZ, Filter, Subscription
from edgebox.web.web_context import WebContext

_log = logging.getLogger(__name__)

_MESSAGE_MAX_BYTES = 65_536
_STALL_S = 20.0
_HEARTBEAT_S = 15.0
_CLOSE_S = 2.0
_GONE = (ConnectionError, TimeoutError)
"""Errors of a subscriber that disconnected or stalled."""
_EVENT_STREAM = "text/event-stream"

_CAMERAS = Texts("camera", "Only cameras of these names, or shell patterns of names; all")
_CLASSES = Texts("class", "Only what has one of these labels; all")
_SCORE_MIN = Number("score_min", 0.0, 1.0, SCORE_MIN, "Leave out what is less certain")
_OUTCOMES = Texts(
    "outcome",
    "Only frames that ended so; on_time and late if not given",
    tuple(outcome.value for outcome in Outcome),
)
_MAX_HZ = Number(
    "max_hz", RATE_MIN_HZ, RATE_MAX_HZ, None, "At most so many results a second and camera"
)
_FORMAT = Choice(
    "format",
    RESULT_FORMATS,
    RESULT_FORMATS[0],
    "Format of the results: native, COCO or supervision",
)
_EMPTY = Choice("empty", ("true", "false"), "true", "Also results on which nothing is left")


async def _results(context: WebContext, request: web.Request) -> web.StreamResponse:
    wanted = _wanted(request)
    upgrade = request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"
    if not upgrade and _EVENT_STREAM not in request.headers.get(hdrs.ACCEPT, ""):
        raise InvalidInputError(
            f"connect with a WebSocket, or ask with the header Accept: {_EVENT_STREAM}"
        )
    subscription, identity = context.feed.join(wanted), sender_of(request)
    try:
        with context.connected(subscription, lambda: identity):
            if upgrade:
                return await _serve_socket(context.feed, request, subscription)
            return await _serve_events(request, subscription)
    finally:
        context.feed.leave(subscription)


def _wanted(request: web.Request) -> Filter:
    """Return the filter in a query.

    Raises:
        InvalidInputError: the filter is malformed.
    """
    fields: dict[str, object] = {
        "cameras": list(_CAMERAS.read(request)),
        "classes": list(_CLASSES.read(request)),
        "score_min": _SCORE_MIN.read(request),
        "outcomes": list(_OUTCOMES.read(request)),
        "format": _FORMAT.read(request),
        "empty": _EMPTY.read(request) == "true",
    }
    max_hz = _MAX_HZ.read(request)
    if max_hz is not None:
        fields["max_hz"] = max_hz
    return Filter.read("query", fields)


# -- the WebSocket ------------------------------------------------------------------------------


async def _serve_socket(
    feed: Feed, request: web.Request, subscription: Subscription
) -> web.WebSocketResponse:
    socket = ClientSocket(max_msg_size=_MESSAGE_MAX_BYTES, compress=False, heartbeat=_HEARTBEAT_S)
    await socket.prepare(request)

    async def send(message: bytes) -> None:
        await socket.send_frame(message, WSMsgType.TEXT)

    tasks = [
        asyncio.create_task(_deliver(subscription, send)),
        asyncio.create_task(_read(feed, socket, subscription)),
    ]
    await _until_one_ends(tasks)
    with contextlib.suppress(*_GONE):
        async with asyncio.timeout(_CLOSE_S):
            await socket.close(code=WSCloseCode.GOING_AWAY, drain=False)
    return socket


async def _read(feed: Feed, socket: web.WebSocketResponse, subscription: Subscription) -> None:
    """Change the filter on the subscriber's messages.

    Its next message is read only after the last answer was sent, so it cannot flood itself.
    """
    async for message in socket:
        try:
            if message.type is not WSMsgType.TEXT:
                raise InvalidInputError("messages must be text")
            fields = parse_object(message.data)
            if fields.pop("type", None) != "subscribe":
                raise InvalidInputError('the only message is {"type": "subscribe", ...}')
            wanted = feed.known(Filter.read("subscribe", fields))
        except InvalidInputError as error:
            answer = orjson.dumps({"type": "error", "message": str(error)})
        else:
            subscription.change(wanted)
            answer = feed.subscribed(subscription)
        await subscription.reply(answer).wait()


async def _deliver(subscription: Subscription, send: Callable[[bytes], Awaitable[None]]) -> None:
    """Send results until the subscription ends or the subscriber stalls."""
    while (message := await subscription.next()) is not None:
        async with asyncio.timeout(_STALL_S):
            await send(message)


async def _until_one_ends(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the first of a connection's tasks to end, and end the others."""
    try:
        await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
    finally:
        await _end(tasks)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception) and not isinstance(ended, _GONE):
            _log.error("a subscriber's connection failed", exc_info=ended)


# -- server-sent events -------------------------------------------------------------------------


async def _serve_events(request: web.Request, subscription: Subscription) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={hdrs.CONTENT_TYPE: _EVENT_STREAM, hdrs.CACHE_CONTROL: "no-store"}
    )
    await response.prepare(request)

    async def send(message: bytes) -> None:
        await response.write(b"data: " + message + b"\n\n")

    async def keep_alive() -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT_S)
            await response.write(b": still here\n\n")

    tasks = [asyncio.create_task(_deliver(subscription, send)), asyncio.create_task(keep_alive())]
    await _until_one_ends(tasks)
    with contextlib.suppress(*_GONE):
        async with asyncio.timeout(_CLOSE_S):
            await response.write_eof()
    return response


ROUTES = (
    Route(
        method="GET",
        path="/v1/results",
        answer=_results,
        scope=Scope.VIEWER,
        summary="Live results of frames, for programs (docs/reference/http-api.md)",
        doc=(
            "Over a WebSocket, where messages change the filter, or as server-sent events to those "
            f"who ask with `Accept: {_EVENT_STREAM}`."
        ),
        parameters=(_CAMERAS, _CLASSES, _SCORE_MIN, _OUTCOMES, _MAX_HZ, _FORMAT, _EMPTY),
        answers=(
            Answer(
                "Results until the client goes, as server-sent events.",
                described(TEXT, "Lines `data: {...}`, each a message as over the WebSocket"),
                content_type=_EVENT_STREAM,
            ),
        ),
        problems=(TooManySubscribersError,),
        needs_ready=True,
        kind="websocket",
    ),
)
