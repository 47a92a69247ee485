"""Tracks the objects of cameras' answered frames, and watches their zones and lines.

Runs on the event loop, once for each frame of a camera that is tracked: as soon as its first stage
has answered if crops are cut, else when the frame ends. Nobody learns of the answer before it:
results, events and the page all carry the same ids. An update takes 0.4 ms with 50 objects on a
busy machine. A thread would hold the interpreter's lock for most of that time all the same, and
results could overtake each other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import FamilyName
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.pipelines import PipelineStage
from edgebox.domain.requests import CameraId
from edgebox.inference.family import Family
from edgebox.runtime.frames import (
    Answer,
    FrameAnalysis,
    FrameResult,
    ObjectTracker,
    PendingFrame,
)
from edgebox.runtime.observers import Observers
from edgebox.runtime.stage_documents import staged_objects
from edgebox.runtime.stage_memory import StageMemory
from edgebox.tracking.settings import CameraTracking, TrackingDefaults
from edgebox.tracking.tracker import Tracker
from edgebox.tracking.watch import Crossing, Sighting, StayBegun, ZoneEvent, ZoneWatch
from edgebox.vision.detections import Detections

Attributes = Mapping[str, Mapping[str, object]]
"""By the attribute's name, its label and score."""


@dataclass(slots=True)
class _TrackedCamera:
    """An `ObjectTracker`."""

    family: FamilyName | None
    tracker: Tracker
    watch: ZoneWatch
    newest_ns: int = 0
    """When the newest picture that was tracked was captured."""
    attributes: dict[int, Attributes] = field(default_factory=dict)
    """The last answers of the pipeline's classifiers, by track."""
    memory: StageMemory = field(default_factory=StageMemory)

    def detected(self, frame: PendingFrame, found: Detections) -> Detections:
        """Return what was found on a frame, with ids."""
        # In heights of the picture: a camera may change its resolution.
        ids = self.tracker.update(
            found.boxes.astype(np.float64) / frame.source_height_px,
            found.scores.astype(np.float64),
            found.labels,
            frame.request.captured_ns,
        )
        self.memory.keep(self.tracker.alive)
        return replace(found, tracks=ids)

    def wanted(
        self, frame: PendingFrame, stage: PipelineStage, found: Detections
    ) -> NDArray[np.bool_] | None:
        """Return whether a stage is to be given each object."""
        return self.memory.wanted(frame, stage, found)

    def taken(
        self, frame: PendingFrame, stage: PipelineStage, found: Detections, rows: Sequence[int]
    ) -> None:
        """Note the objects that a stage is given."""
        self.memory.taken(frame, stage, found, rows)

    def note_attributes(self, ids: list[int], found: Mapping[int, Attributes]) -> None:
        """Note what classifiers say of objects by row; forget tracks that have ended."""
        alive = self.tracker.alive
        self.attributes = {track: of for track, of in self.attributes.items() if track in alive}
        for row, of in found.items():
            if ids[row]:
                self.attributes[ids[row]] = {**self.attributes.get(ids[row], {}), **of}


