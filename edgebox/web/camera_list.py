"""REST over cameras: list them, read one, set it on the box, forget it. http-api.md."""

import asyncio
import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import (
    EdgeboxError,
    InvalidInputError,
    StorageError,
    TooLargeError,
    UnknownNameError,
)
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.requests import Camera, CameraId
from edgebox.domain.zones import Line, Zone
from edgebox.ingest.pulled_cameras import ConfiguredSourceError
from edgebox.link.deadlines import LaterDeadlines, to_later
from edgebox.link.from_camera import RATE_MAX_HZ, SLO_MAX_MS, SLO_MIN_MS
from edgebox.link.override_messages import RATE_MIN_HZ, changed, written
from edgebox.link.protocol import NAME_PATTERN
from edgebox.runtime.camera_record import CameraRecord
from edgebox.storage.rows import CameraRecord as StoredCamera
from edgebox.web.bodies import read_object
from edgebox.web.camera_state import camera_state
from edgebox.web.identification import sender_of
from edgebox.web.named_models import check_models
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
    one_of,
    record,
    some_of,
)
from edgebox.web.setting_versions import (
    SettingsChangedError,
    differing,
    read_change,
    refuse_unseen,
    versions,
)
from edgebox.web.source_documents import SourceDocument, source_document
from edgebox.web.state_types import CameraState
from edgebox.web.typed_schemas import schema_of, value_schema
from edgebox.web.web_context import WebContext
from edgebox.web.zone_schemas import LINES, ZONES

_CAMERAS_PER_SLICE = 4
_PENDING_LOOKS = 250
_ID = InPath("id", "The camera's name, as in its hello")


class CameraConnectedError(EdgeboxError):
    """The operation is not possible while the camera is connected or has pending frames."""

    http_status = 409
    code = "camera_connected"
    title = "The camera is connected, or was a moment ago"


async def _list(context: WebContext, request: web.Request) -> web.Response:
    await context.storage.catch_up()  # includes cameras that have just connected
    stored = {known.camera: known for known in await context.storage.cameras()}
    cameras = []
    box = context.box
    connected = [name for name, record in box.cameras.items() if record.connected]
    names = dict.fromkeys([*connected, *box.sources, *stored, *box.cameras])
    for number, name in enumerate(names):
        if number % _CAMERAS_PER_SLICE == _CAMERAS_PER_SLICE - 1:
            await asyncio.sleep(0)  # frames come first
        cameras.append(_shown(context, name, stored.get(name)))
    return json_response({"cameras": cameras})


async def _one(context: WebContext, request: web.Request) -> web.Response:
    camera, stored = await _find_camera(context, request)
    return json_response(_shown(context, camera, stored))


async def _change(context: WebContext, request: web.Request) -> web.Response:
    fields, seen = read_change(await read_object(request))
    camera, _ = await _find_camera(context, request)  # may be forgotten while a body arrives
    before = context.box.overrides.get(camera, NOTHING_SET)
    after = changed(before, fields)
    refuse_unseen(camera, seen, before, after, functools.partial(_who, context, camera))
    check_models(context.box.models, "settings", before, after)
    _check_classes(context, before, after)
    _check_names(context, camera, before, after)
    if after != before:
        context.setters.note(camera, differing(before, after), sender_of(request))
        context.box.override(camera, after)
        context.storage.set_camera(camera, written(after))
        if context.fleet is not None:
            context.fleet.settings.set_here(camera, after)
        context.box.notices.publish(
            "info", f"{camera} was set on the box: {_in_words(after)}", camera
        )
    return json_response(await camera_document(context, camera))


def _who(context: WebContext, camera: CameraId, setting: str) -> str:
    """Return who changed a setting last, as the end of a sentence."""
    elsewhere = context.fleet and context.fleet.settings.set_elsewhere(camera, setting)
    if elsewhere:
        return f" on {elsewhere}"
    name = context.setters.of(camera, setting)
    return f" by {name}" if name else ""


def _check_names(
    context: WebContext, camera: CameraId, before: Overrides, after: Overrides
) -> None:
    """Check that no more zones and lines have one name than before, the file's included.

    Raises:
        InvalidInputError: two have the same.
    """

    def names(overrides: Overrides) -> Counter[str]:
        tracked = context.box.tracking.would_be(camera, overrides)
        of: tuple[Zone | Line, ...] = (*tracked.zones, *tracked.lines) if tracked else ()
        return Counter(each.name for each in of)

    known = names(before)
    for name, count in names(after).items():
        if count > max(1, known[name]):
            raise InvalidInputError(
                f"{count} zones and lines of {camera} would be called {name}; the configuration "
                "file may have one of them: give each a name of its own"
            )


def _drawn(overrides: Overrides) -> list[tuple[str, Sequence[Zone | Line]]]:
    return [("zones", overrides.zones or ()), ("lines", overrides.lines or ())]


