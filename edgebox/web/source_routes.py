"""REST over cameras whose pictures the box fetches: find, add, change and try one. http-api.md."""

import base64

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import StorageError, TooLargeError, UnknownNameError
from edgebox.domain.field_reader import FieldReader
from edgebox.domain.requests import CameraId
from edgebox.domain.source_settings import SourceSettings
from edgebox.ingest.camera_search import SearchBusyError
from edgebox.ingest.onvif_cameras import DiscoveryError, FoundCamera, NoDiscoveryError
from edgebox.ingest.pulled_cameras import (
    ConfiguredSourceError,
    SourceExistsError,
    TestsBusyError,
)
from edgebox.ingest.source_fields import SECRET_LENGTH_MAX, read_search, read_settings
from edgebox.link.from_camera import RATE_MAX_HZ, SLO_MAX_MS, SLO_MIN_MS
from edgebox.link.override_messages import RATE_MIN_HZ
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED
from edgebox.media.containers import SourceError
from edgebox.runtime.refusals import BoxFullError
from edgebox.web.bodies import read_object
from edgebox.web.camera_list import CAMERA, camera_document
from edgebox.web.named_models import check_models
from edgebox.web.query_parameters import InPath
from edgebox.web.routes import JSON, Answer, Body, Route, json_response
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    TEXT,
    JsonSchema,
    Schema,
    array,
    described,
    nullable,
    record,
    request_of,
    some_of,
)
from edgebox.web.typed_schemas import schema_of
from edgebox.web.web_context import WebContext

_ID = InPath("id", "The camera's name")
_NAME: JsonSchema = {"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$"}


async def _add(context: WebContext, request: web.Request) -> web.Response:
    fields = await read_object(request)
    read = FieldReader("source", fields)
    camera = CameraId(read.text("id", pattern=NAME_PATTERN, expected=NAME_WANTED))
    read.finish()
    settings = read_settings(camera, {name: of for name, of in fields.items() if name != "id"})
    check_models(context.box.models, "source", None, settings)
    await context.sources.add(settings)
    return json_response(await camera_document(context, camera), status=201)


async def _change(context: WebContext, request: web.Request) -> web.Response:
    camera = CameraId(_ID.read(request))
    fields = await read_object(request)

    def changed(before: SourceSettings) -> SourceSettings:
        settings = read_settings(camera, fields, before)
        check_models(context.box.models, "source", before, settings)
        return settings

    await context.sources.change(camera, changed)
    return json_response(await camera_document(context, camera))


async def _test(context: WebContext, request: web.Request) -> web.Response:
    settings = read_settings(CameraId("test"), await read_object(request))
    found = await context.sources.test(settings)
    return json_response(
        {
            "width_px": found.width_px,
            "height_px": found.height_px,
            "codec": found.codec,
            "decoder": found.decoder,
            "jpeg": base64.b64encode(found.jpeg).decode(),
        }
    )


async def _discover(context: WebContext, request: web.Request) -> web.Response:
    host, credentials = read_search(await read_object(request))
    return json_response({"cameras": await context.search.search(credentials, host)})


def _number(low: float, high: float, doc: str) -> JsonSchema:
    return described(nullable({"type": "number", "minimum": low, "maximum": high}), doc)


