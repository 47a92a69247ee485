"""Pictures of made-up streets; painting one takes a second of a core, so each is painted once."""

import functools
import threading

import numpy as np
from numpy.typing import NDArray

from edgebox.media.jpeg import encode
from edgebox.media.sources import PictureSource
from edgebox.scene.street_camera import Scene

LOOP_S, STEPS_PER_S = 10, 8
_painting = threading.Lock()
_scene = functools.cache(Scene)


@functools.cache
def street_picture(
    seed: int, width_px: int = 1280, height_px: int = 720, at_s: float = 2.0
) -> NDArray[np.uint8]:
    """Return a picture of this street, (height, width, 3) RGB, which nobody may change."""
    with _painting:  # a scene keeps what it has painted
        rgb = _scene(seed, width_px, height_px).render(at_s).rgb
    rgb.flags.writeable = False
    return rgb


@functools.cache
def street_jpeg(seed: int, width_px: int = 1280, height_px: int = 720, quality: int = 90) -> bytes:
    """Return the same picture as a JPEG."""
    return encode(street_picture(seed, width_px, height_px), quality)


def street_source(
    seed: int, rate_hz: float = 8.0, size_px: tuple[int, int] = (640, 360)
) -> PictureSource:
    """Return a camera's pictures of this street with traffic: ten seconds of it, over and over."""

    def picture(number: int) -> NDArray[np.uint8]:
        step = round(number / rate_hz * STEPS_PER_S) % (LOOP_S * STEPS_PER_S)
        return street_picture(seed, *size_px, step / STEPS_PER_S)

    return PictureSource(size_px, rate_hz, picture)