def _check_classes(context: WebContext, before: Overrides, after: Overrides) -> None:
    """Check that some family finds the classes that zones and lines did not have before.

    Raises:
        InvalidInputError: none does.
    """
    detectors = (f for f in context.box.families.values() if f.task == "detect")
    known = {label for family in detectors for label in family.labels}
    had = {(key, of.name, name) for key, ofs in _drawn(before) for of in ofs for name in of.classes}
    for key, of_key in _drawn(after):
        for at, of in enumerate(of_key):
            for name in of.classes:
                if name not in known and (key, of.name, name) not in had:
                    raise InvalidInputError(
                        f"settings.{key}[{at}].classes: no model family finds {name}; they find "
                        f"{', '.join(sorted(known))}"
                    )


async def _forget(context: WebContext, request: web.Request) -> web.Response:
    camera, _ = await _find_camera(context, request)
    if camera in context.box.sources:
        await context.sources.remove(camera)
    live = context.box.cameras.get(camera)
    if live is not None and not live.connected:
        await _without_pending(context, camera)
        live = context.box.cameras.get(camera)
    if live is not None and live.connected:
        raise CameraConnectedError(
            f"{camera} is connected: it would come back at once; stop it first"
        )
    if live is not None and context.box.metrics.of(camera).counts.pending:
        # Their frames would count as pending for ever.
        raise CameraConnectedError(f"frames of {camera} are still running; try again in a second")
    context.box.forget(camera)
    context.setters.forget(camera)
    context.storage.forget_camera(camera)
    if context.fleet is not None:
        context.fleet.settings.forgotten_here(camera)
    context.box.notices.publish("info", f"{camera} was forgotten")
    return web.Response(status=204)


async def _without_pending(context: WebContext, camera: CameraId) -> None:
    """Wait until the last batches with frames of a camera that has just left are done."""
    for _ in range(_PENDING_LOOKS):
        if not context.box.metrics.of(camera).counts.pending:
            return
        await asyncio.sleep(0.02)


async def camera_document(context: WebContext, camera: CameraId) -> dict[str, Any]:
    """Return the document of a camera that the box knows."""
    return _shown(context, camera, await _stored(context, camera))


async def _stored(context: WebContext, camera: CameraId) -> StoredCamera | None:
    await context.storage.catch_up()  # includes a camera that has just connected
    return await context.storage.camera(camera)


async def _find_camera(
    context: WebContext, request: web.Request
) -> tuple[CameraId, StoredCamera | None]:
    """Return the camera that a request names.

    Raises:
        UnknownNameError: the box does not know it.
    """
    camera = CameraId(_ID.read(request))
    stored = await _stored(context, camera)
    box = context.box
    if stored is None and camera not in box.cameras and camera not in box.sources:
        raise UnknownNameError(f"this box knows no camera {camera!r}; GET /v1/cameras lists them")
    return camera, stored


def _shown(context: WebContext, camera: CameraId, stored: StoredCamera | None) -> dict[str, Any]:
    live = context.box.cameras.get(camera)
    overrides = context.box.overrides.get(camera, NOTHING_SET)
    source = context.box.sources.get(camera)
    return {
        "id": camera,
        "connected": live is not None and live.connected,
        "first_seen_ms": None if stored is None else stored.first_seen_ms or None,
        "last_seen_ms": None if stored is None else stored.last_seen_ms or None,
        "requested": _requested_settings(live, stored),
        "origins": _origins(context, live),
        "overrides": written(overrides),
        "versions": versions(overrides),
        "in_force": None if live is None else _settings(live.camera),
        "state": None if live is None else camera_state(context.box, live),
        "source": None if source is None else source_document(source),
    }


def _requested_settings(live: CameraRecord | None, stored: StoredCamera | None) -> dict[str, Any]:
    if live is not None:
        return _settings(live.requested)
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
        "pipeline",
    )
    return {**{name: hello.get(name) for name in names}, "slo_ms": slo_ms, "later": later}


def _origins(context: WebContext, live: CameraRecord | None) -> dict[str, str]:
    """Return where each requested setting comes from.

    "unknown": the camera has not connected since the box started.
    """
    if live is None:
        return dict.fromkeys(_WITH_ORIGIN, "unknown")
    named = live.named
    origins = {name: "camera" if name in named else "default" for name in _WITH_ORIGIN}
    if "family" in named:  # such a camera has no pipeline but the one that it names
        origins["pipeline"] = "camera"
    elif "pipeline" not in named and context.box.models.default_pipeline is not None:
        origins["pipeline"] = "configuration"
    return origins


def _settings(camera: Camera) -> dict[str, Any]:
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
        "pipeline": None if camera.pipeline is None else camera.pipeline.name,
    }


def _in_words(overrides: Overrides) -> str:
    set_here: dict[str, Any] = {
        name: value for name, value in written(overrides).items() if value is not None
    }
    for name in ("zones", "lines"):
        if name in set_here:
            set_here[name] = [one["name"] for one in set_here[name]]
    words = ", ".join(f"{name} {orjson.dumps(value).decode()}" for name, value in set_here.items())
    return words or "nothing any more"


