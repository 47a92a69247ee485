"""Owns the addresses under /v2: the Open Inference Protocol over HTTP, as Triton speaks it.

docs/inference-protocol.md. A sub-application of its own, since the protocol has its own form of
errors. Requests are batched with the cameras' frames and refused when they cannot make it, as at
POST /v1/infer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from edgebox.domain.errors import EdgeboxError
from edgebox.runtime.frames import Answer
from edgebox.web.bodies import read_body
from edgebox.web.camera_pictures import FRAME_BYTES_SETTING, answered, largest_in_time
from edgebox.web.routes import json_response, refuse_foreign_pages, refuse_unready
from edgebox.web.v2.inference_request import InferenceRequest, Picture, read_request
from edgebox.web.v2.model_metadata import VERSION, Model, model_named, models_of
from edgebox.web.v2.tensor_codec import Tensor, outputs_of
from edgebox.web.web_context import WebContext

_log = logging.getLogger(__name__)

HEADER_LENGTH = "Inference-Header-Content-Length"
EXTENSIONS = ("binary_tensor_data", "model_configuration", "parameters")
_BODY_PICTURES = 4
"""A body may have so many times the bytes of one JPEG: raw pixels are large, and many at once."""
_BODY_SETTING = f"{_BODY_PICTURES} times {FRAME_BYTES_SETTING}"
_COMPRESSED_FROM_BYTES = 16_384
"""Below, the saving is not worth the event loop's time."""

Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def open_inference(site: WebContext) -> web.Application:
    """Return the sub-application that belongs at /v2."""
    routes = _Routes(site)
    app = web.Application(middlewares=[_errors], client_max_size=2**62)
    app.add_routes(
        [
            web.get("", routes.server),
            web.get("/health/live", routes.live),
            web.get("/health/ready", routes.ready),
            web.post("/repository/index", routes.index),
        ]
    )
    for path in ("/models/{model}", "/models/{model}/versions/{version}"):
        app.add_routes(
            [
                web.get(path, routes.metadata),
                web.get(f"{path}/config", routes.config),
                web.get(f"{path}/ready", routes.model_ready),
                web.post(f"{path}/infer", routes.infer),
            ]
        )
    return app


class _Routes:
    """What answers each address."""

    def __init__(self, site: WebContext) -> None:
        self._site = site
        self._box = site.box

    async def server(self, request: web.Request) -> web.Response:
        refuse_foreign_pages(request)
        document = {"name": "edgebox", "version": self._box.version, "extensions": EXTENSIONS}
        return json_response(document)

    async def live(self, request: web.Request) -> web.Response:
        return json_response({"live": True})

    async def ready(self, request: web.Request) -> web.Response:
        if because := self._box.unserved_because():
            return json_response({"ready": False, "error": because}, 503)
        return json_response({"ready": True})

    async def index(self, request: web.Request) -> web.Response:
        self._admit(request)
        return json_response(
            [
                {
                    "name": model.name,
                    "version": VERSION,
                    "state": "UNAVAILABLE" if because else "READY",
                    "reason": because,
                }
                for model in models_of(self._box)
                for because in [self._box.unserved_because(model.variants)]
            ]
        )

    async def metadata(self, request: web.Request) -> web.Response:
        return json_response(self._model(request).metadata())

    async def config(self, request: web.Request) -> web.Response:
        return json_response(self._model(request).config())

    async def model_ready(self, request: web.Request) -> web.Response:
        model = self._model(request)
        if because := self._box.unserved_because(model.variants):
            return json_response({"name": model.name, "ready": False, "error": because}, 503)
        return json_response({"name": model.name, "ready": True})

    async def infer(self, request: web.Request) -> web.Response:
        model = self._model(request)
        frame_bytes_max = self._site.config.limits.frame_bytes_max
        body = await read_body(request, _BODY_PICTURES * frame_bytes_max, setting=_BODY_SETTING)
        asked = read_request(body, request.headers.get(HEADER_LENGTH), frame_bytes_max)
        outputs = outputs_of(
            await self._answers(model, asked), model.family.labels, asked.boxes, asked.score_min
        )
        return _response(model, asked, outputs)

    def _admit(self, request: web.Request) -> None:
        refuse_foreign_pages(request)
        refuse_unready(self._site)

    def _model(self, request: web.Request) -> Model:
        self._admit(request)
        names = request.match_info
        return model_named(self._box, names["model"], names.get("version"))

    async def _answers(self, model: Model, asked: InferenceRequest) -> list[Answer]:
        """Have all pictures answered at once; the first that is not ends the request."""
        several = len(asked.pictures) > 1
        asking = enumerate(zip(asked.pictures, asked.sizes_px, strict=True))
        return await asyncio.gather(
            *(
                self._answer(model, asked, picture, size_px, at if several else None)
                for at, (picture, size_px) in asking
            )
        )

    async def _answer(
        self,
        model: Model,
        asked: InferenceRequest,
        picture: Picture,
        size_px: tuple[int, int],
        at: int | None,
    ) -> Answer:
        deadline_ms = asked.deadline_ms
        if model.variant is not None:
            variant = model.variant.name
        else:
            together = len(asked.pictures)
            variants = model.family.offered
            variant = largest_in_time(
                self._box, variants, size_px, deadline_ms, together, app=asked.app
            )
        try:
            return await answered(self._box, picture, size_px, variant, deadline_ms, app=asked.app)
        except EdgeboxError as error:
            if at is not None:
                error.args = (f"picture {at}: {error}",)
            raise


def _response(model: Model, asked: InferenceRequest, outputs: dict[str, Tensor]) -> web.Response:
    """Return the outputs that were asked for: JSON, and binary data behind it."""
    described: list[dict[str, object]] = []
    behind: list[bytes] = []
    for wanted in asked.outputs:
        tensor = outputs[wanted.name]
        entry: dict[str, object] = {
            "name": wanted.name,
            "datatype": tensor.spec.datatype,
            "shape": tensor.shape,
        }
        if wanted.binary:
            behind.append(tensor.packed())
            described.append({**entry, "parameters": {"binary_data_size": len(behind[-1])}})
        else:
            described.append({**entry, "data": tensor.listed()})
    document: dict[str, object] = {
        "model_name": model.name,
        "model_version": VERSION,
        "outputs": described,
    }
    if asked.id is not None:
        document["id"] = asked.id
    head = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    body = b"".join((head, *behind))
    response = web.Response(body=body, content_type="application/json")
    if behind:
        response.content_type = "application/octet-stream"
        response.headers[HEADER_LENGTH] = str(len(head))
    if len(body) >= _COMPRESSED_FROM_BYTES:
        response.enable_compression()
    return response


@web.middleware
async def _errors(request: web.Request, handler: Answerer) -> web.StreamResponse:
    """Turn every error into the protocol's: an object with `error`."""
    try:
        return await handler(request)
    except EdgeboxError as error:
        return json_response({"error": str(error)}, error.http_status)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        said = f"{error.status} {error.reason}: {request.method} {request.path}"
        response = json_response({"error": said}, error.status)
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except Exception:
        _log.exception("%s %s failed", request.method, request.path)
        return json_response({"error": "the box failed on this request; its log says why"}, 500)
