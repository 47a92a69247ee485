"""Events of zones and lines carry what the pipeline's classifiers said of the object."""

from collections.abc import Mapping

import numpy as np

from edgebox.domain.notifications import NotificationType
from edgebox.domain.requests import RequestId
from edgebox.domain.zones import Line, Zone
from edgebox.runtime.frame_tracking import FrameTracking
from edgebox.runtime.frames import Answer, StageAnswer, one_shot_frame, one_shot_request
from edgebox.tracking.settings import TrackingDefaults
from edgebox.vision.detections import Detections
from tests.runtime.staged import FAMILIES, PIPELINE, STREET, answer, kind

LOWER_HALF = Zone("yard", ((0.0, 0.5), (1.0, 0.5), (1.0, 1.0), (0.0, 1.0)))
MIDDLE = Line("entry", ((0.0, 0.5), (1.0, 0.5)))


def happened(
    tracking: FrameTracking, frame: int, foot_px: float | None, *stages: StageAnswer
) -> dict[NotificationType, Mapping[str, object]]:
    """Return the events of a frame, ten a second, with one object of 20 x 20 px or none."""
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
    assert ended.analysis is not None
    return {event.kind: event.details for event in ended.analysis.events}


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


def test_events_of_objects_that_no_classifier_answered_for_have_no_attributes() -> None:
    tracking = FrameTracking(TrackingDefaults(lines=(("*", MIDDLE),)), {})
    for frame, foot_px in enumerate((40, 42, 48)):
        happened(tracking, frame, foot_px)
    assert "attributes" not in happened(tracking, 3, 54)[NotificationType.LINE_CROSSED]
