"""First stages that run at cameras: what the box offers them, and frames that come with crops.

Limits: a pipeline is offered if all its later stages are given objects of the first; crops of crops
would have to be cut from pictures that the box does not get.
"""

from collections.abc import Mapping

import numpy as np

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import FamilyName
from edgebox.domain.requests import (
    Camera,
    FrameId,
    Outcome,
    Request,
    RequestId,
    StagePlacement,
)
from edgebox.inference.family import Family
from edgebox.link.detected_frames import DetectedFrame, Limits, SentCrop
from edgebox.link.placement_offer import CropFit, OfferedStage, PlacementOffer
from edgebox.media.jpeg import probe
from edgebox.runtime.driver import Driver
from edgebox.runtime.frames import Answer, PendingFrame, Timing, note_refusal
from edgebox.vision.detections import Detections

_FITS = {
    "top_left": CropFit.LETTERBOX,
    "centre": CropFit.LETTERBOX,
    "stretch": CropFit.STRETCH,
    "cover": CropFit.COVER,
}
CROP_SIDE_MAX_PX = 2048
"""Larger crops are refused: no model's input is as large."""


def offer(camera: Camera, families: Mapping[FamilyName, Family]) -> PlacementOffer | None:
    """Return what a camera needs to run its first stage itself; None: it cannot."""
    family = families[camera.family]
    later = () if camera.pipeline is None else camera.pipeline.stages[1:]
    if family.manifest is None or family.task != "detect":
        return None
    if camera.cascade is not None:  # its large model needs the picture
        return None
    if camera.pipeline is not None and any(
        stage.after != (camera.pipeline.first.name,) for stage in later
    ):
        return None
    stages = []
    for stage in later:
        variants = families[stage.family].offered
        largest = next((v for v in variants if v.name == stage.variant), variants[-1])
        fit = _FITS[families[stage.family].input.fit]
        stages.append(OfferedStage(stage, largest.width_px, largest.height_px, fit))
    accurate = [v.name for v in family.offered if v.accuracy >= camera.min_accuracy]
    return PlacementOffer(
        family.manifest.sha256,
        tuple(accurate) or (family.offered[-1].name,),
        tuple(stages),
    )


def limits_of(given: PlacementOffer, family: Family) -> Limits:
    """Return what the messages of a camera with this offer are checked against."""
    crops_max = tuple(each.stage.crops_max for each in given.stages)
    labels_taken = tuple(
        frozenset(at for at, label in enumerate(family.labels) if label in each.stage.labels)
        for each in given.stages
    )
    return Limits(len(family.labels), len(given.variants), crops_max, labels_taken)


def check_pictures(detected: DetectedFrame) -> None:
    """Read the headers of all crops.

    Raises:
        InvalidInputError: one is no JPEG, or too large.
    """
    for at, crop in enumerate(detected.crops):
        try:
            width_px, height_px = probe(crop.jpeg)
        except InvalidInputError as error:
            raise InvalidInputError(f"crop {at}: {error}") from None
        if max(width_px, height_px) > CROP_SIDE_MAX_PX:
            raise InvalidInputError(
                f"crop {at}: it may have {CROP_SIDE_MAX_PX} px a side, not {width_px} × {height_px}"
            )


def submit(
    frame: PendingFrame,
    detected: DetectedFrame | None,
    given: PlacementOffer | None,
    driver: Driver,
) -> None:
    """Submit a frame, with the answer of its first stage and its crops if its camera sent them.

    Args:
        frame: has just arrived.
        detected: its content, which was checked; None: it is a picture.
        given: the offer that its camera was given; None: none.
        driver: takes it.
    """
    if detected is None or given is None:
        driver.submit(frame)
        return
    request = frame.request
    found = frame.found = _detections(detected)
    network_ns = max(0, request.arrival_ns - request.captured_ns)
    took_ns = min(detected.took_ns, network_ns)
    frame.collected = Answer(
        Outcome.ON_TIME,
        given.variants[detected.variant],
        found,
        Timing(
            network_ns=network_ns - took_ns,
            queue_ns=0,
            inference_ns=took_ns,
            return_ns=frame.return_ns,
            total_ns=network_ns + frame.return_ns,
            batch_size=1,
        ),
        utility=1.0,
        placement=StagePlacement.CAMERA,
    )
    frame.crops = [
        _crop(frame, crop, given.stages[crop.stage], driver.next_request_id())
        for crop in detected.crops
    ]
    driver.submit_detected(frame)


def _detections(detected: DetectedFrame) -> Detections:
    found = detected.detections
    return Detections(
        np.array([each.box for each in found], np.float32).reshape(-1, 4),
        np.array([each.score for each in found], np.float32),
        np.array([each.label for each in found], np.int64),
    )


def _crop(
    frame: PendingFrame, sent: SentCrop, offered: OfferedStage, request_id: RequestId
) -> PendingFrame:
    of, (left, top, right, bottom) = frame.request, sent.area_px
    width_px, height_px = probe(sent.jpeg)
    request = Request(
        id=request_id,
        camera=of.camera,
        app=of.app,
        captured_ns=of.captured_ns,
        arrival_ns=of.arrival_ns,
        deadline_ns=of.deadline_ns,
        width_px=width_px,
        height_px=height_px,
        size_bytes=len(sent.jpeg),
        steps=of.steps,
        frame=FrameId(of.id),
        stage=offered.stage.name,
    )
    return PendingFrame(
        request,
        sent.jpeg,
        right - left,
        bottom - top,
        frame.return_ns,
        note_refusal,
        number=frame.number,
        family=offered.stage.family,
        pipeline=frame.pipeline,
        parent=frame,
        row=sent.detection,
        origin_px=(left, top),
        area_px=(right - left, bottom - top),
    )
