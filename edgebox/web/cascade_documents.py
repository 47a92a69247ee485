"""What the cascade of a camera's pipeline does, for the page and programs."""

from typing import Annotated, TypedDict

from edgebox.domain.cascades import CascadeName, CascadeOutcome, picture_ns, saving
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import Camera
from edgebox.runtime.box import Box
from edgebox.runtime.frame_metrics import CameraMetrics
from edgebox.vision.cascade_calibration import CascadeCalibration
from edgebox.web.typed_schemas import Share


class CascadeComparison(TypedDict):
    """How well the decider knows the small model's losses."""

    pictures: Annotated[int, "The last pictures that both models have answered"]
    expected_loss: Annotated[Share, "1 - F1 of the small model, as the decider says"]
    measured_loss: Annotated[Share, "1 - F1 of the small model against the large one"]


class CameraCascade(TypedDict):
    """What a camera's cascade has done since the box started."""

    name: CascadeName
    small: VariantName
    large: VariantName
    continues: Annotated[
        bool, "Whether the large model is the second part of the small one's network"
    ]
    threshold: Annotated[
        Share, "Pictures with a greater expected loss are sent on to the large model"
    ]
    planned: Annotated[bool, "Whether the plan sets the threshold, by the time there is"]
    expected_share: Annotated[
        Share,
        "The share of the last pictures that this threshold sends on; of few, where it was fitted",
    ]
    expected_agreement: Annotated[
        Share, "F1 of all answers against the large model's to expect of the last pictures"
    ]
    compared: CascadeComparison | None
    kept: Annotated[int, "Answers of the small model that it was sure enough of"]
    sent_on: Annotated[int, "Answers of the large model"]
    missed: Annotated[int, "Answers of the small model, the large one being too late"]
    share: Annotated[Share | None, "Sent on, missed ones included"]
    saving: Annotated[
        float | None,
        "The share saved of the execution time of the large model, or of both parts of a network",
    ]


def cascade_document(box: Box, camera: Camera, metrics: CameraMetrics) -> CameraCascade | None:
    """Return what a camera's cascade has done since the box started; None: it has none."""
    cascade = camera.cascade
    if cascade is None:
        return None
    kept, sent_on, missed = (metrics.cascade[outcome.value] for outcome in CascadeOutcome)
    decided = kept + sent_on + missed
    share = (sent_on + missed) / decided if decided else None
    calibration = box.driver.cascades.calibration(camera.id)
    curve = cascade.curve if calibration is None else calibration.curve()
    threshold = cascade.threshold_with(box.driver.scheduler.cascade_share(camera.id), curve)
    point = curve.at_threshold(threshold)
    return {
        "name": cascade.name,
        "small": cascade.small,
        "large": cascade.large,
        "continues": cascade.continues,
        "threshold": threshold,
        "planned": cascade.planned,
        "expected_share": round(point.share, 4),
        "expected_agreement": round(1 - point.loss, 4),
        "compared": _compared(calibration),
        "kept": kept,
        "sent_on": sent_on,
        "missed": missed,
        "share": None if share is None else round(share, 4),
        "saving": None if share is None else _saving(box, camera, share),
    }


def _compared(calibration: CascadeCalibration | None) -> CascadeComparison | None:
    losses = None if calibration is None else calibration.losses()
    if calibration is None or losses is None:
        return None
    expected, measured = losses
    return {
        "pictures": calibration.compared,
        "expected_loss": round(expected, 4),
        "measured_loss": round(measured, 4),
    }


def _saving(box: Box, camera: Camera, share: float) -> float | None:
    cascade = camera.cascade
    assert cascade is not None
    profiles = [profile for of in box.profiles.values() for profile in of.values()]
    small_ns, large_ns = (picture_ns(profiles, each) for each in (cascade.small, cascade.large))
    if small_ns is None or large_ns is None:
        return None
    return round(saving(share, small_ns, large_ns, continues=cascade.continues), 4)
