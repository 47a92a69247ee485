"""Frames in the runtime, from arrival to result. The core knows them by number only."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.cascades import CascadeOutcome
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.notifications import Notification
from edgebox.domain.pipelines import Pipeline, PipelineStage, StageName
from edgebox.domain.requests import (
    CameraId,
    DropReason,
    Outcome,
    Request,
    RequestId,
    StagePlacement,
)
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.features import Features
from edgebox.link.detected_frames import DetectedFrame
from edgebox.link.messages import FrameHeader
from edgebox.link.receipts import MessageReceipt
from edgebox.link.transit import FrameArrival
from edgebox.runtime.peers import network_of
from edgebox.scheduling.actions import Infer
from edgebox.vision.detections import Detections
from edgebox.vision.letterbox import Placement

BEYOND_ADVICE = (
    "its camera sends more often than it was advised to; send no more often than the advice says"
)
ONE_SHOT_APP = "http"
"""The application of a picture whose sender names none."""

ONE_SHOT_CAMERA = CameraId("(one-shot)")
"""The camera id of pictures that programs send singly. Names of cameras have no parentheses
(`NAME_PATTERN`), so no camera that disconnects can drop these requests."""


@dataclass(frozen=True, slots=True)
class ArrivedFrame:
    """A frame as it arrived from a camera, complete."""

    header: FrameHeader
    jpeg: bytes | memoryview
    size_bytes: int
    """Size of the whole message."""
    picture_px: tuple[int, int] | None
    """(width, height) in the JPEG's header, None when it is no JPEG."""
    invalid_because: str = ""
    """Why it is invalid; an invalid frame is dropped at once. Empty: it is valid."""
    receipt: MessageReceipt | None = None
    """When its bytes arrived; None: unknown."""
    detected: DetectedFrame | None = None
    """What its camera found on it, in place of a picture; None: it is a picture."""
    cut: bool = False
    """Whether only its header was read, because its camera sends beyond its advice."""

    @property
    def refusal(self) -> "Refusal | None":
        """Why it is dropped at once; None: it is not."""
        if self.cut:
            return Refusal(DropReason.OVERLOAD, BEYOND_ADVICE)
        if self.invalid_because:
            return Refusal(DropReason.INVALID, self.invalid_because)
        return None

    def arrival(self, now_ns: int) -> FrameArrival:
        """Return its arrival at this instant."""
        receipt = self.receipt
        if receipt is None:
            return FrameArrival.at_once(self.size_bytes, now_ns)
        return FrameArrival(
            self.size_bytes, now_ns, receipt.first_ns, receipt.first_bytes, receipt.last_ns
        )


@dataclass(frozen=True, slots=True)
class Timing:
    """Latency of one answered frame by part. `total_ns` includes the estimated return."""

    network_ns: int
    queue_ns: int
    inference_ns: int
    """Execution time of its batch; with crops, from its start to the answer."""
    return_ns: int
    total_ns: int
    batch_size: int

    @classmethod
    def of(
        cls, frame: "PendingFrame", result: BatchResult, batch_size: int, now_ns: int
    ) -> "Timing":
        """Return the timing of a frame whose answer is sent now."""
        request = frame.request
        return cls(
            network_ns=max(0, request.arrival_ns - request.captured_ns),
            queue_ns=max(0, result.started_ns - request.arrival_ns),
            inference_ns=result.took_ns,
            return_ns=frame.return_ns,
            total_ns=max(0, now_ns - request.captured_ns) + frame.return_ns,
            batch_size=batch_size,
        )


@dataclass(frozen=True, slots=True)
class StageAnswer:
    """What a later stage of the pipeline says about one object. Boxes are in pixels of the
    camera's own picture."""

    stage: StageName
    object: int
    """The object's row in the detections of the answer that this one belongs to."""
    variant: VariantName
    detections: Detections
    stages: tuple["StageAnswer", ...] = ()
    """What the stages after it say about its own objects."""
    remembered: bool = False
    """Whether it was said of the same object in an earlier picture."""


