"""Frames in the runtime, from arrival to result. The core knows them by number only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.notifications import Notification
from edgebox.domain.requests import CameraId, DropReason, Outcome, Request
from edgebox.inference.executor_thread import BatchResult
from edgebox.link.messages import FrameHeader
from edgebox.link.receipts import MessageReceipt
from edgebox.link.transit import FrameArrival
from edgebox.scheduling.events import Infer
from edgebox.vision.detections import Detections
from edgebox.vision.letterbox import Placement

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
class FrameAnalysis:
    """What tracking found out with a frame, of a camera that is tracked."""

    zones: Mapping[str, Mapping[str, int]]
    """Objects in each zone, by class."""
    lines: Mapping[str, Mapping[str, Mapping[str, int]]]
    """Crossings of each line since the camera connected, by direction and class."""
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
    analysis: FrameAnalysis | None = None
    """None: its camera is not tracked."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A dropped frame; `message` tells its camera the reason."""

    reason: DropReason
    message: str


FrameResult = Answer | Refusal


@dataclass(slots=True)
class PendingFrame:
    """A frame from its arrival to its result. Lives on the event loop.

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
    number: int = 0
    """Number that the camera gave it."""
    family: FamilyName | None = None
    """Family that its camera requested; None: the request names a variant."""
    rgb: NDArray[np.uint8] | None = None  #: (h, w, 3); in place of a JPEG
    canvas: NDArray[np.uint8] | None = None  #: (h, w, 3) RGB, the variant's input
    canvas_of: VariantName | None = None
    placement: Placement | None = None
    invalid_because: str = ""
    preparing: bool = False
    batched: bool = False
    """Whether an executor has received it."""
    ended: bool = False

    def answer(self, order: Infer, result: BatchResult, outcome: Outcome, now_ns: int) -> Answer:
        """Return the answer from its batch's result."""
        request = self.request
        detections = result.detections[order.requests.index(request.id)]
        if self.placement is not None:
            detections = self.placement.to_source(
                detections, self.source_width_px, self.source_height_px
            )
        return Answer(
            outcome,
            order.variant,
            detections,
            Timing.of(self, result, len(order.requests), now_ns),
            request.utility_at(now_ns),
            mismatched=request.advised is not None and request.advised != order.variant,
        )


BATCH_FAILED = "the model failed on this batch; the box's log says why"
DROP_MESSAGES = {
    DropReason.SENDER: "never sent",
    DropReason.QUEUE: "waiting behind other work, it could no longer be answered by its deadline",
    DropReason.INFEASIBLE: "on arrival there was too little time left before its deadline",
    DropReason.INVALID: "not a picture this box can decode",
    DropReason.OVERLOAD: "too many frames are waiting at the box; the newest ones win",
    DropReason.FAILED: "the model failed on its batch, or no executor that runs it was up",
    DropReason.DEPARTED: "its camera left before the answer",
    DropReason.SHUTDOWN: "the box is stopping",
}
