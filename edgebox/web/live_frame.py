"""Builds the live frames on the page's socket: a header before each picture."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
import orjson

from edgebox.domain.cascades import CascadeOutcome
from edgebox.domain.model_family import VariantName
from edgebox.domain.pipelines import StageName
from edgebox.domain.requests import CameraId, Outcome, StagePlacement
from edgebox.media.jpeg import encode
from edgebox.runtime.box import Box
from edgebox.runtime.stage_documents import best_rows, staged_objects
from edgebox.web.detection_documents import SCORE_MIN, answer_detections
from edgebox.web.result_format_schemas import DETECTION
from edgebox.web.schemas import array
from edgebox.web.stage_formats import add_stages
from edgebox.web.typed_schemas import WithSchema

_NO_PICTURE_PX = 320
_GREY = 96


class LiveFrameHeader(TypedDict):
    """What the page is told of a frame besides its picture."""

    camera: CameraId
    frame: int
    width_px: int
    height_px: int
    variant: VariantName
    outcome: Outcome
    total_ms: float
    detections: Annotated[Sequence[Mapping[str, Any]], WithSchema(array(DETECTION))]
    missing: NotRequired[
        Annotated[Sequence[StageName], "Stages that some object was not answered by in time"]
    ]
    placement: NotRequired[
        Annotated[
            StagePlacement,
            "Where the first stage ran, if that was not the box: then there is no picture",
        ]
    ]
    cascade: NotRequired[Annotated[CascadeOutcome, "Whose objects these are"]]


def live_frame_header(box: Box, camera: CameraId, labels: tuple[str, ...]) -> LiveFrameHeader:
    """Return the header of a camera's latest frame."""
    shown = box.shown.latest[camera]
    answer, pipeline, timing = shown.answer, shown.frame.pipeline, shown.answer.timing
    staged = staged_objects(answer, pipeline, box.families, SCORE_MIN, embeddings=False)
    found = replace(answer.detections, embeddings=None)  # the page shows boxes
    detections = answer_detections(found, labels, "xyxy", SCORE_MIN)
    add_stages({"detections": detections}, "native", best_rows(found, SCORE_MIN).tolist(), staged)
    header: LiveFrameHeader = {
        "camera": camera,
        "frame": shown.frame.number,
        "width_px": shown.frame.source_width_px,
        "height_px": shown.frame.source_height_px,
        "variant": answer.variant,
        "outcome": answer.outcome,
        "total_ms": round(timing.total_ns / 1e6, 1),
        "detections": detections,
    }
    if answer.missing:
        header["missing"] = answer.missing
    if answer.placement is not StagePlacement.BOX:
        header["placement"] = answer.placement
    if answer.cascade is not None:
        header["cascade"] = answer.cascade
    return header


def live_frame_message(box: Box, camera: CameraId) -> bytes | None:
    """Return the message of a camera's latest frame, made once for all viewers.

    None: the frame is of a model that was removed since.
    """
    shown = box.shown.latest[camera]
    if shown.message is None:
        # The frame's model: its camera may have another one by now.
        of = shown.frame.family
        family = None if of is None else box.families.get(of)
        if family is None:
            return None
        header = orjson.dumps(live_frame_header(box, camera, family.labels))
        frame = shown.frame
        jpeg = bytes(frame.jpeg) or no_picture(frame.source_width_px, frame.source_height_px)
        shown.message = struct.pack("<I", len(header)) + header + jpeg
    return shown.message


@lru_cache(maxsize=64)
def no_picture(width_px: int, height_px: int) -> bytes:
    """Return a grey JPEG for a frame whose camera sent boxes and no picture."""
    scale = _NO_PICTURE_PX / max(width_px, height_px)
    shape = (max(1, round(height_px * scale)), max(1, round(width_px * scale)), 3)
    return encode(np.full(shape, _GREY, np.uint8))
