"""Decides the size at which a camera's picture is sent. Pure arithmetic."""

from edgebox.domain.model_family import Variant


def send_size(width_px: int, height_px: int, variant: Variant) -> tuple[int, int]:
    """Return the size at which a picture best fills a variant's input.

    The aspect ratio is kept, and a picture is never enlarged, because that adds no information.
    Both sides are at least 1 px.
    """
    if variant.covers(width_px, height_px):
        return width_px, height_px
    if width_px * variant.height_px >= height_px * variant.width_px:
        return variant.width_px, max(1, round(height_px * variant.width_px / width_px))
    return max(1, round(width_px * variant.height_px / height_px)), variant.height_px
