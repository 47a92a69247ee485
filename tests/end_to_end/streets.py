"""Pictures of made-up streets; painting one takes a second of a core, so each is painted once."""

import functools

import numpy as np
from numpy.typing import NDArray

from edgebox.media.jpeg import encode
from edgebox.scene.street_camera import Scene


@functools.cache
def street_picture(seed: int, width_px: int = 1280, height_px: int = 720) -> NDArray[np.uint8]:
    """Return a picture of this street, (height, width, 3) RGB, which nobody may change."""
    rgb = Scene(seed, width_px, height_px).render(2.0).rgb
    rgb.flags.writeable = False
    return rgb


@functools.cache
def street_jpeg(seed: int, width_px: int = 1280, height_px: int = 720, quality: int = 90) -> bytes:
    """Return the same picture as a JPEG."""
    return encode(street_picture(seed, width_px, height_px), quality)
