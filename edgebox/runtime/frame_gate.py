"""Holds back what cameras send beyond their advice while the box has other work.

A frame within its camera's budget (`link.receive_budget`) goes to the core at once, and so does any
frame while nothing waits at the box. Of the other frames the newest waits here until its camera's
next token, in place of the one that waited before, which ends as `overload`. So a camera that
ignores its advice takes nothing from those that obey, and what the core decides and decodes stays
within the plan, whatever cameras send. The frame that goes on is always the freshest.

Lives on the event loop.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from edgebox.domain.requests import CameraId, DropReason
from edgebox.link.detected_frames import DetectedFrame
from edgebox.runtime.camera_placement import submit
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.driver import Driver
from edgebox.runtime.frames import DROP_MESSAGES, PendingFrame, Refusal

BEYOND_ADVICE = (
    "its camera sends more often than it was advised to, and the box has other work; of such "
    "frames the newest goes on"
)


@dataclass(slots=True)
class _Held:
    """A frame that waits for its camera's next token."""

    record: CameraRecord
    frame: PendingFrame
    detected: DetectedFrame | None
    timer: asyncio.TimerHandle


class FrameGate:
    """The frames of all cameras that wait outside the core."""

    def __init__(self, driver: Callable[[], Driver]) -> None:
        """Hold nothing; `driver` returns what takes the frames."""
        self._driver = driver
        self._held: dict[CameraId, _Held] = {}

    @property
    def held(self) -> int:
        """How many frames wait here."""
        return len(self._held)

    def submit(
        self, record: CameraRecord, frame: PendingFrame, detected: DetectedFrame | None
    ) -> None:
        """Pass on a frame that has just arrived, or hold it back.

        Args:
            record: its camera.
            frame: the frame.
            detected: its content, if its camera ran its first stage; None: it is a picture.
        """
        driver = self._driver()
        self._refuse(record.camera.id, DropReason.OVERLOAD, BEYOND_ADVICE)
        taken = record.budget.take(driver.clock_ns(), record.camera.last_slo_ns)
        if taken or not driver.scheduler.queue_length:
            submit(frame, detected, record.offer, driver)
            return
        wait_ns = min(record.budget.wait_ns(), frame.request.last_deadline_ns - driver.clock_ns())
        loop = asyncio.get_running_loop()
        timer = loop.call_later(max(0, wait_ns) / 1e9, self._due, record.camera.id)
        self._held[record.camera.id] = _Held(record, frame, detected, timer)

    def departed(self, camera: CameraId) -> None:
        """End the frame of a camera that has left."""
        self._refuse(camera, DropReason.DEPARTED, DROP_MESSAGES[DropReason.DEPARTED])

    def _due(self, camera: CameraId) -> None:
        held = self._held.pop(camera)
        driver = self._driver()
        held.record.budget.take(driver.clock_ns(), held.record.camera.last_slo_ns)
        submit(held.frame, held.detected, held.record.offer, driver)

    def _refuse(self, camera: CameraId, reason: DropReason, why: str) -> None:
        held = self._held.pop(camera, None)
        if held is not None:
            held.timer.cancel()
            held.frame.ended = True
            held.frame.on_end(held.frame, Refusal(reason, why))