_SECRET: JsonSchema = nullable({"type": "string", "maxLength": SECRET_LENGTH_MAX})
_ADDRESS = described(
    TEXT,
    "rtsp://, rtsps://, http:// or https:// with the stream's path; file: with a path; or "
    "webcam:0. A user and a password in it are kept apart from it",
)
_FIELDS: dict[str, JsonSchema] = {
    "substream_url": described(
        nullable(TEXT), "A smaller stream of the same camera, used while it is large enough"
    ),
    "username": described(_SECRET, "User name for the camera; no answer ever shows it"),
    "password": described(_SECRET, "Its password; no answer ever shows it"),
    "app": described(nullable(_NAME), "The application its frames belong to"),
    "family": described(nullable(_NAME), "Its model family; null: the box's default"),
    "pipeline": described(nullable(_NAME), "Its pipeline; null: the box's default"),
    "slo_ms": _number(SLO_MIN_MS, SLO_MAX_MS, "From a picture's capture to its answer"),
    "rate_hz": _number(RATE_MIN_HZ, RATE_MAX_HZ, "Pictures a second"),
    "min_rate_hz": _number(0, RATE_MAX_HZ, "Lowest useful pictures a second"),
    "min_accuracy": _number(0, 1, "Run no variant below this accuracy"),
    "decoder": described(
        nullable(TEXT), "software, or a type of hardware device that `edgebox doctor` lists"
    ),
    "motion_gate": described(
        nullable(BOOLEAN), "Whether pictures of a scene that stands still are left out"
    ),
}
_NEW = Schema("NewSource", request_of({"id": _NAME, "url": _ADDRESS}, **_FIELDS))
_TESTED = Schema("TestedSource", request_of({"url": _ADDRESS}, **_FIELDS))
_CHANGED = Schema("SourceChange", some_of(url=_ADDRESS, **_FIELDS))
_PICTURE = Schema(
    "TestPicture",
    record(
        width_px=described(COUNT, "Of the source's picture; the JPEG may be smaller"),
        height_px=COUNT,
        codec=TEXT,
        decoder=described(TEXT, "software, or the type of the hardware device that decoded it"),
        jpeg=described({"type": "string", "contentEncoding": "base64"}, "The first picture"),
    ),
)
_SEARCH = Schema(
    "CameraSearch",
    request_of(
        {},
        host=described(nullable(TEXT), "Ask only the camera at this address; null: all"),
        username=described(_SECRET, "User name for that camera; needs `host`"),
        password=described(_SECRET, "Its password, which is sent hashed"),
    ),
)
_FOUND = Schema("FoundCameras", record(cameras=array(schema_of(FoundCamera))))

ROUTES = (
    Route(
        method="POST",
        path="/v1/cameras",
        answer=_add,
        scope=Scope.ADMIN,
        summary="Add a camera whose pictures the box fetches",
        doc=(
            "The box opens the address, now and after every start, and tries again for as long as "
            "it takes. A source that is off is added all the same: test it before. A model that "
            "the box does not have is refused."
        ),
        body=Body({JSON: _NEW}, "The camera and where its pictures are"),
        answers=(Answer("The camera.", CAMERA, status=201),),
        problems=(UnknownNameError, SourceExistsError, BoxFullError, TooLargeError, StorageError),
    ),
    Route(
        method="POST",
        path="/v1/sources/discover",
        answer=_discover,
        scope=Scope.OPERATOR,
        summary="Look for ONVIF cameras in the local network",
        doc=(
            "Takes about 4 s. Anybody in the network can answer: what is found is no proof of "
            "what it is, so user and password go, hashed, to the one camera that is named."
        ),
        body=Body({JSON: _SEARCH}, "Which camera, and as whom; an empty object: all"),
        answers=(Answer("The cameras that answered, and their streams.", _FOUND),),
        problems=(DiscoveryError, NoDiscoveryError, SearchBusyError, TooLargeError),
    ),
    Route(
        method="POST",
        path="/v1/sources/test",
        answer=_test,
        scope=Scope.ADMIN,
        summary="Fetch one picture of a source, which is not added",
        body=Body({JSON: _TESTED}, "Where the pictures are"),
        answers=(Answer("Its first picture.", _PICTURE),),
        problems=(SourceError, TestsBusyError, TooLargeError),
    ),
    Route(
        method="PATCH",
        path="/v1/cameras/{id}/source",
        answer=_change,
        scope=Scope.ADMIN,
        summary="Change where the box fetches a camera's pictures, and how",
        doc="Fields that are not named stay; null restores the default. It connects again.",
        parameters=(_ID,),
        body=Body({JSON: _CHANGED, "application/merge-patch+json": _CHANGED}, "What to change"),
        answers=(Answer("The camera.", CAMERA),),
        problems=(UnknownNameError, ConfiguredSourceError, TooLargeError, StorageError),
    ),
)
