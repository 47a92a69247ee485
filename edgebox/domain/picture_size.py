"""Decides the size at which a camera's picture is sent. Pure arithmetic."""

from dataclasses import replace

from edgebox.domain.model_family import Variant
from edgebox.domain.requests import Camera


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


def camera_send_size(camera: Camera, variant: Variant) -> tuple[int, int]:
    """Return the size at which a camera's pictures are sent for a variant of its first stage.

    The large model of a cascade sees the same picture, so one that is sent for the small model is
    as large as the large one needs.
    """
    cascade = camera.cascade
    if cascade is not None and variant.name == cascade.small:
        width_px, height_px = cascade.large_px
        variant = replace(
            variant,
            width_px=max(width_px, variant.width_px),
            height_px=max(height_px, variant.height_px),
        )
    return send_size(camera.width_px, camera.height_px, variant)
