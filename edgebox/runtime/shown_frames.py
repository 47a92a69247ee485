"""Keeps the latest answered frame of each camera while there are viewers."""

from collections.abc import Mapping
from dataclasses import dataclass

from edgebox.domain.requests import CameraId
from edgebox.runtime.frames import Answer, PendingFrame


@dataclass(slots=True)
class ShownFrame:
    """The latest answered frame of a camera, for viewers."""

    number: int
    """Every frame has a higher one than those before, whatever the camera."""
    frame: PendingFrame
    answer: Answer
    message: bytes | None = None
    """What viewers are sent; it is made for the first of them."""


class ShownFrames:
    """The frames that viewers see, and how many viewers there are."""

    def __init__(self) -> None:
        """Start without viewers."""
        self.viewers = 0
        self._latest: dict[CameraId, ShownFrame] = {}
        self._number = 0

    @property
    def latest(self) -> Mapping[CameraId, ShownFrame]:
        """The latest frame of each camera that was answered since there have been viewers."""
        return self._latest

    def add_viewer(self) -> None:
        """Keep frames from now on."""
        self.viewers += 1

    def remove_viewer(self) -> None:
        """Forget all frames with the last viewer."""
        self.viewers -= 1
        if not self.viewers:
            self._latest.clear()

    def answered(self, frame: PendingFrame, answer: Answer) -> None:
        """Take the frame of a camera in place of the one before, if anybody looks."""
        if self.viewers:
            self._number += 1
            self._latest[frame.request.camera] = ShownFrame(self._number, frame, answer)

    def forget(self, camera: CameraId) -> None:
        """Show nothing of a camera until its next frame."""
        self._latest.pop(camera, None)
