"""POST /v1/infer: one picture in, detections out. docs/http-api.md."""

import asyncio

from aiohttp import web

from edgebox.config import LimitParameters
from edgebox.domain.errors import (
    EdgeboxError,
    InvalidInputError,
    TooLargeError,
    UnknownNameError,
)
from edgebox.domain.models import FamilyName, Variant, VariantName
from edgebox.domain.requests import DropReason
from edgebox.inference.family import Family
from edgebox.media.jpeg import probe
from edgebox.runtime.box import Box
from edgebox.runtime.frames import DROP_MESSAGES, Answer, Ending, FrameAtBox
from edgebox.web.documents import SCORE_MIN, BoxForm, answer_detections
from edgebox.web.parameters import Choice, Number, Text
from edgebox.web.problems import ProblemKind
from edgebox.web.routes import Answer as Answered
from edgebox.web.routes import Body, Route, json_response
from edgebox.web.schemas import COUNT, NUMBER, SHARE, TEXT, Schema, array, one_of, record, tuple_of
from edgebox.web.site import Site


class NotServedError(EdgeboxError):
    """The box could not answer by the deadline."""

    http_status = 503
    title = "The box could not answer by the deadline"

    def __init__(self, reason: DropReason, message: str) -> None:
        """Say why; `code` is the reason."""
        super().__init__(message)
        self.code = reason.value


_DEADLINE = Number("deadline_ms", 1.0, 60_000.0, 1_000.0, "Answer within this time, or not at all")
_FAMILY = Text("family", "The model family; the box's default if not given")
_VARIANT = Text("variant", "Run exactly this variant; the largest in time if not given")
_SCORE_MIN = Number("score_min", 0.0, 1.0, SCORE_MIN, "Leave out what is less certain")
_BOXES = Choice(
    "boxes", ("xyxy", "xywh"), "xyxy", "Two corners, or the first and width and height as in COCO"
)


async def _infer(site: Site, request: web.Request) -> web.Response:
    box = site.box
    deadline_ms = _DEADLINE.read(request)
    score_min = _SCORE_MIN.read(request)
    form: BoxForm = "xywh" if _BOXES.read(request) == "xywh" else "xyxy"
    family = _family(box, request)
    jpeg = await _body(site.config.limits, request)
    picture_px = probe(jpeg)
    variant = _variant(box, family, request, picture_px, deadline_ms)
    answered: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def ended(frame: FrameAtBox, ending: Ending) -> None:
        if not answered.done():  # the client may have gone
            answered.set_result(ending)

    box.submit_picture(jpeg, picture_px, variant, deadline_ms, ended)
    ending = await answered
    if not isinstance(ending, Answer):
        if ending.reason is DropReason.INVALID:
            raise InvalidInputError(ending.message)
        raise NotServedError(ending.reason, ending.message)
    timing = ending.timing
    document = {
        "variant": ending.variant,
        "width_px": picture_px[0],
        "height_px": picture_px[1],
        "outcome": ending.outcome.value,
        "detections": answer_detections(ending.detections, family.labels, form, score_min),
        "timing_ms": {
            "network": 0.0,
            "queue": round(timing.queue_ns / 1e6, 2),
            "inference": round(timing.inference_ns / 1e6, 2),
            "return": 0.0,
            "total": round(timing.total_ns / 1e6, 2),
            "batch_size": timing.batch_size,
        },
    }
    return json_response(document)


def _family(box: Box, request: web.Request) -> Family:
    name = _FAMILY.read(request) or box.default_family
    family = box.families.get(FamilyName(name))
    if family is None:
        raise UnknownNameError(f"no model family {name!r}; there are {', '.join(box.families)}")
    return family


def _variant(
    box: Box,
    family: Family,
    request: web.Request,
    picture_px: tuple[int, int],
    deadline_ms: float,
) -> VariantName:
    name = _VARIANT.read(request)
    if name is not None:
        for variant in family.offered:
            if variant.name == name:
                return variant.name
        names = ", ".join(variant.name for variant in family.offered)
        raise UnknownNameError(f"family {family.name} has no variant {name!r}; it has {names}")
    return _largest_in_time(box, family.offered, picture_px, deadline_ms)


def _largest_in_time(
    box: Box, variants: tuple[Variant, ...], picture_px: tuple[int, int], deadline_ms: float
) -> VariantName:
    """Choose the largest variant likely to meet the deadline; upscaling buys nothing."""
    best = variants[0]
    for variant in variants:
        worst_ns = box.worst_latency_ns(variant.name)
        if worst_ns is None:
            continue  # not in memory
        if worst_ns > deadline_ms * 1e6:
            break
        best = variant
        if variant.covers(*picture_px):
            break
    return best.name


async def _body(limits: LimitParameters, request: web.Request) -> bytes:
    most = limits.frame_bytes_max
    if (request.content_length or 0) > most:
        raise TooLargeError(
            f"the body has {request.content_length} bytes; at most {most} are taken"
        )
    parts = bytearray()
    async for part in request.content.iter_any():
        parts += part
        if len(parts) > most:
            raise TooLargeError(f"the body has more than {most} bytes (limits.frame_bytes_max)")
    if not parts:
        raise InvalidInputError("the body is empty; send a JPEG as it is, without a form")
    return bytes(parts)


def _sentence(reason: DropReason) -> str:
    message = DROP_MESSAGES[reason]
    return message[0].upper() + message[1:]


_TIMING = Schema(
    "InferTiming",
    record(
        network=NUMBER, queue=NUMBER, inference=NUMBER, total=NUMBER, batch_size=COUNT,
        **{"return": NUMBER},
    ),
)  # fmt: skip
_DETECTION = Schema(
    "Detection",
    record(
        label=TEXT, label_id=COUNT, score=SHARE, box=tuple_of(NUMBER, NUMBER, NUMBER, NUMBER)
    ),
)  # fmt: skip
_PICTURE = {"type": "string", "contentMediaType": "image/jpeg"}

ROUTES = (
    Route(
        method="POST",
        path="/v1/infer",
        answer=_infer,
        summary="Find things in one picture",
        parameters=(_DEADLINE, _FAMILY, _VARIANT, _BOXES, _SCORE_MIN),
        body=Body({"image/jpeg": _PICTURE}, "A JPEG as it is, without a form", any_type=True),
        answers=(
            Answered(
                "What was found, best first.",
                Schema(
                    "InferAnswer",
                    record(
                        variant=TEXT,
                        width_px=COUNT,
                        height_px=COUNT,
                        outcome=one_of("on_time", "late"),
                        detections=array(_DETECTION),
                        timing_ms=_TIMING,
                    ),
                ),
            ),
        ),
        problems=(
            UnknownNameError,
            TooLargeError,
            *(
                ProblemKind(reason.value, NotServedError.http_status, _sentence(reason))
                for reason in DropReason
                if reason not in (DropReason.INVALID, DropReason.SENDER, DropReason.DEPARTED)
            ),
        ),
        needs_ready=True,
    ),
)
