"""Decides the place of a picture on a model's canvas, and maps boxes back to the source picture.

Pure arithmetic; media/ moves the pixels by the same rule.
"""

from dataclasses import dataclass
from typing import Literal

from edgebox.vision.detections import Detections

Fit = Literal["top_left", "centre", "stretch", "cover"]
"""Aspect ratio kept and the rest grey, at the right and below or all around; canvas filled with any
aspect ratio; aspect ratio kept and the overhang cut off equally on both sides."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The rectangle in canvas px that a picture fills; for "cover" it exceeds the canvas."""

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
        """Scale a picture to fit into a canvas, to fill it, or to cover it.

        Each side is at least 1 px, so a very long and thin picture may lose its aspect.

        Raises:
            ValueError: a side is below 1.
        """
        if min(width_px, height_px, canvas_width_px, canvas_height_px) < 1:
            raise ValueError("sizes must be at least 1 px")
        if fit == "stretch":
            return cls(0, 0, canvas_width_px, canvas_height_px)
        scales = (canvas_width_px / width_px, canvas_height_px / height_px)
        scale = max(scales) if fit == "cover" else min(scales)
        placed_width_px = max(1, round(width_px * scale))
        placed_height_px = max(1, round(height_px * scale))
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