class FrameTracking:
    """The trackers of all cameras that are tracked."""

    def __init__(self, defaults: TrackingDefaults, overrides: Mapping[CameraId, Overrides]) -> None:
        """Track by the configuration, and what is set on the box, as it changes."""
        self._defaults = defaults
        self._overrides = overrides
        self._settings: dict[CameraId, CameraTracking | None] = {}
        self._cameras: dict[CameraId, _TrackedCamera] = {}
        self.observers: Observers[[CameraId, tuple[Notification, ...]]] = Observers()
        """Called with what happened in a camera's zones and at its lines, also when it left."""

    def settings(self, camera: CameraId) -> CameraTracking | None:
        """Return what is tracked on a camera; None: nothing."""
        if camera not in self._settings:
            overrides = self._overrides.get(camera, NOTHING_SET)
            self._settings[camera] = self._defaults.of(camera, overrides)
        return self._settings[camera]

    def would_be(self, camera: CameraId, overrides: Overrides) -> CameraTracking | None:
        """Return what would be tracked on a camera with other settings; None: nothing."""
        return self._defaults.of(camera, overrides)

    def changed(self, camera: CameraId) -> None:
        """Take up new settings of a camera. Ids go on where they were."""
        self._settings.pop(camera, None)
        tracked, settings = self._cameras.get(camera), self.settings(camera)
        if tracked is None:
            return
        if settings is None:
            ended = tracked.watch.end()
        else:
            ended = tracked.watch.change(settings.zones, settings.lines)
        self._tell(camera, tracked, ended, tracked.attributes)

    def departed(self, camera: CameraId) -> None:
        """Empty the zones of a camera that has disconnected; crossings start anew."""
        tracked = self._cameras.get(camera)
        if tracked is not None:
            self._tell(camera, tracked, tracked.watch.end(), tracked.attributes)

    def forget(self, camera: CameraId) -> None:
        """Forget a camera."""
        self._settings.pop(camera, None)
        self._cameras.pop(camera, None)

    def tracker(self, camera: CameraId, family: FamilyName) -> ObjectTracker | None:
        """Return what follows the objects of a camera's next frame; None: it is not tracked."""
        settings = self.settings(camera)
        return None if settings is None else self._of(camera, settings, family)

    def zone_counts(self, camera: CameraId) -> dict[str, dict[str, int]]:
        """Return the objects in each zone, by class."""
        tracked = self._tracked(camera)
        return {} if tracked is None else tracked.watch.counts()

    def crossings(self, camera: CameraId) -> dict[str, dict[str, dict[str, int]]]:
        """Return the crossings of each line since the camera connected, by direction and class."""
        tracked = self._tracked(camera)
        return {} if tracked is None else tracked.watch.crossings()

    def tracks(self, camera: CameraId) -> int:
        """Return how many tracks a camera has, lost ones included."""
        tracked = self._tracked(camera)
        return 0 if tracked is None else len(tracked.tracker.alive)

    def ended(
        self,
        frame: PendingFrame,
        ending: FrameResult,
        families: Mapping[FamilyName, Family],
        family: FamilyName,
    ) -> FrameResult:
        """Return an answer with the ids of its objects and what happened in zones.

        Anything else is returned as it is, and so are answers of cameras that are not tracked.

        Args:
            frame: that has ended.
            ending: its result.
            families: those of the stages of its pipeline, at least.
            family: that its detections are of.
        """
        camera = frame.request.camera
        settings = self.settings(camera)
        if settings is None:
            return ending
        if not isinstance(ending, Answer):
            self._of(camera, settings, frame.family).memory.dropped(frame)
            return ending
        return self._answered(settings, frame, ending, families, families[family].labels)

    def _answered(
        self,
        settings: CameraTracking,
        frame: PendingFrame,
        answer: Answer,
        families: Mapping[FamilyName, Family],
        labels: tuple[str, ...],
    ) -> Answer:
        camera = frame.request.camera
        tracked = self._of(camera, settings, frame.family)
        captured_ns = frame.request.captured_ns
        found = answer.detections
        if found.tracks is None:
            found = tracked.detected(frame, found)
        assert found.tracks is not None
        answer = tracked.memory.answered(frame, replace(answer, detections=found), families)
        staged = staged_objects(answer, frame.pipeline, families, 0.0, embeddings=False)
        before = tracked.attributes
        tracked.note_attributes(found.tracks.tolist(), staged.attributes)
        events: list[ZoneEvent] = []
        if captured_ns > tracked.newest_ns:
            tracked.newest_ns = captured_ns
            if settings.zones or settings.lines:
                events = tracked.watch.update(
                    _sightings(found, labels, frame),
                    tracked.tracker.alive,
                    captured_ns,
                    frame.source_width_px / frame.source_height_px,
                )
        notifications = self._tell(camera, tracked, events, {**before, **tracked.attributes})
        counts, crossings = tracked.watch.counts(), tracked.watch.crossings()
        crossed = Counter[tuple[str, str]](
            (e.line, e.direction) for e in events if isinstance(e, Crossing)
        )
        analysis = FrameAnalysis(counts, crossings, crossed, notifications)
        return replace(answer, analysis=analysis)

    def _tell(
        self,
        camera: CameraId,
        tracked: _TrackedCamera,
        events: Iterable[ZoneEvent],
        attributes: Mapping[int, Attributes],
    ) -> tuple[Notification, ...]:
        """Tell of what happened up to a camera's newest picture; return the notifications."""
        notifications = tuple(
            _notification(event, camera, tracked.newest_ns, attributes.get(event.track, {}))
            for event in events
        )
        if notifications:
            self.observers.notify(camera, notifications)
        return notifications

    def _tracked(self, camera: CameraId) -> _TrackedCamera | None:
        """Return a camera that is tracked now and has sent a frame."""
        return None if self.settings(camera) is None else self._cameras.get(camera)

    def _of(
        self, camera: CameraId, settings: CameraTracking, family: FamilyName | None
    ) -> _TrackedCamera:
        tracked = self._cameras.get(camera)
        if tracked is None:
            tracker = Tracker(self._defaults.tracker)
            tracked = _TrackedCamera(
                family, tracker, ZoneWatch(settings.zones, settings.lines, self._defaults.hold_ns)
            )
            self._cameras[camera] = tracked
        if tracked.family != family:  # its classes have other numbers
            tracked.family = family
            tracked.tracker = Tracker(self._defaults.tracker, tracked.tracker.last_id)
            tracked.attributes, tracked.memory = {}, StageMemory()
        return tracked


def _sightings(found: Detections, labels: tuple[str, ...], frame: PendingFrame) -> list[Sighting]:
    assert found.tracks is not None
    known = found.select(found.tracks > 0)
    assert known.tracks is not None
    size = (frame.source_width_px, frame.source_height_px)
    boxes = (known.boxes.astype(np.float64) / (*size, *size)).tolist()
    rows = zip(known.tracks.tolist(), known.labels.tolist(), boxes, strict=True)
    return [
        Sighting(track, labels[label], ((box[0] + box[2]) / 2, box[3]), box[3] - box[1])
        for track, label, box in rows
    ]


def _notification(
    event: ZoneEvent, camera: CameraId, at_ns: int, attributes: Attributes
) -> Notification:
    if isinstance(event, Crossing):
        kind = NotificationType.LINE_CROSSED
        details: dict[str, object] = {"line": event.line, "direction": event.direction}
    else:
        stays = isinstance(event, StayBegun)
        kind = NotificationType.ZONE_DWELL if stays else NotificationType.ZONE_LEFT
        details = {"zone": event.zone, "dwell_s": round(event.dwell_ns / 1e9, 2)}
    details["track"] = event.track
    if attributes:
        details["attributes"] = attributes
    return Notification(kind, at_ns, camera, event.label, details)
