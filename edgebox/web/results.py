"""GET /v1/results: what cameras' frames came to, for programs. docs/http-api.md.

A WebSocket, or server-sent events where the client asks for them. Whoever does not keep up
misses results (subscription.py); a box without subscribers spends nothing on them.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import orjson
from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.requests import Camera, Outcome
from edgebox.link.fields import parse_object
from edgebox.runtime.box import Box
from edgebox.runtime.cameras import CameraRecord
from edgebox.runtime.frames import Answer, Ending, FrameAtBox
from edgebox.vision.detections import Detections
from edgebox.web.documents import timing_ms
from edgebox.web.forms import coco_categories, in_form
from edgebox.web.subscription import Filter, Subscription

_log = logging.getLogger(__name__)

SUBSCRIBERS_MAX = 64
_MESSAGE_MAX_BYTES = 65_536
_STALL_S = 20.0
_HEARTBEAT_S = 15.0
_CLOSE_S = 2.0
_GONE = (ConnectionError, TimeoutError)
"""How a subscriber ends that has gone, or does not read."""
_EVENT_STREAM = "text/event-stream"
_LISTS = {"camera": "cameras", "class": "classes", "outcome": "outcomes"}
_FLAGS: dict[str, object] = {"true": True, "1": True, "false": False, "0": False}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_SINGLE: dict[str, Callable[[str], object]] = {
    "score_min": _number,
    "max_hz": _number,
    "form": str,
    "empty": lambda text: _FLAGS.get(text, text),
}

Admit = Callable[[web.Request], None]


class TooManySubscribersError(EdgeboxError):
    """As many programs as the box serves are subscribed."""

    http_status = 503
    code = "too_many_subscribers"


class Results:
    """All subscribers of one box."""

    def __init__(self, box: Box, admit: Admit) -> None:
        """Serve nobody yet.

        Args:
            box: whose frames.
            admit: raises where a request may not be answered now, or not for its sender.
        """
        self._box = box
        self._admit = admit
        self._subscriptions: set[Subscription] = set()

    def add_to(self, app: web.Application) -> None:
        """Add the route, and the goodbye when the box stops."""
        app.router.add_get("/v1/results", self.serve)
        app.on_shutdown.append(self._shut_down)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one subscriber until it goes."""
        self._admit(request)
        wanted = self._known(Filter.read("query", _query_fields(request)))
        if len(self._subscriptions) >= SUBSCRIBERS_MAX:
            raise TooManySubscribersError(
                f"{SUBSCRIBERS_MAX} programs are subscribed to results, the most this box serves"
            )
        upgrade = request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"
        if not upgrade and _EVENT_STREAM not in request.headers.get(hdrs.ACCEPT, ""):
            raise InvalidInputError(
                f"connect with a WebSocket, or ask with the header Accept: {_EVENT_STREAM}"
            )
        subscription = Subscription(wanted)
        subscription.reply(self._subscribed(wanted))
        self._join(subscription)
        try:
            if upgrade:
                return await self._serve_socket(request, subscription)
            return await _serve_events(request, subscription)
        finally:
            self._leave(subscription)

    def _join(self, subscription: Subscription) -> None:
        if not self._subscriptions:
            self._box.observers.append(self._publish)
        self._subscriptions.add(subscription)

    def _leave(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        if not self._subscriptions:
            self._box.observers.remove(self._publish)

    async def _shut_down(self, app: web.Application) -> None:
        for subscription in list(self._subscriptions):
            subscription.close()

    # -- results ----------------------------------------------------------------------------

    def _publish(self, record: CameraRecord, frame: FrameAtBox, ending: Ending) -> None:
        """Tell everybody who wants to know; what several ask for alike is written once."""
        camera, now_ns = record.camera, self._box.driver.clock_ns()
        outcome = ending.outcome if isinstance(ending, Answer) else Outcome.DROPPED
        written: dict[tuple[object, ...], bytes | None] = {}
        for subscription in self._subscriptions:
            if not subscription.wants(camera.id, outcome, now_ns):
                continue
            asked = subscription.filter
            key = (asked.form, asked.classes, asked.score_min, asked.empty)
            if key not in written:
                written[key] = self._written(camera, frame, ending, asked, now_ns)
            message = written[key]
            if message is not None:
                subscription.put(camera.id, message, now_ns)

    def _written(
        self, camera: Camera, frame: FrameAtBox, ending: Ending, asked: Filter, now_ns: int
    ) -> bytes | None:
        """Return the message about a frame; None: nothing is left that was asked for."""
        ago_ns = now_ns - frame.request.captured_ns
        document: dict[str, Any] = {
            "type": "result",
            "camera": camera.id,
            "app": camera.app,
            "family": camera.family,
            "frame": frame.number,
            "captured_at_ms": round((time.time_ns() - ago_ns) / 1e6, 1),
        }
        if not isinstance(ending, Answer):
            document["type"] = "drop"
            document["outcome"] = Outcome.DROPPED
            document["reason"] = ending.reason
            document["message"] = ending.message
            return orjson.dumps(document)
        labels = self._box.families[camera.family].labels
        found = _left(ending.detections, labels, asked)
        if not len(found) and not asked.empty:
            return None
        document["outcome"] = ending.outcome
        document["variant"] = ending.variant
        document["timing_ms"] = timing_ms(ending.timing)
        size_px = (frame.source_width_px, frame.source_height_px)
        document |= in_form(asked.form, found, labels, size_px, image_id=frame.number)
        return orjson.dumps(document)

    def _known(self, wanted: Filter) -> Filter:
        """Return a filter whose classes some family has.

        Raises:
            InvalidInputError: none has; nothing would ever come.
        """
        labels = {label for family in self._box.families.values() for label in family.labels}
        unknown = [name for name in wanted.classes if name not in labels]
        if unknown:
            raise InvalidInputError(
                f"no model family finds {', '.join(unknown)}; they find {', '.join(sorted(labels))}"
            )
        return wanted

    def _subscribed(self, wanted: Filter) -> bytes:
        families = {
            family.name: {"labels": family.labels, "categories": coco_categories(family.labels)}
            for family in self._box.families.values()
        }
        document = {"type": "subscribed", **wanted.to_json(), "families": families}
        return orjson.dumps(document)

    # -- the WebSocket ----------------------------------------------------------------------

    async def _serve_socket(
        self, request: web.Request, subscription: Subscription
    ) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(
            max_msg_size=_MESSAGE_MAX_BYTES, compress=False, heartbeat=_HEARTBEAT_S
        )
        await socket.prepare(request)

        async def send(message: bytes) -> None:
            await socket.send_frame(message, WSMsgType.TEXT)

        tasks = [
            asyncio.create_task(_deliver(subscription, send)),
            asyncio.create_task(self._read(socket, subscription)),
        ]
        try:
            await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
        finally:
            await _end(tasks)
        with contextlib.suppress(*_GONE):
            async with asyncio.timeout(_CLOSE_S):
                await socket.close(code=WSCloseCode.GOING_AWAY, drain=False)
        return socket

    async def _read(self, socket: web.WebSocketResponse, subscription: Subscription) -> None:
        """Change the filter as the subscriber says.

        It is not heard again before its last answer is on its way, so it cannot flood itself.
        """
        async for message in socket:
            try:
                if message.type is not WSMsgType.TEXT:
                    raise InvalidInputError("messages must be text")
                fields = parse_object(message.data)
                if fields.pop("type", None) != "subscribe":
                    raise InvalidInputError('the only message is {"type": "subscribe", ...}')
                wanted = self._known(Filter.read("subscribe", fields))
            except InvalidInputError as error:
                answer = orjson.dumps({"type": "error", "message": str(error)})
            else:
                subscription.change(wanted)
                answer = self._subscribed(wanted)
            await subscription.reply(answer).wait()


def _left(found: Detections, labels: tuple[str, ...], asked: Filter) -> Detections:
    """Return the detections that pass a filter."""
    found = found.above(asked.score_min)
    if not asked.classes:
        return found
    wanted = [labels[label] in asked.classes for label in found.labels.tolist()]
    return found.select(np.array(wanted, np.bool_))


async def _deliver(subscription: Subscription, send: Callable[[bytes], Awaitable[None]]) -> None:
    """Send what is told until there is no more, or the subscriber does not read."""
    while (message := await subscription.next()) is not None:
        async with asyncio.timeout(_STALL_S):
            await send(message)


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
    try:
        await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
    finally:
        await _end(tasks)
    with contextlib.suppress(*_GONE):
        async with asyncio.timeout(_CLOSE_S):
            await response.write_eof()
    return response


def _query_fields(request: web.Request) -> dict[str, object]:
    """Return the query as the fields of a message.

    Raises:
        InvalidInputError: a name that is not known, or something twice that is no list.
    """
    fields: dict[str, object] = {}
    for name in request.query:
        texts = request.query.getall(name)
        if name in _LISTS:
            fields[_LISTS[name]] = texts
        elif name not in _SINGLE:
            raise InvalidInputError(
                f"there is no parameter {name[:40]!r}; there are {', '.join((*_LISTS, *_SINGLE))}"
            )
        elif len(texts) > 1:
            raise InvalidInputError(f"{name} may be given once, not {len(texts)} times")
        else:
            fields[name] = _SINGLE[name](texts[0])
    return fields
