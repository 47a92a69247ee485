"""Crops of tracked objects: cut once, and what was said of them is in later answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage
from edgebox.domain.requests import CameraId, DropReason, RequestId
from edgebox.runtime.crops import CropCutter
from edgebox.runtime.frame_metrics import CameraMetrics
from edgebox.runtime.frame_tracking import FrameTracking
from edgebox.runtime.frames import (
    Answer,
    PendingFrame,
    Refusal,
    StageAnswer,
    one_shot_frame,
    one_shot_request,
)
from edgebox.runtime.stage_documents import staged_objects
from edgebox.tracking.settings import TrackingDefaults
from edgebox.vision.detections import Detections
from tests.runtime.staged import FAMILIES, FIRST, KIND, KINDS, SMALL, STREET, answer, kind

ONCE = Pipeline(
    PipelineName("once"),
    (
        PipelineStage(FIRST, STREET.name),
        PipelineStage(KIND, KINDS.name, after=(FIRST,), once_per_track=True),
    ),
)
NEVER = replace(ONCE, stages=(ONCE.stages[0], replace(ONCE.stages[1], once_per_track=False)))
CAMERA = CameraId("(one-shot)")
HATCHBACK, VAN, ESTATE = range(3)


class Street:
    """A camera with objects that stand still, ten pictures a second."""

    def __init__(self, pipeline: Pipeline = ONCE) -> None:
        self.tracking = FrameTracking(TrackingDefaults(("*",)), {})
        self.metrics = CameraMetrics()
        self.pipeline = pipeline
        self.sides_px = [40]
        self.said: Mapping[int, StageAnswer] = {}
        labels = {f.name: f.labels for f in FAMILIES.values()}
        self._cutter = CropCutter(labels, self._next, lambda *_: False)
        self._numbers = 0

    def _next(self) -> RequestId:
        self._numbers += 1
        return RequestId(10_000 + self._numbers)

    def picture(self) -> tuple[PendingFrame, list[int]]:
        """Return the next picture's frame, and the objects that the classifier is given."""
        self._numbers += 1
        request = one_shot_request(
            RequestId(self._numbers), b"", (400, 200), STREET.variants[0].name, app="http",
            now_ns=self._numbers * 100_000_000, deadline_ms=500, pipeline=self.pipeline,
        )  # fmt: skip
        frame = one_shot_frame(request, b"", lambda frame, ending: None)
        frame.family = STREET.name
        frame.picture = np.zeros((200, 400, 3), np.uint8)
        frame.tracker = self.tracking.tracker(CAMERA, STREET.name)
        boxes = [
            (100 * at, 10, 100 * at + side, 10 + side) for at, side in enumerate(self.sides_px)
        ]
        found = Detections(
            np.array(boxes, np.float32).reshape(-1, 4),
            np.full(len(boxes), 0.9, np.float32),
            np.zeros(len(boxes), np.int64),
        )
        crops = self._cutter.cut(frame, found, STREET.variants[0].name, 0)
        return frame, [crop.row for crop in crops]

    def answered(
        self, frame: PendingFrame, said: Sequence[StageAnswer], missing: bool = False
    ) -> Answer:
        """End a frame with what the classifier says of its crops."""
        assert frame.found is not None
        given = answer(frame.found, tuple(said), (KIND,) if missing else ())
        ended = self.tracking.ended(frame, given, FAMILIES, STREET.name)
        assert isinstance(ended, Answer)
        self.metrics.ended(ended, 0)
        return ended

    def seen_twice(self) -> None:
        """Show two pictures: objects have a track from the second on. Nobody answers."""
        for _ in range(2):
            frame, rows = self.picture()
            assert rows == list(range(len(self.sides_px)))
            self.answered(frame, ())


def said_of(street: Street, ended: Answer) -> dict[int, tuple[str, bool]]:
    """Return the label of each object, and whether it was said before."""
    documents = staged_objects(ended, street.pipeline, FAMILIES, 0.0).documents
    return {
        row: (of[KIND]["label"], of[KIND].get("remembered", False)) for row, of in documents.items()
    }


def test_a_certain_answer_stands_and_no_crop_is_cut_again() -> None:
    street = Street()
    street.seen_twice()
    frame, rows = street.picture()
    assert rows == [0]
    ended = street.answered(frame, [kind(0, VAN, 0.95)])
    assert said_of(street, ended) == {0: ("van", False)}
    street.sides_px = [60]
    for _ in range(3):
        frame, rows = street.picture()
        assert rows == []
        assert said_of(street, street.answered(frame, [])) == {0: ("van", True)}
    assert street.metrics.crops[KIND].remembered == 3


