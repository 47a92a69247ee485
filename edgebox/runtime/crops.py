"""Cuts crops: which objects of an answer the later stages of a pipeline take, and where they are.

Runs on the event loop, on numbers only; decoding threads scale the pixels.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.cascades import CascadeOutcome
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import PipelineStage, StageName
from edgebox.domain.requests import FrameId, Request, RequestId
from edgebox.runtime.frames import ObjectTracker, PendingFrame, note_refusal
from edgebox.vision.cropping import crop_of, taken
from edgebox.vision.detections import Detections

Labels = Mapping[FamilyName, Sequence[str]]
"""The names of each family's classes."""


class CropCutter:
    """Makes the requests of later stages."""

    def __init__(
        self,
        labels: Labels,
        next_id: Callable[[], RequestId],
        sends_on: Callable[[PendingFrame, Detections, VariantName, int], bool],
    ) -> None:
        """Cut nothing yet.

        Args:
            labels: of the families that stages run on.
            next_id: returns a number that no other request has.
            sends_on: `CascadeDecisions.decide`.
        """
        self._labels = labels
        self._next_id = next_id
        self._sends_on = sends_on

    def cut(
        self, frame: PendingFrame, found: Detections, variant: VariantName, now_ns: int
    ) -> list[PendingFrame]:
        """Return the crops that the stages after a frame or crop take; they are listed in it too.

        A frame that its cascade sends on has one, which is all of the picture.

        Args:
            frame: what was answered.
            found: what was found on it, in px of the camera's own picture.
            variant: that found it.
            now_ns: when.
        """
        root = frame.root
        whole = root.picture is not None and frame is root
        if whole and self._sends_on(frame, found, variant, now_ns):
            assert root.pipeline is not None
            stage = root.pipeline.cascade_stage
            assert stage is not None
            frame.crops.append(self._whole(frame, stage, now_ns))
            frame.features = ()
            return list(frame.crops)
        frame.features = ()
        if frame.tracker is not None:
            found = frame.found = frame.tracker.detected(frame, found)
        return self._spawn(frame, found, now_ns, frame.tracker)

    def cut_own(self, frame: PendingFrame, now_ns: int) -> list[PendingFrame]:
        """Return the crops of what a frame's first stage has found, though it was sent on.

        It is tracked when it ends, as if the large model had answered: no stage after a cascade is
        run once for each track.
        """
        assert frame.found is not None
        return self._spawn(frame, frame.found, now_ns, None)

    def lacking(self, frame: PendingFrame, missing: tuple[StageName, ...]) -> tuple[StageName, ...]:
        """Return the stages, of those that did not answer a frame, that it has something for.

        Nothing was cut of a frame whose cascade's large model was waited for until the end.
        """
        found = frame.found
        if frame.cascade is not CascadeOutcome.MISSED or found is None:
            return missing
        taking = {stage.name for stage, _, rows in self._taken(frame, found, None) if len(rows)}
        uncut = {
            stage.name
            for stage in frame.stages_after
            if stage.cascade is None and not frame.crops_of_stages[stage.name]
        }
        return tuple(name for name in missing if name not in uncut - taking)

    def _spawn(
        self, frame: PendingFrame, found: Detections, now_ns: int, tracker: ObjectTracker | None
    ) -> list[PendingFrame]:
        out: list[PendingFrame] = []
        for stage, boxes, rows in self._taken(frame, found, tracker):
            frame.root.crops_of_stages[stage.name] += len(rows)
            if tracker is not None:
                tracker.taken(frame, stage, found, rows.tolist())
            out += (self._crop(frame, stage, boxes[row], int(row), now_ns) for row in rows)
        frame.crops += out
        return out

    def _taken(
        self, frame: PendingFrame, found: Detections, tracker: ObjectTracker | None
    ) -> Iterator[tuple[PipelineStage, NDArray[np.float32], NDArray[np.intp]]]:
        """Yield the stages that are given objects of a frame, with the boxes of all objects as sent
        and those that the stage takes, by row."""
        root = frame.root
        if root.picture is None or not len(found):
            return
        of_stage = frame.request.stage or root.request.stage
        assert root.pipeline is not None
        before = root.pipeline.stage(of_stage) or root.pipeline.first
        labels = self._labels.get(before.family, ())
        boxes = _as_sent(root, found)
        for stage in frame.stages_after:
            if stage.cascade is not None:
                continue
            left = stage.crops_max - root.crops_of_stages[stage.name]
            wanted = None if tracker is None else tracker.wanted(frame, stage, found)
            rows = taken(stage, found, boxes, labels, root.picture.shape, wanted=wanted)[:left]
            yield stage, boxes, rows

    def _crop(
        self,
        frame: PendingFrame,
        stage: PipelineStage,
        box: NDArray[np.float32],
        row: int,
        now_ns: int,
    ) -> PendingFrame:
        root = frame.root
        assert root.picture is not None
        height_px, width_px = root.picture.shape[:2]
        place = crop_of(box, stage.margin, width_px, height_px)
        return self._part(frame, stage, place, row, now_ns)

    def _whole(self, frame: PendingFrame, stage: PipelineStage, now_ns: int) -> PendingFrame:
        """Return the request of a frame's whole picture for a stage, or of its features."""
        picture = frame.root.picture
        assert picture is not None
        whole = self._part(frame, stage, (0, 0, picture.shape[1], picture.shape[0]), 0, now_ns)
        if stage.cascade is not None and stage.cascade.continues:
            assert frame.features  # the first part of the network has left them
            whole.rgb, whole.features, whole.placement = None, frame.features, frame.placement
        return whole

    def _part(
        self,
        frame: PendingFrame,
        stage: PipelineStage,
        place: tuple[int, int, int, int],
        row: int,
        now_ns: int,
    ) -> PendingFrame:
        """Return the request of a part of a picture: left, top, right, bottom in px of it."""
        root, (left, top, right, bottom) = frame.root, place
        assert root.picture is not None
        pixels = root.picture[top:bottom, left:right]
        of = root.request
        request = Request(
            id=self._next_id(),
            camera=of.camera,
            app=of.app,
            captured_ns=of.captured_ns,
            arrival_ns=now_ns,
            deadline_ns=of.deadline_ns,
            width_px=right - left,
            height_px=bottom - top,
            size_bytes=pixels.size,
            steps=of.steps,
            frame=FrameId(of.id),
            stage=stage.name,
            optional=stage.cascade is not None,
        )
        return PendingFrame(
            request,
            b"",
            right - left,
            bottom - top,
            root.return_ns,
            note_refusal,
            number=root.number,
            family=stage.family,
            rgb=pixels,
            pipeline=root.pipeline,
            parent=frame,
            row=row,
            origin_px=(left, top),
        )


def _as_sent(root: PendingFrame, found: Detections) -> NDArray[np.float32]:
    """Return boxes (n, 4) xyxy in px of the picture as sent."""
    assert root.picture is not None
    height_px, width_px = root.picture.shape[:2]
    x, y = width_px / root.source_width_px, height_px / root.source_height_px
    boxes: NDArray[np.float32] = found.boxes * np.array((x, y, x, y), np.float32)
    return boxes
