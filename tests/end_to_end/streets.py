"""Pictures of made-up streets; painting one takes a second of a core, so each is painted once."""

import functools
import threading

import numpy as np
from numpy.typing import NDArray

from edgebox.media.jpeg import encode
from edgebox.media.sources import PictureSource
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


LOOP_S, STEPS_PER_S = 10, 8
_painting = threading.Lock()


def street_source(
    seed: int, rate_hz: float = 8.0, size_px: tuple[int, int] = (640, 360)
) -> PictureSource:
    """Return a camera's pictures of this street with traffic: ten seconds of it, over and over."""

    def picture(number: int) -> NDArray[np.uint8]:
        with _painting:
            return _moment(
                seed, *size_px, round(number / rate_hz * STEPS_PER_S) % (LOOP_S * STEPS_PER_S)
            )

    return PictureSource(size_px, rate_hz, picture)


_scene = functools.cache(Scene)


@functools.cache
def _moment(seed: int, width_px: int, height_px: int, step: int) -> NDArray[np.uint8]:
    rgb = _scene(seed, width_px, height_px).render(step / STEPS_PER_S).rgb
    rgb.flags.writeable = False
    return rgb
