"""POST /v1/infer: one picture in, detections out. docs/http-api.md."""

import asyncio
import re

import numpy as np
import orjson
from aiohttp import web
from numpy.typing import NDArray

from edgebox.config import LimitParameters
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.models import FamilyName, Variant, VariantName
from edgebox.domain.requests import DropReason
from edgebox.inference.family import Family
from edgebox.media.jpeg import probe
from edgebox.runtime.box import Box
from edgebox.runtime.frames import Answer, Ending, FrameAtBox
from edgebox.web.bodies import read_body
from edgebox.web.documents import SCORE_MIN, BoxForm, answer_detections, timing_ms
from edgebox.web.forms import FORMS, Form, coco_categories, in_form

DEADLINE_MS = 1_000.0
DEADLINE_MAX_MS = 60_000.0
_IMAGE_ID = re.compile(r"[0-9]{1,15}")


class NotServedError(EdgeboxError):
    """The box could not answer by the deadline."""

    http_status = 503

    def __init__(self, reason: DropReason, message: str) -> None:
        """Say why; `code` is the reason."""
        super().__init__(message)
        self.code = reason.value


class UnknownNameError(InvalidInputError):
    """The query names a family or variant this box does not have."""

    http_status = 404
    code = "unknown"


async def infer(box: Box, limits: LimitParameters, request: web.Request) -> web.Response:
    """Answer one request."""
    deadline_ms = _number(request, "deadline_ms", DEADLINE_MS, 1.0, DEADLINE_MAX_MS)
    score_min = _number(request, "score_min", SCORE_MIN, 0.0, 1.0)
    boxes, form = _box_form(request), _form(request)
    image_id = _image_id(request)
    family = _family(box, request)
    jpeg = await read_body(request, limits.frame_bytes_max)
    if not jpeg:
        raise InvalidInputError("the body is empty; send a JPEG as it is, without a form")
    picture_px = probe(jpeg)
    variant = _variant(box, family, request, picture_px, deadline_ms)
    found = await answer(box, jpeg, picture_px, variant, deadline_ms)
    about: dict[str, object] = {
        "variant": found.variant,
        "outcome": found.outcome.value,
        "timing_ms": timing_ms(found.timing),
    }
    told = found.detections.above(score_min)
    document = in_form(form, told, family.labels, picture_px, image_id=image_id)
    if form == "coco":
        document |= {"categories": coco_categories(family.labels), "info": about}
    else:
        document |= about
    if form == "native" and boxes == "xywh":
        document["detections"] = answer_detections(told, family.labels, boxes, score_min)
    return web.Response(body=orjson.dumps(document), content_type="application/json")


async def answer(
    box: Box,
    picture: bytes | memoryview | NDArray[np.uint8],
    picture_px: tuple[int, int],
    variant: VariantName,
    deadline_ms: float,
) -> Answer:
    """Have one picture answered, among the cameras' frames.

    Args:
        box: ready.
        picture: a JPEG, or (h, w, 3) RGB.
        picture_px: its (width, height).
        variant: what it runs on.
        deadline_ms: counted from now.

    Raises:
        InvalidInputError: it cannot be decoded.
        NotServedError: not by its deadline.
    """
    answered: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def ended(frame: FrameAtBox, ending: Ending) -> None:
        if not answered.done():  # the client may have gone
            answered.set_result(ending)

    box.submit_picture(picture, picture_px, variant, deadline_ms, ended)
    ending = await answered
    if isinstance(ending, Answer):
        return ending
    if ending.reason is DropReason.INVALID:
        raise InvalidInputError(ending.message)
    raise NotServedError(ending.reason, ending.message)


def _number(request: web.Request, name: str, default: float, low: float, high: float) -> float:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InvalidInputError(f"{name} must be a number from {low:g} to {high:g}, not {text!r}")
    return value


def _box_form(request: web.Request) -> BoxForm:
    text = request.query.get("boxes", "xyxy")
    if text == "xyxy":
        return "xyxy"
    if text == "xywh":
        return "xywh"
    raise InvalidInputError(f"boxes must be xyxy or xywh, not {text!r}")


def _form(request: web.Request) -> Form:
    text = request.query.get("form", "native")
    for form in FORMS:
        if form == text:
            if form != "native" and "boxes" in request.query:
                raise InvalidInputError(f"boxes is for form=native; {form} has boxes of its own")
            return form
    raise InvalidInputError(f"form must be {', '.join(FORMS)}, not {text!r}")


def _image_id(request: web.Request) -> int:
    text = request.query.get("image_id", "0")
    if not _IMAGE_ID.fullmatch(text):
        raise InvalidInputError(f"image_id must be a whole number of 1 to 15 digits, not {text!r}")
    return int(text)


def _family(box: Box, request: web.Request) -> Family:
    name = request.query.get("family", box.default_family)
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
    name = request.query.get("variant")
    if name is not None:
        for variant in family.variants:
            if variant.name == name:
                return variant.name
        names = ", ".join(variant.name for variant in family.variants)
        raise UnknownNameError(f"family {family.name} has no variant {name!r}; it has {names}")
    return largest_in_time(box, family.variants, picture_px, deadline_ms)


def largest_in_time(
    box: Box,
    variants: tuple[Variant, ...],
    picture_px: tuple[int, int],
    deadline_ms: float,
    pictures: int = 1,
) -> VariantName:
    """Choose the largest variant on which so many pictures are likely to meet the deadline.

    Upscaling buys nothing.
    """
    best = variants[0]
    for variant in variants:
        worst_ns = box.worst_latency_ns(variant.name, pictures)
        if worst_ns is None or worst_ns > deadline_ms * 1e6:
            break
        best = variant
        if variant.covers(*picture_px):
            break
    return best.name
