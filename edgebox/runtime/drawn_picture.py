"""Draws what was found on a frame's picture, for people. Blocks; made for a thread."""

from dataclasses import dataclass

from edgebox.media.drawing import draw_boxes
from edgebox.media.jpeg import decode, encode
from edgebox.runtime.frames import Answer, PendingFrame
from edgebox.vision.detections import Detections


@dataclass(frozen=True, slots=True)
class AnsweredPicture:
    """A frame's picture as its camera sent it, and what was found on it."""

    jpeg: bytes
    found: Detections
    """In pixels of the camera's own picture."""
    width_px: int
    height_px: int
    """Size of the camera's own picture."""
    labels: tuple[str, ...]

    @classmethod
    def of(
        cls, frame: PendingFrame, answer: Answer, labels: tuple[str, ...], score_min: float
    ) -> "AnsweredPicture | None":
        """Return a frame's; None: its camera sent boxes and no picture."""
        if not frame.jpeg:
            return None
        return cls(
            bytes(frame.jpeg),
            answer.detections.above(score_min),
            frame.source_width_px,
            frame.source_height_px,
            labels,
        )

    def drawn(self) -> bytes:
        """Return the picture with boxes, labels and scores, as a JPEG.

        Raises:
            InvalidInputError: it cannot be decoded.
        """
        rgb = decode(self.jpeg)
        height_px, width_px = rgb.shape[:2]
        shown = self.found.scaled(
            width_px / self.width_px, height_px / self.height_px, width_px, height_px
        )
        names = [self.labels[number] for number in shown.labels.tolist()]
        texts = [
            f"{name} {score:.0%}" for name, score in zip(names, shown.scores.tolist(), strict=True)
        ]
        return encode(draw_boxes(rgb, shown.boxes, texts, names))
