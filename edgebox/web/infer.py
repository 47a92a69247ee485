"""POST /v1/infer: one picture in, detections out. docs/reference/http-api.md."""

from typing import cast

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.cascades import cascade_json
from edgebox.domain.errors import InvalidInputError, TooLargeError, UnknownNameError
from edgebox.domain.model_family import VariantName
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.requests import DropReason
from edgebox.inference.family import Family
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED
from edgebox.runtime.box import Box
from edgebox.runtime.frames import DROP_MESSAGES, ONE_SHOT_APP
from edgebox.runtime.model_choice import UnknownPipelineError
from edgebox.runtime.stage_documents import best_rows, missing_json, staged_objects
from edgebox.web.bodies import read_body
from edgebox.web.camera_pictures import (
    DEADLINE_MAX_MS,
    DEADLINE_MIN_MS,
    DEADLINE_MS,
    FRAME_BYTES_SETTING,
    NotServedError,
    answered,
    family_named,
    largest_in_time,
    offered_to,
    read_picture,
)
from edgebox.web.detection_documents import SCORE_MIN, BoxForm, answer_detections, timing_ms
from edgebox.web.form_file import FORM, file_of_form
from edgebox.web.hosts import client_of
from edgebox.web.listening import cancelled_with_client
from edgebox.web.problems import CONTENT_TYPE, ProblemKind, problem_document_bytes
from edgebox.web.query_parameters import Choice, Integer, Number, Text
from edgebox.web.refused_pictures import refusals_noted, refuse_repetitions
from edgebox.web.result_format_schemas import COCO_ANSWER, NATIVE_ANSWER, SUPERVISION_ANSWER
from edgebox.web.result_formats import RESULT_FORMATS, ResultFormat, coco_categories, in_format
from edgebox.web.routes import Answer, Body, Route, json_response
from edgebox.web.schemas import any_of
from edgebox.web.stage_formats import add_stages
from edgebox.web.web_context import WebContext

_NOT_HERE = (DropReason.INVALID, DropReason.SENDER, DropReason.PLAN, DropReason.DEPARTED)
"""Reasons that belong to cameras, or are told apart."""

_DEADLINE = Number(
    "deadline_ms",
    DEADLINE_MIN_MS,
    DEADLINE_MAX_MS,
    DEADLINE_MS,
    "Deadline of the answer, counted from arrival",
)
_FAMILY = Text("family", "The model family; the box's default if not given")
_PIPELINE = Text(
    "pipeline",
    "The pipeline to run through, instead of a family; a `variant` is then of its first stage",
)
_VARIANT = Text("variant", "Run exactly this variant; the largest in time if not given")
_APP = Text(
    "app",
    f"The picture's application, for learning execution times; {ONE_SHOT_APP} if not given",
    pattern=NAME_PATTERN,
    expected=NAME_WANTED,
)
_SCORE_MIN = Number("score_min", 0.0, 1.0, SCORE_MIN, "Leave out what is less certain")
_BOXES = Choice(
    "boxes",
    ("xyxy", "xywh"),
    None,
    "Two corners, the default, or the first and width and height; only for format=native",
)
_FORMAT = Choice(
    "format",
    RESULT_FORMATS,
    RESULT_FORMATS[0],
    "Format of the results: native, COCO or supervision",
)
_IMAGE_ID = Integer("image_id", 0, 2**53 - 1, 0, "The image_id of the COCO format")


async def _infer(context: WebContext, request: web.Request) -> web.Response:
    box = context.box
    deadline_ms = _DEADLINE.read(request)
    score_min = _SCORE_MIN.read(request)
    result_format, boxes = _forms(request)
    image_id = _IMAGE_ID.read(request)
    family, pipeline = _models(box, request)
    app = _APP.read(request) or ONE_SHOT_APP
    bytes_max = context.config.limits.frame_bytes_max
    body = await read_body(request, bytes_max, setting=FRAME_BYTES_SETTING)
    content = file_of_form(body, request.headers["Content-Type"]) if _is_form(request) else body
    picture, picture_px = await read_picture(context, content)
    variant = _variant(
        box, family, pipeline, request, picture_px=picture_px, deadline_ms=deadline_ms, app=app
    )
    if pipeline is None:
        refuse_repetitions(context, request, variant, deadline_ms, app=app, said=_said)
    with refusals_noted(context, request), cancelled_with_client(request):
        found = await answered(
            box,
            picture,
            picture_px,
            variant,
            deadline_ms,
            app=app,
            address=client_of(request).address,
            pipeline=pipeline,
        )
    about: dict[str, object] = {
        "variant": found.variant,
        "outcome": found.outcome.value,
        "timing_ms": timing_ms(found.timing),
        **missing_json(found.missing),
        **cascade_json(found.cascade),
    }
    rows = best_rows(found.detections, score_min)
    shown = found.detections.select(rows)
    attributes = family.attribute_names
    document = in_format(
        result_format,
        shown,
        family.labels,
        picture_px,
        image_id=image_id,
        attribute_names=attributes,
    )
    if result_format == "coco":
        document |= {"categories": coco_categories(family.labels), "info": about}
    else:
        document |= about
    if result_format == "native" and boxes == "xywh":
        document["detections"] = answer_detections(
            shown, family.labels, boxes, score_min, attributes
        )
    staged = staged_objects(found, pipeline, box.families, score_min)
    add_stages(document, result_format, rows.tolist(), staged)
    return json_response(document)


