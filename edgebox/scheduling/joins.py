"""Owns the frames whose crops are on their way through later stages of a pipeline. Pure.

A frame with crops ends when the last of them has ended, or just before its deadline. Its answer
then says which stages are missing. If its cascade's large model does not answer it, what its first
stage has found is cut then, as if it had not been sent on.

Every event asks which frames are complete and which are due, so no answer may scan all frames: they
are indexed by deadline (a binary heap whose entries of closed frames are removed later), by camera,
and by whether they wait for anything. Each answer is in the order in which the frames were opened.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from operator import attrgetter

from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.domain.requests import BatchId, CameraId, FrameId, Request, RequestId


@dataclass(slots=True)
class JoinedFrame:
    """A frame that its first stage has answered, and what it still waits for."""

    request: Request
    batch: BatchId | None
    """The batch of its first stage; None: that ran at its camera."""
    pipeline: Pipeline
    opened: int = 0
    """Its place in the order of all frames."""
    pending: set[RequestId] = field(default_factory=set)
    """Its crops that have not ended."""
    crops: Counter[StageName] = field(default_factory=Counter)
    """How many crops each stage was given."""
    missing: dict[StageName, None] = field(default_factory=dict)
    """The stages that did not answer all their crops."""
    uncut: tuple[StageName, ...] = ()
    """The stages that are given what its first stage has found if its cascade's large model, which
    it was sent on to, does not answer it."""
    awaits_crops: bool = False
    """Whether crops for these stages are being cut."""

    @property
    def id(self) -> FrameId:
        """The number of its first request."""
        return FrameId(self.request.id)


_SPARE_MAX = 16
"""So many entries of closed frames may stay in the heap, beside one for each open frame."""
_in_order = attrgetter("opened")


class Joins:
    """All frames with crops, by number, in the order in which their crops were cut."""

    def __init__(self) -> None:
        self.frames: dict[FrameId, JoinedFrame] = {}
        """To be changed by this class only: the indexes below repeat what is in it."""
        self._opened = 0
        self._deadlines: list[tuple[int, int, FrameId]] = []
        """A heap of last deadlines (ns), places in the order, and numbers; some are closed."""
        self._complete: dict[FrameId, None] = {}
        self._uncut: dict[FrameId, None] = {}
        """Those that wait for no crop, and whose own objects are to be cut now."""
        self._by_camera: dict[CameraId, dict[FrameId, None]] = {}
        self._detected: Counter[CameraId] = Counter()
        """The frames by camera whose first stage ran there."""

    def open(self, request: Request, batch: BatchId | None, pipeline: Pipeline) -> None:
        """Note a frame whose first stage has ended with crops; its number is new. O(log frames)."""
        number = FrameId(request.id)
        self._opened += 1
        self.frames[number] = JoinedFrame(request, batch, pipeline, self._opened)
        self._complete[number] = None
        self._by_camera.setdefault(request.camera, {})[number] = None
        if batch is None:
            self._detected[request.camera] += 1
        heappush(self._deadlines, (request.last_deadline_ns, self._opened, number))

    def detected_of(self, camera: CameraId) -> int:
        """Return how many frames of a camera wait whose first stage ran there."""
        return self._detected[camera]

    def spawned(self, crops: Iterable[Request]) -> None:
        """Note crops; those of a frame that has ended belong to none."""
        for crop in crops:
            frame = self.of(crop)
            if frame is not None and crop.stage is not None:
                frame.pending.add(crop.id)
                frame.crops[crop.stage] += 1
                if crop.optional:
                    after = frame.pipeline.next_stages(frame.pipeline.first.name)
                    frame.uncut = tuple(stage.name for stage in after if stage.cascade is None)
                self._complete.pop(frame.id, None)
                self._uncut.pop(frame.id, None)

    def ended(self, crop: Request, *, answered: bool) -> None:
        """Note that a crop has ended."""
        frame = self.of(crop)
        if frame is not None and crop.stage is not None:
            frame.pending.discard(crop.id)
            if not answered:
                frame.missing[crop.stage] = None
            elif crop.optional:
                frame.uncut = ()  # what the large model has found was cut instead
            self._settle(frame)

    def _settle(self, frame: JoinedFrame) -> None:
        if not frame.pending and not frame.awaits_crops:
            (self._uncut if frame.uncut else self._complete)[frame.id] = None

    def to_cut(self) -> list[JoinedFrame]:
        """Return the frames whose own objects are to be cut now, each once."""
        found = self._ordered(self._uncut) if self._uncut else []
        self._uncut.clear()
        for frame in found:
            frame.awaits_crops = True
        return found

    def cut(self, number: FrameId, crops: Iterable[Request]) -> bool:
        """Note the crops of a frame's own objects; False: it does not wait for them."""
        frame = self.frames.get(number)
        if frame is None or not frame.awaits_crops:
            return False
        frame.awaits_crops, frame.uncut = False, ()
        self.spawned(crops)
        self._settle(frame)
        return True

    def pipeline_of(self, crop: Request) -> Pipeline | None:
        """Return the pipeline of a crop's frame; None: that has ended."""
        frame = self.of(crop)
        return None if frame is None else frame.pipeline

    def complete(self) -> list[JoinedFrame]:
        """Return the frames that wait for nothing more."""
        return self._ordered(self._complete) if self._complete else []

    def due(self, by_ns: int) -> list[JoinedFrame]:
        """Return the frames whose last deadline is at this instant or earlier.

        Goes down the heap as far as deadlines are due. O(d log d) for d entries that are.
        """
        if not self._deadlines or self._deadlines[0][0] > by_ns:
            return []
        found, at = [], [0]
        while at:
            n = at.pop()
            if n < len(self._deadlines) and self._deadlines[n][0] <= by_ns:
                if self._is_open(self._deadlines[n]):
                    found.append(self._deadlines[n][2])
                at += (2 * n + 1, 2 * n + 2)
        return self._ordered(found)

    def due_ns(self) -> int | None:
        """Return the earliest last deadline of all; None: there is no frame."""
        return self._deadlines[0][0] if self._deadlines else None

    def close(self, frame: FrameId) -> None:
        """Forget a frame. O(log frames) in the mean of many."""
        gone = self.frames.pop(frame)
        camera = gone.request.camera
        self._complete.pop(frame, None)
        self._uncut.pop(frame, None)
        of_camera = self._by_camera[camera]
        del of_camera[frame]
        if not of_camera:
            del self._by_camera[camera]
        if gone.batch is None:
            self._detected[camera] -= 1
            if not self._detected[camera]:
                del self._detected[camera]
        self._remove_closed()

    def depart(self, camera: CameraId) -> list[JoinedFrame]:
        """Forget the frames of a camera that left, and return them."""
        gone = self._ordered(self._by_camera.get(camera, ()))
        for frame in gone:
            self.close(frame.id)
        return gone

    def of(self, crop: Request) -> JoinedFrame | None:
        """Return the frame of a crop; None: it has ended."""
        return None if crop.frame is None else self.frames.get(crop.frame)

    def _ordered(self, numbers: Iterable[FrameId]) -> list[JoinedFrame]:
        return sorted((self.frames[number] for number in numbers), key=_in_order)

    def _is_open(self, entry: tuple[int, int, FrameId]) -> bool:
        frame = self.frames.get(entry[2])
        return frame is not None and frame.opened == entry[1]

    def _remove_closed(self) -> None:
        """Keep an open frame on top of the heap, and the heap not much larger than the frames."""
        heap = self._deadlines
        while heap and not self._is_open(heap[0]):
            heappop(heap)
        if len(heap) > 2 * len(self.frames) + _SPARE_MAX:
            self._deadlines = [entry for entry in heap if self._is_open(entry)]
            heapify(self._deadlines)