_FIELDS: dict[str, JsonSchema] = {
    "slo_ms": described(
        nullable({"type": "number", "minimum": SLO_MIN_MS, "maximum": SLO_MAX_MS}),
        "The deadline of each frame; it replaces all deadlines of the hello",
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
    "pipeline": described(
        nullable({"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$"}),
        "The pipeline that its frames run through; a connected camera connects again",
    ),
    "family": described(
        nullable({"type": "string", "minLength": 1}),
        "The model family that its frames run on, instead of a pipeline; a connected camera "
        "connects again",
    ),
    "tracking": described(
        nullable(BOOLEAN), "Whether its objects are tracked; null: as the configuration says"
    ),
    "zones": described(nullable(ZONES), "All its zones; null: those of the configuration"),
    "lines": described(nullable(LINES), "All its lines; null: those of the configuration"),
}
_WITH_ORIGIN = ("slo_ms", "rate_hz", "min_accuracy", "app", "site", "pipeline", "family")
_ORIGIN = one_of("camera", "configuration", "default", "unknown")
_OVERRIDES = Schema("Overrides", record(**_FIELDS))
_VERSIONS = Schema(
    "SettingVersions",
    described(
        record(**dict.fromkeys(_FIELDS, TEXT)),
        "Of each field of `overrides`, to compare for equality; a pipeline and a family are one "
        "setting, and so are zones and lines",
    ),
)
_BASE = described(
    nullable(some_of(**dict.fromkeys(_FIELDS, TEXT))),
    "The `versions` of the camera that this change was made from: where a setting that it changes "
    "has another one now, it is refused",
)
_CHANGE = Schema("CameraChange", some_of(**_FIELDS, base=_BASE))
_LATER = value_schema(LaterDeadlines)
_SETTINGS: dict[str, JsonSchema | Schema] = {
    "app": TEXT,
    "slo_ms": NUMBER,
    "later": _LATER,
    "rate_hz": NUMBER,
    "min_rate_hz": NUMBER,
    "min_accuracy": NUMBER,
    "width_px": COUNT,
    "height_px": COUNT,
}
CAMERA = Schema(
    "Camera",
    record(
        id=TEXT,
        connected=BOOLEAN,
        first_seen_ms=nullable(COUNT),
        last_seen_ms=nullable(COUNT),
        requested=Schema(
            "RequestedSettings",
            record(
                family=nullable(TEXT),
                **{name: nullable(of) for name, of in _SETTINGS.items() if name != "later"},
                later=_LATER,
                site=nullable(TEXT),
                pipeline=nullable(TEXT),
            ),
        ),
        origins=Schema("SettingOrigins", record(**dict.fromkeys(_WITH_ORIGIN, _ORIGIN))),
        overrides=_OVERRIDES,
        versions=_VERSIONS,
        in_force=nullable(
            Schema(
                "InForce",
                record(family=TEXT, **_SETTINGS, site=nullable(TEXT), pipeline=nullable(TEXT)),
            )
        ),
        state=nullable(schema_of(CameraState)),
        source=described(
            nullable(schema_of(SourceDocument)),
            "Where the box fetches its pictures; null: it connects itself",
        ),
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/cameras",
        answer=_list,
        scope=Scope.VIEWER,
        summary="Every camera this box knows",
        doc="Those connected first, then those it fetches, then those it remembers, the last seen "
        "first.",
        answers=(Answer("The cameras.", record(cameras=array(CAMERA))),),
        problems=(StorageError,),
    ),
    Route(
        method="GET",
        path="/v1/cameras/{id}",
        answer=_one,
        scope=Scope.VIEWER,
        summary="One camera",
        parameters=(_ID,),
        answers=(Answer("The camera.", CAMERA),),
        problems=(UnknownNameError, StorageError),
    ),
    Route(
        method="PATCH",
        path="/v1/cameras/{id}",
        answer=_change,
        scope=Scope.OPERATOR,
        summary="Override a camera's hello",
        doc=(
            "Takes effect at once, and lasts for as long as the box knows the camera. Settings "
            "that are not named stay; null restores the value of the hello. With `base`, it is "
            "refused where somebody else changed the same setting meanwhile."
        ),
        parameters=(_ID,),
        body=Body({JSON: _CHANGE, "application/merge-patch+json": _CHANGE}, "What to change"),
        answers=(Answer("The camera as it is now.", CAMERA),),
        problems=(UnknownNameError, SettingsChangedError, TooLargeError, StorageError),
        needs_ready=True,
    ),
    Route(
        method="DELETE",
        path="/v1/cameras/{id}",
        answer=_forget,
        scope=Scope.OPERATOR,
        summary="Forget a camera that is not connected, or that the box fetches",
        doc=(
            "Its settings, its metrics and its events are deleted. One whose pictures the box "
            "fetches is not fetched any more."
        ),
        parameters=(_ID,),
        answers=(Answer("It is forgotten.", None, status=204),),
        problems=(UnknownNameError, CameraConnectedError, ConfiguredSourceError, StorageError),
    ),
)
