"""Owns the frames whose crops are on their way through later stages of a pipeline. Pure.

A frame with crops ends when the last of them has ended, or just before its deadline. Its answer
then says which stages are missing.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.domain.requests import BatchId, CameraId, FrameId, Request, RequestId


@dataclass(slots=True)
class JoinedFrame:
    """A frame that its first stage has answered, and what it still waits for."""

    request: Request
    batch: BatchId | None
    """The batch of its first stage; None: that ran at its camera."""
    pipeline: Pipeline
    pending: set[RequestId] = field(default_factory=set)
    """Its crops that have not ended."""
    crops: Counter[StageName] = field(default_factory=Counter)
    """How many crops each stage was given."""
    missing: dict[StageName, None] = field(default_factory=dict)
    """The stages that did not answer all their crops."""

    @property
    def id(self) -> FrameId:
        """The number of its first request."""
        return FrameId(self.request.id)


class Joins:
    """All frames with crops, by number, in the order in which their crops were cut."""

    def __init__(self) -> None:
        self.frames: dict[FrameId, JoinedFrame] = {}

    def open(self, request: Request, batch: BatchId | None, pipeline: Pipeline) -> None:
        """Note a frame whose first stage has ended with crops."""
        self.frames[FrameId(request.id)] = JoinedFrame(request, batch, pipeline)

    def detected_of(self, camera: CameraId) -> int:
        """Return how many frames of a camera wait whose first stage ran there."""
        frames = self.frames.values()
        return sum(f.batch is None and f.request.camera == camera for f in frames)

    def spawned(self, crops: Iterable[Request]) -> None:
        """Note crops; those of a frame that has ended belong to none."""
        for crop in crops:
            frame = self.of(crop)
            if frame is not None and crop.stage is not None:
                frame.pending.add(crop.id)
                frame.crops[crop.stage] += 1

    def ended(self, crop: Request, *, answered: bool) -> None:
        """Note that a crop has ended."""
        frame = self.of(crop)
        if frame is not None and crop.stage is not None:
            frame.pending.discard(crop.id)
            if not answered:
                frame.missing[crop.stage] = None

    def pipeline_of(self, crop: Request) -> Pipeline | None:
        """Return the pipeline of a crop's frame; None: that has ended."""
        frame = self.of(crop)
        return None if frame is None else frame.pipeline

    def complete(self) -> list[JoinedFrame]:
        """Return the frames that wait for nothing more."""
        return [frame for frame in self.frames.values() if not frame.pending]

    def due(self, by_ns: int) -> list[JoinedFrame]:
        """Return the frames whose last deadline is at this instant or earlier."""
        return [f for f in self.frames.values() if f.request.last_deadline_ns <= by_ns]

    def due_ns(self) -> int | None:
        """Return the earliest last deadline of all; None: there is no frame."""
        return min((f.request.last_deadline_ns for f in self.frames.values()), default=None)

    def close(self, frame: FrameId) -> None:
        """Forget a frame."""
        del self.frames[frame]

    def depart(self, camera: CameraId) -> list[JoinedFrame]:
        """Forget the frames of a camera that left, and return them."""
        gone = [frame for frame in self.frames.values() if frame.request.camera == camera]
        for frame in gone:
            self.close(frame.id)
        return gone

    def of(self, crop: Request) -> JoinedFrame | None:
        """Return the frame of a crop; None: it has ended."""
        return None if crop.frame is None else self.frames.get(crop.frame)
