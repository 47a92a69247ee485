"""REST over cameras: list them, read one, set it on the box, forget it. docs/http-api.md."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from edgebox.domain.errors import (
    EdgeboxError,
    InvalidInputError,
    StorageError,
    TooLargeError,
    UnknownNameError,
)
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.requests import Camera, CameraId
from edgebox.link.deadlines import to_later
from edgebox.link.fields import parse_object
from edgebox.link.from_camera import RATE_MAX_HZ, SLO_MAX_MS, SLO_MIN_MS
from edgebox.link.override_messages import RATE_MIN_HZ, changed, written
from edgebox.link.protocol import NAME_PATTERN
from edgebox.runtime.camera_record import CameraRecord
from edgebox.storage.rows import CameraRecord as StoredCamera
from edgebox.web.bodies import read_body
from edgebox.web.query_parameters import InPath
from edgebox.web.routes import JSON, Answer, Body, Route, json_response
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    TEXT,
    JsonSchema,
    Schema,
    array,
    described,
    nullable,
    record,
    some_of,
)
from edgebox.web.state_document import camera_state
from edgebox.web.state_schemas import CAMERA_STATE, LATER
from edgebox.web.web_context import WebContext

_BODY_MAX_BYTES = 65_536
_CAMERAS_PER_SLICE = 4
_ID = InPath("id", "The camera's name, as in its hello")


class CameraConnectedError(EdgeboxError):
    """What was asked for is not possible while the camera, or a frame of it, is here."""

    http_status = 409
    code = "camera_connected"
    title = "The camera is connected, or was a moment ago"


async def _list(site: WebContext, request: web.Request) -> web.Response:
    stored = await _stored(site)
    cameras = []
    for number, name in enumerate(dict.fromkeys([*site.box.cameras, *stored])):
        if number % _CAMERAS_PER_SLICE == _CAMERAS_PER_SLICE - 1:
            await asyncio.sleep(0)  # frames come first
        cameras.append(_shown(site, name, stored.get(name)))
    return json_response({"cameras": cameras})


async def _one(site: WebContext, request: web.Request) -> web.Response:
    camera, stored = await _known(site, request)
    return json_response(_shown(site, camera, stored))


async def _change(site: WebContext, request: web.Request) -> web.Response:
    camera, _ = await _known(site, request)
    body = await read_body(request, _BODY_MAX_BYTES)
    if not body:
        raise InvalidInputError("the body is empty; it must be a JSON object")
    fields = parse_object(body)
    before = site.box.overrides.get(camera, NOTHING_SET)
    after = changed(before, fields)
    if after != before:
        site.box.override(camera, after)
        site.storage.record_overrides(camera, written(after))
        site.box.note("info", f"{camera} was set on the box: {_in_words(after)}", camera)
    return json_response(_shown(site, camera, (await _stored(site)).get(camera)))


async def _forget(site: WebContext, request: web.Request) -> web.Response:
    camera, _ = await _known(site, request)
    live = site.box.cameras.get(camera)
    if live is not None and live.connected:
        raise CameraConnectedError(
            f"{camera} is connected: it would come back at once; stop it first"
        )
    if live is not None and site.box.metrics.of(camera).counts.pending:
        # Forgotten now, they would count as pending for ever in what the box has counted.
        raise CameraConnectedError(f"frames of {camera} are still running; try again in a second")
    site.box.forget(camera)
    site.storage.forget_camera(camera)
    site.box.note("info", f"{camera} was forgotten")
    return web.Response(status=204)


async def _stored(site: WebContext) -> dict[CameraId, StoredCamera]:
    await site.storage.flush()  # a camera that has just said hello is still on its way there
    return {known.camera: known for known in await site.storage.cameras()}


async def _known(site: WebContext, request: web.Request) -> tuple[CameraId, StoredCamera | None]:
    """Return the camera that a request names.

    Raises:
        UnknownNameError: the box has never met it.
    """
    camera = CameraId(_ID.read(request))
    stored = (await _stored(site)).get(camera)
    if stored is None and camera not in site.box.cameras:
        raise UnknownNameError(f"this box knows no camera {camera!r}; GET /v1/cameras lists them")
    return camera, stored


def _shown(site: WebContext, camera: CameraId, stored: StoredCamera | None) -> dict[str, Any]:
    live = site.box.cameras.get(camera)
    overrides = site.box.overrides.get(camera, NOTHING_SET)
    return {
        "id": camera,
        "connected": live is not None and live.connected,
        "first_seen_ms": stored and stored.first_seen_ms,
        "last_seen_ms": stored and stored.last_seen_ms,
        "asked": _asked(live, stored),
        "overrides": written(overrides),
        "in_force": None if live is None else _wishes(live.camera),
        "state": None if live is None else camera_state(site.box, live),
    }


def _asked(live: CameraRecord | None, stored: StoredCamera | None) -> dict[str, Any]:
    if live is not None:
        return _wishes(live.asked)
    hello: Mapping[str, Any] = {} if stored is None else stored.hello
    slo_ms, later = hello.get("slo_ms"), []
    if isinstance(slo_ms, list):  # several deadlines, as `written_steps` writes them
        slo_ms, later = slo_ms[0][0], slo_ms[1:]
    names = (
        "app",
        "family",
        "rate_hz",
        "min_rate_hz",
        "min_accuracy",
        "width_px",
        "height_px",
        "site",
    )
    return {**{name: hello.get(name) for name in names}, "slo_ms": slo_ms, "later": later}


def _wishes(camera: Camera) -> dict[str, Any]:
    return {
        "app": camera.app,
        "family": camera.family,
        "slo_ms": camera.slo_ns / 1e6,
        "later": to_later(camera.steps),
        "rate_hz": camera.rate_hz,
        "min_rate_hz": camera.min_rate_hz,
        "min_accuracy": camera.min_accuracy,
        "width_px": camera.width_px,
        "height_px": camera.height_px,
        "site": camera.site,
    }


def _in_words(overrides: Overrides) -> str:
    set_here = {name: value for name, value in written(overrides).items() if value is not None}
    words = ", ".join(f"{name} {orjson.dumps(value).decode()}" for name, value in set_here.items())
    return words or "nothing any more"


_FIELDS: dict[str, JsonSchema] = {
    "slo_ms": described(
        nullable({"type": "number", "minimum": SLO_MIN_MS, "maximum": SLO_MAX_MS}),
        "The deadline of each frame; later ones of the hello do not count then",
    ),
    "rate_hz": described(
        nullable({"type": "number", "minimum": RATE_MIN_HZ, "maximum": RATE_MAX_HZ}),
        "At most so many frames a second",
    ),
    "app": described(
        nullable({"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$"}),
        "The application its frames belong to",
    ),
    "min_accuracy": described(
        nullable({"type": "number", "minimum": 0, "maximum": 1}),
        "Run no variant below this accuracy",
    ),
    "site": described(
        nullable({"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$"}),
        "A name for the uplink that it shares with other cameras",
    ),
}
_OVERRIDES = Schema("Overrides", record(**_FIELDS))
_CHANGE = Schema("CameraChange", some_of(**_FIELDS))
_WISHES: dict[str, JsonSchema] = {
    "app": TEXT,
    "slo_ms": NUMBER,
    "later": LATER,
    "rate_hz": NUMBER,
    "min_rate_hz": NUMBER,
    "min_accuracy": NUMBER,
    "width_px": COUNT,
    "height_px": COUNT,
}
_CAMERA = Schema(
    "Camera",
    record(
        id=TEXT,
        connected=BOOLEAN,
        first_seen_ms=nullable(COUNT),
        last_seen_ms=nullable(COUNT),
        asked=Schema(
            "Asked",
            record(
                family=nullable(TEXT),
                **{name: nullable(of) for name, of in _WISHES.items() if name != "later"},
                later=LATER,
                site=nullable(TEXT),
            ),
        ),
        overrides=_OVERRIDES,
        in_force=nullable(Schema("InForce", record(family=TEXT, **_WISHES, site=nullable(TEXT)))),
        state=nullable(CAMERA_STATE),
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/cameras",
        answer=_list,
        summary="Every camera this box knows",
        doc="Those connected first, then those it remembers, the last seen first.",
        answers=(Answer("The cameras.", record(cameras=array(_CAMERA))),),
        problems=(StorageError,),
    ),
    Route(
        method="GET",
        path="/v1/cameras/{id}",
        answer=_one,
        summary="One camera",
        parameters=(_ID,),
        answers=(Answer("The camera.", _CAMERA),),
        problems=(UnknownNameError, StorageError),
    ),
    Route(
        method="PATCH",
        path="/v1/cameras/{id}",
        answer=_change,
        summary="Set a camera on the box, over what its hello asks for",
        doc=(
            "At once, and for as long as the box knows the camera: over reconnecting and restarts. "
            "What is not named stays; null goes back to what the hello asks for."
        ),
        parameters=(_ID,),
        body=Body({JSON: _CHANGE, "application/merge-patch+json": _CHANGE}, "What to change"),
        answers=(Answer("The camera as it is now.", _CAMERA),),
        problems=(UnknownNameError, TooLargeError, StorageError),
        needs_ready=True,
    ),
    Route(
        method="DELETE",
        path="/v1/cameras/{id}",
        answer=_forget,
        summary="Forget a camera that is not connected",
        doc="Its settings, its metrics and its events are deleted.",
        parameters=(_ID,),
        answers=(Answer("It is forgotten.", None, status=204),),
        problems=(UnknownNameError, CameraConnectedError, StorageError),
    ),
)
