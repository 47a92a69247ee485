"""Decides where a picture lies on a model's canvas, and takes boxes back to the source picture.

Pure arithmetic; media/ moves the pixels by the same rule.
"""

from dataclasses import dataclass
from typing import Literal

from edgebox.vision.detections import Detections

Fit = Literal["top_left", "centre"]


@dataclass(frozen=True, slots=True)
class Placement:
    """The rectangle of a canvas, in canvas px, that a picture fills; the rest is grey."""

    left_px: int
    top_px: int
    width_px: int
    height_px: int

    @classmethod
    def on_canvas(
        cls,
        width_px: int,
        height_px: int,
        canvas_width_px: int,
        canvas_height_px: int,
        fit: Fit = "top_left",
    ) -> "Placement":
        """Scale a picture to touch two sides of a canvas, its aspect kept.

        Each side is at least 1 px, so a very long and thin picture may lose its aspect.

        Raises:
            ValueError: a side is below 1.
        """
        if min(width_px, height_px, canvas_width_px, canvas_height_px) < 1:
            raise ValueError("sizes must be at least 1 px")
        scale = min(canvas_width_px / width_px, canvas_height_px / height_px)
        placed_width_px = max(1, min(canvas_width_px, round(width_px * scale)))
        placed_height_px = max(1, min(canvas_height_px, round(height_px * scale)))
        if fit == "top_left":
            return cls(0, 0, placed_width_px, placed_height_px)
        return cls(
            (canvas_width_px - placed_width_px) // 2,
            (canvas_height_px - placed_height_px) // 2,
            placed_width_px,
            placed_height_px,
        )

    def to_source(
        self, found: Detections, source_width_px: int, source_height_px: int
    ) -> Detections:
        """Map boxes from canvas px to px of the source picture, clipped to it.

        Args:
            found: boxes in canvas px.
            source_width_px: width of the camera's own picture, whatever was sent of it.
            source_height_px: height of it.
        """
        return found.moved(-self.left_px, -self.top_px).scaled(
            source_width_px / self.width_px,
            source_height_px / self.height_px,
            source_width_px,
            source_height_px,
        )
