"""Events of zones and lines carry what the pipeline's classifiers said of the object."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.requests import CameraId, RequestId
from edgebox.domain.zones import Line, Zone
from edgebox.runtime.frame_metrics import CameraMetrics
from edgebox.runtime.frame_tracking import FrameTracking
from edgebox.runtime.frames import (
    ONE_SHOT_CAMERA,
    Answer,
    StageAnswer,
    one_shot_frame,
    one_shot_request,
)
from edgebox.tracking.settings import TrackingDefaults
from edgebox.vision.detections import Detections
from tests.runtime.staged import FAMILIES, PIPELINE, STREET, answer, kind

LOWER_HALF = Zone("yard", ((0.0, 0.5), (1.0, 0.5), (1.0, 1.0), (0.0, 1.0)))
MIDDLE = Line("entry", ((0.0, 0.5), (1.0, 0.5)))


def happened(
    tracking: FrameTracking, frame: int, foot_px: float | None, *stages: StageAnswer
) -> dict[NotificationType, Mapping[str, object]]:
    """Return the events of a frame."""
    analysis = tracked(tracking, frame, foot_px, *stages).analysis
    assert analysis is not None
    return {event.kind: event.details for event in analysis.events}


def tracked(
    tracking: FrameTracking, frame: int, foot_px: float | None, *stages: StageAnswer
) -> Answer:
    """Return the answer to a frame, ten a second, with one object of 20 × 20 px or none."""
    box = [] if foot_px is None else [(40, foot_px - 20, 60, foot_px)]
    found = Detections(
        np.array(box, np.float32).reshape(-1, 4),
        np.full(len(box), 0.9, np.float32),
        np.zeros(len(box), np.int64),
    )
    request = one_shot_request(
        RequestId(frame), b"", (100, 100), STREET.variants[0].name,
        app="http", now_ns=1 + frame * 100_000_000, deadline_ms=500, pipeline=PIPELINE,
    )  # fmt: skip
    pending = one_shot_frame(request, b"", lambda frame, ending: None)
    ended = tracking.ended(pending, answer(found, stages), FAMILIES, STREET.name)
    assert isinstance(ended, Answer)
    return ended


def test_events_carry_what_was_said_of_the_object_last() -> None:
    tracking = FrameTracking(
        TrackingDefaults(zones=(("*", LOWER_HALF),), lines=(("*", MIDDLE),)), {}
    )
    van = {"kind": {"label": "van", "score": 0.8}}
    assert happened(tracking, 0, 40) == {}
    assert happened(tracking, 1, 42, kind(0, 1, 0.8)) == {}
    assert happened(tracking, 2, 48) == {}
    # No classifier answers for this frame: the event has what is known from before.
    events = happened(tracking, 3, 54)
    assert events[NotificationType.ZONE_DWELL]["attributes"] == van
    assert events[NotificationType.LINE_CROSSED]["attributes"] == van
    events = happened(tracking, 60, None)
    assert events[NotificationType.ZONE_LEFT]["attributes"] == van


def test_what_tracking_finds_is_counted_by_second() -> None:
    tracking = FrameTracking(
        TrackingDefaults(zones=(("*", LOWER_HALF),), lines=(("*", MIDDLE),)), {}
    )
    metrics = CameraMetrics()
    for frame, foot_px in enumerate((40, 42, 48, 54, 58, 48, 44)):
        metrics.ended(tracked(tracking, frame, foot_px), frame)
    [(_, period)] = metrics.take_updates()
    inside = period.tracked["objects/yard"]
    assert 1 <= inside <= 4, "a stay ends some time after the object has left"
    assert period.tracked == {
        "frames/yard": 7, "objects/yard": inside, "in/entry": 1, "out/entry": 1
    }  # fmt: skip
    metrics.ended(tracked(tracking, 7, 43), 2_000_000_000)
    [(_, period)] = metrics.take_updates()
    assert (period.tracked["in/entry"], period.tracked["out/entry"]) == (0, 0)


def test_events_of_objects_that_no_classifier_answered_for_have_no_attributes() -> None:
    tracking = FrameTracking(TrackingDefaults(lines=(("*", MIDDLE),)), {})
    for frame, foot_px in enumerate((40, 42, 48)):
        happened(tracking, frame, foot_px)
    assert "attributes" not in happened(tracking, 3, 54)[NotificationType.LINE_CROSSED]


def observed(tracking: FrameTracking) -> list[Notification]:
    """Return the list in which events are noted from now on."""
    found: list[Notification] = []
    tracking.observers.add(lambda camera, events: found.extend(events))
    return found


def test_stays_end_when_the_camera_leaves() -> None:
    tracking = FrameTracking(TrackingDefaults(zones=(("*", LOWER_HALF),)), {})
    events = observed(tracking)
    for frame in range(4):
        happened(tracking, frame, 60, kind(0, 1, 0.8))
    tracking.departed(ONE_SHOT_CAMERA)
    begun, ended = events
    assert (begun.kind, ended.kind) == (NotificationType.ZONE_DWELL, NotificationType.ZONE_LEFT)
    assert ended.details["attributes"] == {"kind": {"label": "van", "score": 0.8}}
    assert ended.details["dwell_s"] == 0.2
    assert tracking.zone_counts(ONE_SHOT_CAMERA) == {"yard": {}}
    tracking.departed(ONE_SHOT_CAMERA)
    assert len(events) == 2


def test_stays_end_when_tracking_is_turned_off_and_crossings_outlive_other_changes() -> None:
    overrides: dict[CameraId, Overrides] = {}
    tracking = FrameTracking(
        TrackingDefaults(zones=(("*", LOWER_HALF),), lines=(("*", MIDDLE),)), overrides
    )
    events = observed(tracking)
    for frame, foot_px in enumerate((40, 42, 48, 54, 56)):
        happened(tracking, frame, foot_px)
    crossed = tracking.crossings(ONE_SHOT_CAMERA)
    assert sum(sum(of.values()) for of in crossed["entry"].values()) == 1
    overrides[ONE_SHOT_CAMERA] = replace(NOTHING_SET, zones=())
    tracking.changed(ONE_SHOT_CAMERA)
    assert [event.kind for event in events][-1] == NotificationType.ZONE_LEFT
    assert tracking.crossings(ONE_SHOT_CAMERA) == crossed, "the line is as it was"
    overrides[ONE_SHOT_CAMERA] = NOTHING_SET
    tracking.changed(ONE_SHOT_CAMERA)
    happened(tracking, 5, 58)
    happened(tracking, 6, 60)
    overrides[ONE_SHOT_CAMERA] = replace(NOTHING_SET, tracking=False)
    tracking.changed(ONE_SHOT_CAMERA)
    kinds = [event.kind for event in events]
    assert kinds.count(NotificationType.ZONE_LEFT) == kinds.count(NotificationType.ZONE_DWELL) == 2
    assert tracking.crossings(ONE_SHOT_CAMERA) == {}
