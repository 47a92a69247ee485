"""POST /v1/infer: one picture in, detections out. docs/http-api.md."""

import asyncio

import orjson
from aiohttp import web

from edgebox.config import LimitParameters
from edgebox.domain.errors import EdgeboxError, InvalidInputError, TooLargeError
from edgebox.domain.models import FamilyName, Variant, VariantName
from edgebox.domain.requests import DropReason
from edgebox.inference.family import Family
from edgebox.media.jpeg import probe
from edgebox.runtime.box import Box
from edgebox.runtime.frames import Answer, Ending, FrameAtBox
from edgebox.web.documents import SCORE_MIN, BoxForm, answer_detections

_DEADLINE_MS = 1_000.0
_DEADLINE_MAX_MS = 60_000.0


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
    deadline_ms = _number(request, "deadline_ms", _DEADLINE_MS, 1.0, _DEADLINE_MAX_MS)
    score_min = _number(request, "score_min", SCORE_MIN, 0.0, 1.0)
    form = _box_form(request)
    family = _family(box, request)
    jpeg = await _body(limits, request)
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
    return web.Response(body=orjson.dumps(document), content_type="application/json")


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
        if worst_ns is None or worst_ns > deadline_ms * 1e6:
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
