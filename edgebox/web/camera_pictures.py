"""Runs single pictures of programs: chooses the variant and waits for the answer.

Each picture is a request among the cameras' frames; its deadline counts from its arrival.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import EdgeboxError, InvalidInputError, UnknownNameError
from edgebox.domain.model_family import FamilyName, Variant, VariantName, up_to
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.requests import DropReason
from edgebox.inference.family import Family
from edgebox.media.jpeg import probe
from edgebox.media.png import SIGNATURE, decode_png
from edgebox.runtime.box import Box
from edgebox.runtime.frames import ONE_SHOT_APP, Answer, FrameResult, PendingFrame
from edgebox.web.web_context import WebContext

DEADLINE_MS = 1_000.0
DEADLINE_MIN_MS = 1.0
DEADLINE_MAX_MS = 60_000.0
FRAME_BYTES_SETTING = "limits.frame_bytes_max"
_WORST = 0.99
_Found = TypeVar("_Found")


class NotServedError(EdgeboxError):
    """The box could not answer by the deadline."""

    http_status = 503
    title = "The box could not answer by the deadline"

    def __init__(self, reason: DropReason, message: str) -> None:
        """Say why; `code` is the reason."""
        super().__init__(message)
        self.code = reason.value


async def read_picture(
    context: WebContext, content: bytes | memoryview
) -> tuple[bytes | memoryview | NDArray[np.uint8], tuple[int, int]]:
    """Return a picture, a JPEG or decoded, and its width and height.

    Raises:
        InvalidInputError: it is neither a JPEG nor a PNG, or too large in pixels.
    """
    if not content:
        raise InvalidInputError("the body is empty; send a JPEG or a PNG, as it is or in a form")
    if content[: len(SIGNATURE)] == SIGNATURE:
        async with context.picture_work:
            rgb = await asyncio.to_thread(decode_png, content)
        return rgb, (rgb.shape[1], rgb.shape[0])
    return content, probe(content)


async def answered(
    box: Box,
    picture: bytes | memoryview | NDArray[np.uint8],
    picture_px: tuple[int, int],
    variant: VariantName,
    deadline_ms: float,
    *,
    app: str,
    address: str,
    pipeline: Pipeline | None = None,
) -> Answer:
    """Return the answer to one picture, which runs among the cameras' frames.

    Args:
        box: ready.
        picture: a JPEG, or (h, w, 3) RGB.
        picture_px: its (width, height).
        variant: the variant that runs.
        deadline_ms: counted from now.
        app: the application that the picture belongs to.
        address: of who sent it.
        pipeline: that it runs through, the variant being of its first stage; None: none.

    Raises:
        InvalidInputError: it cannot be decoded.
        NotServedError: the deadline has passed.
    """
    done: asyncio.Future[FrameResult] = asyncio.get_running_loop().create_future()

    def ended(frame: PendingFrame, ending: FrameResult) -> None:
        if not done.done():  # the client may have disconnected
            done.set_result(ending)

    submitted = box.submit_picture(
        picture,
        picture_px,
        variant,
        deadline_ms,
        app=app,
        address=address,
        pipeline=pipeline,
        on_end=ended,
    )
    try:
        ending = await done
    except asyncio.CancelledError:
        box.driver.cancel(submitted)
        raise
    if isinstance(ending, Answer):
        return ending
    if ending.reason is DropReason.INVALID:
        raise InvalidInputError(ending.message)
    raise NotServedError(ending.reason, ending.message)


async def all_answered(answers: Iterable[Coroutine[Any, Any, _Found]]) -> list[_Found]:
    """Return several answers; the first failure ends all, because nobody waits for the others."""
    tasks = [asyncio.ensure_future(each) for each in answers]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def family_named(box: Box, name: str | None, where: str = "") -> Family:
    """Return the family of a name, or the default one.

    Args:
        box: ready.
        name: of the family; None or empty: the default.
        where: the name stands, for the error.

    Raises:
        UnknownNameError: there is no such family.
    """
    wanted = FamilyName(name or box.models.default_family)
    family = box.families.get(wanted)
    if family is None:
        there = ", ".join(box.families)
        raise UnknownNameError(f"{where}no model family {wanted!r}; there are {there}")
    return family


def offered_to(family: Family, pipeline: Pipeline | None) -> Sequence[Variant]:
    """Return the variants on which a picture may run first, smallest first."""
    limit = None if pipeline is None else pipeline.first.variant
    return up_to(family.offered, None if limit is None else family.variant(limit))


def largest_in_time(
    box: Box,
    variants: Sequence[Variant],
    picture_px: tuple[int, int],
    deadline_ms: float,
    pictures: int = 1,
    *,
    app: str = ONE_SHOT_APP,
) -> VariantName:
    """Return the largest variant on which so many pictures are likely to meet the deadline.

    Variants larger than the picture are not considered: upscaling does not improve accuracy.
    """
    best = variants[0]
    for variant in variants:
        worst_ns = worst_latency_ns(box, variant.name, pictures, app=app)
        if worst_ns is None:
            continue  # it runs nowhere now
        if worst_ns > deadline_ms * 1e6:
            break
        best = variant
        if variant.covers(*picture_px):
            break
    return best.name


def worst_latency_ns(
    box: Box, variant: VariantName, pictures: int = 1, *, app: str = ONE_SHOT_APP
) -> int | None:
    """Return an upper estimate of the time of so many pictures on the fastest executor.

    The estimate is what was learned of the application, with the profile as prior. None: no
    executor can run the variant now.
    """
    expectations = box.driver.scheduler.times.expectations
    return expectations.worst_ns(variant, app, pictures, _WORST)
