"""Routes under /v2: the Open Inference Protocol over HTTP, compatible with Triton.

inference-protocol.md. It is a sub-application, because the protocol has its own error format.
Requests are batched with the cameras' frames and dropped when they cannot meet their deadlines, as
at POST /v1/infer.
"""

import asyncio

import orjson
from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason, Outcome
from edgebox.inference.remote.binary_tensors import FINGERPRINT, HEADER_LENGTH
from edgebox.runtime.frames import Answer, Timing
from edgebox.vision.detections import Detections
from edgebox.web.bodies import read_body
from edgebox.web.camera_pictures import (
    FRAME_BYTES_SETTING,
    NotServedError,
    all_answered,
    answered,
    largest_in_time,
    offered_to,
)
from edgebox.web.hosts import client_of
from edgebox.web.identification import identify, refuse_foreign_pages
from edgebox.web.listening import cancelled_with_client
from edgebox.web.problems import errors_as
from edgebox.web.refused_pictures import refusals_noted, refuse_repetitions
from edgebox.web.request_limits import BODY_PICTURES
from edgebox.web.routes import json_response, refuse_unready
from edgebox.web.v2.inference_request import InferenceRequest, Picture, read_request
from edgebox.web.v2.model_metadata import VERSION, Model, model_named, models_of
from edgebox.web.v2.tensor_codec import Tensor, with_reasons
from edgebox.web.web_context import WebContext

EXTENSIONS = ("binary_tensor_data", "model_configuration", "parameters")
_BODY_SETTING = f"{BODY_PICTURES} times {FRAME_BYTES_SETTING}"
SCOPE = Scope.CAMERA
"""Needed for everything but `/health`: what sends pictures may know the models, too."""
_COMPRESSED_FROM_BYTES = 16_384
"""Smaller answers are not compressed, to save the event loop's time."""