@dataclass(frozen=True, slots=True)
class FrameAnalysis:
    """What tracking found out with a frame, of a camera that is tracked."""

    zones: Mapping[str, Mapping[str, int]]
    """Objects in each zone, by class."""
    lines: Mapping[str, Mapping[str, Mapping[str, int]]]
    """Crossings of each line since the camera connected, by direction and class."""
    crossed: Mapping[tuple[str, str], int]
    """Crossings with this frame, by line and direction (`in`, `out`); none where not listed."""
    events: tuple[Notification, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A frame that was answered. Detections are in pixels of the camera's own picture."""

    outcome: Outcome
    variant: VariantName
    detections: Detections
    timing: Timing
    utility: float
    """Utility: 1 on time, less by a later deadline of the camera, else 0."""
    mismatched: bool = False
    """Whether it ran on another variant than the one its camera was advised to use."""
    stages: tuple[StageAnswer, ...] = ()
    """What the later stages of the pipeline say about the objects."""
    missing: tuple[StageName, ...] = ()
    """The stages that some object was not answered by in time: the answer is partial."""
    analysis: FrameAnalysis | None = None
    """None: its camera is not tracked."""
    placement: StagePlacement = StagePlacement.BOX
    """Where the first stage ran."""
    cascade: CascadeOutcome | None = None
    """Whose objects it has; None: there is no cascade, or the frame ran on a smaller variant than
    the cascade's small model."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A dropped frame; `message` tells its camera the reason."""

    reason: DropReason
    message: str


FrameResult = Answer | Refusal


class ObjectTracker(Protocol):
    """Follows the objects of one camera from picture to picture."""

    def detected(self, frame: "PendingFrame", found: Detections) -> Detections:
        """Return what the first stage found, with ids; called before crops are cut."""
        ...

    def wanted(
        self, frame: "PendingFrame", stage: PipelineStage, found: Detections
    ) -> NDArray[np.bool_] | None:
        """Return (n,) whether a stage is to be given each object; None: all."""
        ...

    def taken(
        self, frame: "PendingFrame", stage: PipelineStage, found: Detections, rows: Sequence[int]
    ) -> None:
        """Note the objects, by row, that a stage is given."""
        ...


@dataclass(slots=True)
class PendingFrame:
    """A frame, or a crop of one, from its arrival to its result. Lives on the event loop.

    The decoding thread writes `canvas` and `placement` before it reports back. It reads `ended` to
    skip frames that were dropped meanwhile.
    """

    request: Request
    jpeg: bytes | memoryview
    source_width_px: int
    source_height_px: int
    return_ns: int
    """Estimated return time: half the least round trip, 0 when unknown."""
    on_end: Callable[["PendingFrame", FrameResult], None]
    _: KW_ONLY
    number: int = 0
    """Number that the camera gave it."""
    family: FamilyName | None = None
    """Family that its camera requested; None: the request names a variant."""
    rgb: NDArray[np.uint8] | None = None  #: (h, w, 3); in place of a JPEG
    address: str | None = None
    """Who sent this picture of a program: a network address, or a connection; None: a camera."""
    canvas: NDArray[np.uint8] | None = None  #: (h, w, 3) RGB, the variant's input
    canvas_of: VariantName | None = None
    placement: Placement | None = None
    features: Features = ()
    """What its batch left for the second part of its network, in the request of that part; empty:
    none, or they are not needed any more."""
    invalid_because: str = ""
    failed_because: str = ""
    """Why its batch had no answer to it, where that was neither the picture nor too much to do."""
    preparing: bool = False
    batched: bool = False
    """Whether an executor has received it."""
    ended: bool = False
    pipeline: Pipeline | None = None
    """The pipeline of its camera; None: it has none."""
    tracker: ObjectTracker | None = None
    """Tracks the objects of its camera; None: nothing does."""
    picture: NDArray[np.uint8] | None = None  #: (h, w, 3), as sent; only with a pipeline
    parent: "PendingFrame | None" = None
    """The frame or crop that this crop was cut from; None: it is a frame."""
    row: int = 0
    """The object that a crop shows: its row in its parent's detections."""
    origin_px: tuple[int, int] = (0, 0)
    """Left and top of a crop in the picture as sent."""
    area_px: tuple[int, int] | None = None
    """Width and height in the camera's own picture of a crop that its camera cut; None: the box cut
    it, pixel by pixel."""
    crops: list["PendingFrame"] = field(default_factory=list)
    """What was cut from it."""
    crops_of_stages: Counter[StageName] = field(default_factory=Counter)
    """How many crops of this frame each stage was given; empty: it is a crop."""
    found: Detections | None = None
    """What its batch found, in px of the camera's own picture; None: not known yet."""
    refused: DropReason | None = None
    """Why it was dropped; None: it was not, or its batch still runs."""
    cascade: CascadeOutcome | None = None
    """The decision of this frame's cascade; None: there is none, or it is a crop."""
    cascade_features: NDArray[np.float64] | None = None
    """(d,) what its cascade decided by."""
    cascade_sampled: bool = False
    """Whether it was sent on as a sample only."""
    collected: Answer | None = None
    """Its own answer, while its crops are on their way; a crop's, until its frame ends."""

    @property
    def root(self) -> "PendingFrame":
        """The frame that it is a crop of, or itself."""
        return self if self.parent is None else self.parent.root

    @property
    def is_one_shot(self) -> bool:
        """Whether a program sent it singly."""
        return self.request.camera == ONE_SHOT_CAMERA

    @property
    def sender(self) -> Hashable:
        """Whose share of the decoding threads it takes: its camera's, or its address's."""
        root = self.root
        if root.address is None:
            return root.request.camera
        return "address", network_of(root.address)

    @property
    def is_encoded(self) -> bool:
        """Whether there is a JPEG of exactly what its batch is to see."""
        return self.parent is None and self.rgb is None and len(self.jpeg) > 0

    @property
    def stages_after(self) -> tuple[PipelineStage, ...]:
        """The stages that take crops of it."""
        if self.pipeline is None:
            return ()
        return self.pipeline.next_stages(self.request.stage or self.pipeline.first.name)

    def let_go_of_canvas(self) -> tuple[NDArray[np.uint8] | None, bool]:
        """Return its canvas, which it has no more, and whether others may have it.

        Pixels that run as they were sent stay their sender's.
        """
        canvas = self.canvas
        self.canvas = self.canvas_of = None
        return canvas, canvas is not self.rgb

    def forget_crops(self) -> None:
        """Free the pixels of its crops. Crops refer to it too, and circles are collected rarely."""
        for crop in self.crops:
            crop.rgb, crop.features = None, ()
            crop.forget_crops()
        self.crops.clear()

    def detections(self, order: Infer, result: BatchResult) -> Detections:
        """Return what its batch found, in px of the camera's own picture."""
        if self.found is None:
            found = result.detections[order.requests.index(self.request.id)]
            self.found = self._in_source(found)
        return self.found

    def _in_source(self, found: Detections) -> Detections:
        if self.placement is None:
            return found
        if self.parent is None:
            return self.placement.to_source(found, self.source_width_px, self.source_height_px)
        root = self.root
        request, sent = self.request, root.request
        x, y = root.source_width_px / sent.width_px, root.source_height_px / sent.height_px
        if self.area_px is None:
            in_crop = self.placement.to_source(found, request.width_px, request.height_px)
        else:
            in_crop = self.placement.to_source(found, *self.area_px)
        return in_crop.moved(*self.origin_px).scaled(
            x, y, root.source_width_px, root.source_height_px
        )

    def answer(self, order: Infer, result: BatchResult, outcome: Outcome, now_ns: int) -> Answer:
        """Return the answer from its batch's result."""
        request = self.request
        return Answer(
            outcome,
            order.variant,
            self.detections(order, result),
            Timing.of(self, result, len(order.requests), now_ns),
            request.utility_at(now_ns),
            mismatched=request.advised is not None and request.advised != order.variant,
            cascade=self.cascade,
        )

    def joined(
        self, own: Answer, outcome: Outcome, missing: tuple[StageName, ...], now_ns: int
    ) -> Answer:
        """Return the answer of a frame with those of its crops.

        Args:
            own: that of its first stage.
            outcome: of the whole frame.
            missing: stages that some crop was not answered by.
            now_ns: the instant at which it is sent.
        """
        own, found_by, missing = refined(self, own, missing)
        request, timing = self.request, own.timing
        began_ns = request.arrival_ns + timing.queue_ns
        if own.placement is StagePlacement.CAMERA:
            began_ns -= timing.inference_ns
        return replace(
            own,
            outcome=outcome,
            timing=replace(
                timing,
                inference_ns=max(0, now_ns - began_ns),
                total_ns=max(0, now_ns - request.captured_ns) + self.return_ns,
            ),
            utility=request.utility_at(now_ns),
            stages=_stage_answers(found_by),
            missing=missing,
        )


def refined(
    frame: PendingFrame, own: Answer, missing: tuple[StageName, ...]
) -> tuple[Answer, PendingFrame, tuple[StageName, ...]]:
    """Return a frame's answer with the objects of its cascade's large model, if that ran in time.

    Also return the request whose crops are of the answer's objects, and the stages that are
    missing: never the cascade's, without which an answer is whole, too.
    """
    stage = None if frame.pipeline is None else frame.pipeline.cascade_stage
    if stage is None:
        return own, frame, missing
    missing = tuple(name for name in missing if name != stage.name)
    for crop in frame.crops:
        if crop.request.stage == stage.name and crop.collected is not None:
            of_large = crop.collected
            own = replace(
                own,
                variant=of_large.variant,
                detections=of_large.detections,
                cascade=CascadeOutcome.SENT_ON,
            )
            return own, crop, missing
    return own, frame, missing


def note_refusal(frame: PendingFrame, ending: FrameResult) -> None:
    """Note why a frame or crop was dropped, for the counts."""
    if isinstance(ending, Refusal):
        frame.refused = ending.reason


def one_shot_request(
    request: RequestId,
    picture: bytes | memoryview | NDArray[np.uint8],
    picture_px: tuple[int, int],
    variant: VariantName,
    *,
    app: str,
    now_ns: int,
    deadline_ms: float,
    pipeline: Pipeline | None = None,
) -> Request:
    """Return the request of a picture of `picture_px` (width, height) that a program sent."""
    width_px, height_px = picture_px
    return Request(
        id=request,
        camera=ONE_SHOT_CAMERA,
        app=app,
        captured_ns=now_ns,
        arrival_ns=now_ns,
        deadline_ns=now_ns + round(deadline_ms * 1e6),
        width_px=width_px,
        height_px=height_px,
        size_bytes=picture.nbytes if isinstance(picture, np.ndarray) else len(picture),
        variant=variant,
        pipeline=pipeline,
    )


def one_shot_frame(
    request: Request,
    picture: bytes | memoryview | NDArray[np.uint8],
    on_end: Callable[[PendingFrame, FrameResult], None],
    address: str | None = None,
) -> PendingFrame:
    """Return the frame of a program's JPEG or (h, w, 3) RGB picture; `address` is the program's."""
    jpeg, rgb = (b"", picture) if isinstance(picture, np.ndarray) else (picture, None)
    return PendingFrame(
        request,
        jpeg,
        request.width_px,
        request.height_px,
        0,
        on_end,
        address=address,
        rgb=rgb,
        pipeline=request.pipeline,
    )


def _stage_answers(frame: PendingFrame) -> tuple[StageAnswer, ...]:
    return tuple(
        StageAnswer(
            crop.request.stage,
            crop.row,
            crop.collected.variant,
            crop.collected.detections,
            _stage_answers(crop),
        )
        for crop in frame.crops
        if crop.collected is not None and crop.request.stage is not None
    )


BATCH_FAILED = "the model failed on this batch; the box's log says why"
DROP_MESSAGES = {
    DropReason.SENDER: "not sent: a newer one came first, or its camera's link was too slow",
    DropReason.PLAN: "not sent, because the box asks for fewer frames than the camera captures",
    DropReason.QUEUE: "waiting behind other work, it could no longer be answered by its deadline",
    DropReason.INFEASIBLE: "on arrival there was too little time left before its deadline",
    DropReason.INVALID: "not a picture this box can decode",
    DropReason.OVERLOAD: (
        "more frames are at the box than it can answer in time, or a server that it asks "
        "has too much to do"
    ),
    DropReason.FAILED: "the model failed on its batch, or no executor that runs it was up",
    DropReason.DEPARTED: "its camera left before the answer",
    DropReason.SHUTDOWN: "the box is stopping",
}
