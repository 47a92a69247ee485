"""Reports what later stages said of tracked objects in earlier pictures, and asks them once.

For the stages of a pipeline that have `once_per_track`; one memory for each camera.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineStage, StageName
from edgebox.inference.family import Family
from edgebox.runtime.frames import Answer, PendingFrame, StageAnswer
from edgebox.runtime.stage_documents import best_classes
from edgebox.tracking.track_answers import CERTAIN, Known, TrackAnswers
from edgebox.vision.detections import Detections


class StageMemory:
    """What stages said of one camera's tracks."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._answers: TrackAnswers[StageAnswer] = TrackAnswers()
        self._pipeline: Pipeline | None = None

    def keep(self, alive: frozenset[int]) -> None:
        """Forget all tracks but these."""
        self._answers.keep(alive)

    def wanted(
        self, frame: PendingFrame, stage: PipelineStage, found: Detections
    ) -> NDArray[np.bool_] | None:
        """Return (n,) whether a stage is to be given each object; None: all."""
        if not stage.once_per_track or found.tracks is None:
            return None
        if frame.pipeline != self._pipeline:  # a stage of this name may be another one
            self._pipeline, self._answers = frame.pipeline, TrackAnswers()
        objects = zip(found.tracks.tolist(), _qualities(frame, found).tolist(), strict=True)
        return np.array([self._answers.wants(stage.name, *each) for each in objects], np.bool_)

    def taken(
        self, frame: PendingFrame, stage: PipelineStage, found: Detections, rows: Sequence[int]
    ) -> None:
        """Note the objects, by row, that a stage is given."""
        if not stage.once_per_track or found.tracks is None:
            return
        qualities = _qualities(frame, found)
        for row in rows:
            if track := int(found.tracks[row]):
                self._answers.submitted(stage.name, track, float(qualities[row]))

    def dropped(self, frame: PendingFrame) -> None:
        """Note that a frame has ended without an answer."""
        if frame.found is not None and frame.pipeline == self._pipeline:
            for stage, row, track, quality in _remembered_crops(frame, frame.found):
                del row
                self._answers.unanswered(stage, track, quality)

    def answered(
        self, frame: PendingFrame, answer: Answer, families: Mapping[FamilyName, Family]
    ) -> Answer:
        """Return an answer with what was said of its objects, now and before.

        Each attribute has its most certain answer, an embedding is that of the best crop. A stage
        is not missing where something is known of each object that it did not answer.
        """
        found, pipeline = answer.detections, frame.pipeline
        if pipeline is None or found.tracks is None or pipeline != self._pipeline:
            return answer
        said = {(each.stage, each.object): each for each in answer.stages}
        lacking = set()
        for stage, row, track, quality in _remembered_crops(frame, found):
            if (stage, row) in said:
                now = said[stage, row]
                before = self._answers.known(stage, track)
                if before is not None:
                    now = said[stage, row] = _merged(before, now, quality)
                of = pipeline.stage(stage)
                assert of is not None
                certain = _is_certain(families[of.family], now.detections)
                self._answers.answered(stage, track, quality, now, certain=certain)
            else:
                self._answers.unanswered(stage, track, quality)
        for crop in frame.crops:
            stage_of, row = crop.request.stage, crop.row
            if stage_of is not None and (stage_of, row) not in said:
                track = int(found.tracks[row])
                if not track or self._answers.known(stage_of, track) is None:
                    lacking.add(stage_of)
        once = {stage.name for stage in pipeline.stages if stage.once_per_track}
        for stage_name in once:
            for row, track in enumerate(found.tracks.tolist()):
                known = self._answers.known(stage_name, track) if track else None
                if known is not None and (stage_name, row) not in said:
                    said[stage_name, row] = replace(known.said, object=row, remembered=True)
        missing = tuple(each for each in answer.missing if each not in once or each in lacking)
        return replace(answer, stages=tuple(said.values()), missing=missing)


def _remembered_crops(
    frame: PendingFrame, found: Detections
) -> Iterator[tuple[StageName, int, int, float]]:
    """Yield the crops of tracked objects for stages that remember: stage, row, track, quality."""
    assert frame.pipeline is not None
    once = {stage.name for stage in frame.pipeline.stages if stage.once_per_track}
    if found.tracks is None or not once:
        return
    qualities = _qualities(frame, found)
    for crop in frame.crops:
        stage = crop.request.stage
        if stage in once and stage is not None and (track := int(found.tracks[crop.row])):
            yield stage, crop.row, track, float(qualities[crop.row])


def _merged(before: Known[StageAnswer], now: StageAnswer, quality: float) -> StageAnswer:
    """Return what both answers say of an object."""
    old, new = before.said.detections, now.detections
    if new.embeddings is not None:
        return now if quality >= before.quality else replace(now, detections=old)
    found = Detections(
        np.concatenate((old.boxes, new.boxes)),
        np.concatenate((old.scores, new.scores)),
        np.concatenate((old.labels, new.labels)),
    )
    best_first = np.argsort(-found.scores, kind="stable")
    _, first = np.unique(found.labels[best_first], return_index=True)
    return replace(now, detections=found.select(best_first[np.sort(first)]))


def _is_certain(family: Family, found: Detections) -> bool:
    """Return whether a classifier need not be asked again; an embedding may always be better."""
    if found.embeddings is not None:
        return False
    best = best_classes(family, found)
    return bool(best) and all(of["score"] >= CERTAIN for of in best.values())


def _qualities(frame: PendingFrame, found: Detections) -> NDArray[np.float64]:
    """Return (n,) the quality of each object's crop: its shorter side as sent, times its score."""
    sent = frame.request
    scale = (sent.width_px / frame.source_width_px, sent.height_px / frame.source_height_px)
    sides = (found.boxes[:, 2:] - found.boxes[:, :2]).astype(np.float64) * scale
    qualities: NDArray[np.float64] = sides.min(axis=1) * found.scores
    return qualities