def test_an_uncertain_object_is_taken_again_when_its_crop_is_better() -> None:
    street = Street()
    street.seen_twice()
    frame, _ = street.picture()
    street.answered(frame, [kind(0, VAN, 0.6)])
    frame, rows = street.picture()
    assert rows == [], "the crop is no better"
    street.answered(frame, [])
    street.sides_px = [44]
    frame, rows = street.picture()
    assert rows == [0]
    # The first answer was more certain: it stands.
    assert said_of(street, street.answered(frame, [kind(0, ESTATE, 0.5)])) == {0: ("van", False)}
    street.sides_px = [48]
    frame, rows = street.picture()
    assert rows == [0]
    ended = street.answered(frame, [kind(0, ESTATE, 0.8)])
    assert said_of(street, ended) == {0: ("estate", False)}


def test_what_is_not_answered_is_taken_again_and_missing_only_if_nothing_is_known() -> None:
    street = Street()
    street.seen_twice()
    frame, rows = street.picture()
    assert rows == [0]
    ended = street.answered(frame, [], missing=True)
    assert ended.missing == (KIND,)
    frame, rows = street.picture()
    assert rows == [0], "nothing was said of it"
    street.answered(frame, [kind(0, VAN, 0.6)])
    street.sides_px = [50]
    frame, rows = street.picture()
    assert rows == [0]
    ended = street.answered(frame, [], missing=True)
    assert said_of(street, ended) == {0: ("van", True)}
    assert ended.missing == (), "it is known"
    _, rows = street.picture()
    assert rows == [0], "the better crop was not answered"


def test_a_frame_that_is_dropped_leaves_its_objects_to_the_next() -> None:
    street = Street()
    street.seen_twice()
    frame, rows = street.picture()
    assert rows == [0]
    refusal = Refusal(DropReason.DEPARTED, "it left")
    assert street.tracking.ended(frame, refusal, FAMILIES, STREET.name) is refusal
    _, rows = street.picture()
    assert rows == [0]


def test_a_newcomer_beside_known_objects_is_taken() -> None:
    street = Street()
    street.seen_twice()
    frame, _ = street.picture()
    street.answered(frame, [kind(0, VAN, 0.95)])
    street.sides_px = [40, 40]
    frame, rows = street.picture()
    assert rows == [1]
    ended = street.answered(frame, [kind(1, ESTATE, 0.95)])
    assert said_of(street, ended) == {0: ("van", True), 1: ("estate", False)}


def test_without_the_key_or_without_tracking_all_objects_are_taken() -> None:
    for street in (Street(NEVER), Street()):
        if street.pipeline is ONCE:
            street.tracking = FrameTracking(TrackingDefaults(), {})
        for _ in range(4):
            frame, rows = street.picture()
            assert rows == [0]
            frame.found = frame.found or answer(Detections.empty()).detections
            street.tracking.ended(frame, answer(frame.found), FAMILIES, STREET.name)


def test_another_pipeline_knows_nothing() -> None:
    street = Street()
    street.seen_twice()
    frame, _ = street.picture()
    street.answered(frame, [kind(0, VAN, 0.95)])
    other = replace(ONCE, name=PipelineName("other"))
    street.pipeline = other
    frame, rows = street.picture()
    assert rows == [0]
    assert said_of(street, street.answered(frame, [])) == {}


def test_the_embedding_of_the_best_crop_is_kept() -> None:
    street = Street()
    street.seen_twice()

    def embedded(value: float) -> StageAnswer:
        found = Detections(
            np.zeros((1, 4), np.float32), np.ones(1, np.float32), np.zeros(1, np.int64),
            np.full((1, 2), value, np.float32),
        )  # fmt: skip
        return StageAnswer(KIND, 0, SMALL, found)

    for side_px, value in ((40, 0.1), (50, 0.2), (60, 0.3)):
        street.sides_px = [side_px]
        frame, rows = street.picture()
        assert rows == [0], "an embedding may always be better"
        street.answered(frame, [embedded(value)])
    street.sides_px = [50]
    frame, rows = street.picture()
    assert rows == []
    (known,) = street.answered(frame, []).stages
    assert known.remembered and known.detections.embeddings is not None
    assert known.detections.embeddings[0, 0] == np.float32(0.3)