def _said(refusal: NotServedError) -> tuple[str, bytes]:
    return CONTENT_TYPE, problem_document_bytes(refusal)


def _is_form(request: web.Request) -> bool:
    return request.content_type == FORM


def _forms(request: web.Request) -> tuple[ResultFormat, BoxForm]:
    """Return the result format and the box format.

    Raises:
        InvalidInputError: unknown format, or `boxes` with a format that defines its own.
    """
    result_format = cast(ResultFormat, _FORMAT.read(request))
    boxes = cast(BoxForm | None, _BOXES.read(request))
    if result_format != "native" and boxes is not None:
        raise InvalidInputError(f"boxes is for format=native; {result_format} has boxes of its own")
    return result_format, boxes or "xyxy"


def _models(box: Box, request: web.Request) -> tuple[Family, Pipeline | None]:
    """Return the family that the picture runs on, and the pipeline that it runs through.

    A request that names neither runs on the default family, also where there is a default pipeline
    for cameras.

    Raises:
        UnknownNameError: there is no such family or pipeline.
        InvalidInputError: the pipeline begins with another family, or the family is not given
            pictures.
    """
    name, wanted = _FAMILY.read(request), _PIPELINE.read(request)
    if name:
        family_named(box, name)
    if not wanted:
        family = family_named(box, name)
        family.insist_on_pictures()
        return family, None
    try:
        pipeline = box.models.pipeline(wanted)
    except UnknownPipelineError as error:
        raise UnknownNameError(str(error)) from None
    first = pipeline.first.family
    if name and name != first:
        raise InvalidInputError(
            f"the pipeline {wanted} begins with the family {first}, not with {name}; name one of "
            "the two only"
        )
    return box.families[first], pipeline


def _variant(
    box: Box,
    family: Family,
    pipeline: Pipeline | None,
    request: web.Request,
    *,
    picture_px: tuple[int, int],
    deadline_ms: float,
    app: str,
) -> VariantName:
    name = _VARIANT.read(request)
    if name is not None:
        for variant in family.offered:
            if variant.name == name:
                return variant.name
        names = ", ".join(variant.name for variant in family.offered)
        raise UnknownNameError(f"family {family.name} has no variant {name!r}; it has {names}")
    return largest_in_time(box, offered_to(family, pipeline), picture_px, deadline_ms, app=app)


def _sentence(reason: DropReason) -> str:
    message = DROP_MESSAGES[reason]
    return message[0].upper() + message[1:]


_JPEG = {"type": "string", "contentMediaType": "image/jpeg"}
_PNG = {"type": "string", "contentMediaType": "image/png"}
_IN_FORM = {
    "type": "object",
    "properties": {"image": {"type": "string", "format": "binary"}},
    "required": ["image"],
}

ROUTES = (
    Route(
        method="POST",
        path="/v1/infer",
        answer=_infer,
        scope=Scope.CAMERA,
        summary="Find things in one picture",
        parameters=(
            _DEADLINE,
            _FAMILY,
            _PIPELINE,
            _VARIANT,
            _APP,
            _BOXES,
            _SCORE_MIN,
            _FORMAT,
            _IMAGE_ID,
        ),
        body=Body(
            {"image/jpeg": _JPEG, "image/png": _PNG, FORM: _IN_FORM},
            "A JPEG or a PNG as it is, or as the only file of a form",
            any_type=True,
        ),
        answers=(
            Answer(
                "Detections, best first, in the requested format.",
                any_of(NATIVE_ANSWER, COCO_ANSWER, SUPERVISION_ANSWER),
            ),
        ),
        problems=(
            UnknownNameError,
            TooLargeError,
            *(
                ProblemKind(reason.value, NotServedError.http_status, _sentence(reason))
                for reason in DropReason
                if reason not in _NOT_HERE
            ),
        ),
        needs_ready=True,
    ),
)