def open_inference(context: WebContext) -> web.Application:
    """Return the sub-application for /v2."""
    routes = _Routes(context)
    app = web.Application(
        middlewares=[errors_as(lambda said, status, code: _document(said, code))],
        client_max_size=2**62,
    )
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
    """The handlers of the routes."""

    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._box = context.box

    async def server(self, request: web.Request) -> web.Response:
        self._identify(request)
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
                for because in [model.unserved_because(self._box)]
            ]
        )

    async def metadata(self, request: web.Request) -> web.Response:
        return json_response(self._model(request).metadata())

    async def config(self, request: web.Request) -> web.Response:
        bytes_max = self._context.config.limits.frame_bytes_max
        return json_response(self._model(request).config(bytes_max))

    async def model_ready(self, request: web.Request) -> web.Response:
        model = self._model(request)
        if because := model.unserved_because(self._box):
            return json_response({"name": model.name, "ready": False, "error": because}, 503)
        return json_response({"name": model.name, "ready": True})

    async def infer(self, request: web.Request) -> web.Response:
        model = self._model(request)
        frame_bytes_max = self._context.config.limits.frame_bytes_max
        body = await read_body(request, BODY_PICTURES * frame_bytes_max, setting=_BODY_SETTING)
        length = request.headers.get(HEADER_LENGTH)
        inference_request = read_request(body, length, frame_bytes_max, model.outputs)
        variants = [
            self._variant(model, inference_request, size_px)
            for size_px in inference_request.sizes_px
        ]
        one = len(variants) == 1 and not inference_request.refused
        if one and model.pipeline is None and length is not None:
            # What has the same JSON part on this connection is refused by that alone.
            refuse_repetitions(
                self._context,
                request,
                variants[0],
                inference_request.deadline_ms,
                app=inference_request.app,
                said=_said,
                start_bytes=int(length),
            )
        with refusals_noted(self._context, request), cancelled_with_client(request):
            address = client_of(request).address
            found = await self._answers(model, inference_request, variants, address)
        dropped = {
            at: _reason(each) for at, each in enumerate(found) if isinstance(each, EdgeboxError)
        }
        answers = [each if isinstance(each, Answer) else _NOT_ANSWERED for each in found]
        boxes, score_min = inference_request.boxes, inference_request.score_min
        if len(answers) == 1 and model.pipeline is None:
            outputs = model.tensors(answers, boxes, score_min)
        else:  # of many pictures and stages this can take a second, so not on the event loop
            outputs = await asyncio.to_thread(model.tensors, answers, boxes, score_min)
        if dropped:
            outputs["outcomes"] = with_reasons(outputs["outcomes"], dropped)
        return _response(model, inference_request, outputs)

    def _identify(self, request: web.Request) -> None:
        refuse_foreign_pages(request)
        identify(self._context.access, request, SCOPE)

    def _admit(self, request: web.Request) -> None:
        self._identify(request)
        refuse_unready(self._context)

    def _model(self, request: web.Request) -> Model:
        self._admit(request)
        names = request.match_info
        return model_named(self._box, names["model"], names.get("version"))

    async def _answers(
        self,
        model: Model,
        inference_request: InferenceRequest,
        variants: list[VariantName],
        address: str,
    ) -> list[Answer | EdgeboxError]:
        """Return the answers to all pictures that the client of an address sent.

        The first failure ends the request, unless it takes what there is: then the errors are among
        the answers, and it ends if the box could answer nothing at all in time.
        """
        asking = zip(inference_request.pictures, inference_request.sizes_px, variants, strict=True)
        answers = [
            self._answer(model, inference_request, of, at, address) for at, of in enumerate(asking)
        ]
        # A task of its own costs a single picture a turn of the loop.
        found = [await answers[0]] if len(answers) == 1 else await all_answered(answers)
        refusals = [each for each in found if isinstance(each, NotServedError)]
        if len(refusals) == len(found):
            raise refusals[0]
        return found

    def _variant(
        self, model: Model, inference_request: InferenceRequest, size_px: tuple[int, int]
    ) -> VariantName:
        """Return the variant that a picture runs on."""
        if model.variant is not None:
            return model.variant.name
        return largest_in_time(
            self._box,
            offered_to(model.family, model.pipeline),
            size_px,
            inference_request.deadline_ms,
            len(inference_request.pictures),
            app=inference_request.app,
        )

    async def _answer(
        self,
        model: Model,
        inference_request: InferenceRequest,
        of: tuple[Picture, tuple[int, int], VariantName],
        at: int,
        address: str,
    ) -> Answer | EdgeboxError:
        """Return the answer to a picture, of a size, on a variant; `at`: its number."""
        if at in inference_request.refused:
            return inference_request.refused[at]
        picture, size_px, variant = of
        try:
            return await answered(
                self._box,
                picture,
                size_px,
                variant,
                inference_request.deadline_ms,
                app=inference_request.app,
                address=address,
                pipeline=model.pipeline,
            )
        except (NotServedError, InvalidInputError) as error:
            if inference_request.partial:
                return error
            if len(inference_request.pictures) > 1:
                error.args = (f"picture {at}: {error}",)
            raise


_NOT_ANSWERED = Answer(
    Outcome.DROPPED, VariantName(""), Detections.empty(), Timing(0, 0, 0, 0, 0, 0), 0.0
)
"""In place of an answer to a picture that has none."""


def _reason(error: EdgeboxError) -> DropReason:
    return DropReason(error.code) if isinstance(error, NotServedError) else DropReason.INVALID


def _said(error: EdgeboxError) -> tuple[str, bytes]:
    return "application/json", orjson.dumps(_document(str(error), error.code))


def _document(said: str, code: str) -> dict[str, str]:
    """Return the protocol's document of an error, and its kind as one word if it has one."""
    return {"error": said, "code": code} if code else {"error": said}


def _response(
    model: Model, inference_request: InferenceRequest, outputs: dict[str, Tensor]
) -> web.Response:
    """Return the requested outputs: JSON, followed by binary data."""
    described: list[dict[str, object]] = []
    behind: list[bytes] = []
    for wanted in inference_request.outputs:
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
    if model.pipeline is None:
        document["parameters"] = {FINGERPRINT: model.family.served_print}
    if inference_request.id is not None:
        document["id"] = inference_request.id
    head = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    body = b"".join((head, *behind))
    response = web.Response(body=body, content_type="application/json")
    if behind:
        response.content_type = "application/octet-stream"
        response.headers[HEADER_LENGTH] = str(len(head))
    if len(body) >= _COMPRESSED_FROM_BYTES:
        response.enable_compression()
    return response
