"""Decides where a picture sits on a model's canvas, and takes boxes back to the source picture.

Pure arithmetic; media/ moves the pixels. A picture is placed at the canvas's top left corner and
only ever shrunk: a model finds nothing in enlarged pixels that were not there before.
"""

from dataclasses import dataclass

from edgebox.vision.detections import Detections


def fit_within(
    width_px: int, height_px: int, max_width_px: int, max_height_px: int
) -> tuple[int, int]:
    """Return the largest size of the same aspect inside the limits, never above the picture's.

    Each side is at least 1 px, so a very long and thin picture may lose its aspect.

    Raises:
        ValueError: a side is below 1.
    """
    if min(width_px, height_px, max_width_px, max_height_px) < 1:
        raise ValueError("sizes must be at least 1 px")
    # The tighter side is met exactly; comparing products keeps the choice free of rounding.
    if width_px <= max_width_px and height_px <= max_height_px:
        return width_px, height_px
    if width_px * max_height_px >= height_px * max_width_px:
        return max_width_px, max(1, round(height_px * max_width_px / width_px))
    return max(1, round(width_px * max_height_px / height_px)), max_height_px


@dataclass(frozen=True, slots=True)
class Placement:
    """A picture of `width_px` x `height_px` at the top left of a canvas, the rest filled."""

    width_px: int
    height_px: int

    @classmethod
    def on_canvas(
        cls, width_px: int, height_px: int, canvas_width_px: int, canvas_height_px: int
    ) -> "Placement":
        """Place a picture on a canvas, shrunk if it is larger."""
        return cls(*fit_within(width_px, height_px, canvas_width_px, canvas_height_px))

    def to_source(
        self, found: Detections, source_width_px: int, source_height_px: int
    ) -> Detections:
        """Map boxes from canvas px to px of the source picture; clip them to it.

        Args:
            found: boxes in canvas px.
            source_width_px: width of the picture that was placed, before any resizing (the
                camera's own picture, whatever was sent).
            source_height_px: height of it.
        """
        return found.scaled(
            source_width_px / self.width_px,
            source_height_px / self.height_px,
            source_width_px,
            source_height_px,
        )
