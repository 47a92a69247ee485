"""Pictures for measuring execution times: varied, like those of cameras.

A model may take longer the more there is to see, in itself or in what decodes its outputs, and
noise shows it nothing. These are synthetic streets, full and quiet ones, by day and at dusk, each
whole, close up (few things, large) and of its upper part (next to nothing).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from edgebox.media.jpeg import Fit, lay_into
from edgebox.media.painted_streets import SIZE_PX, painted_street

STREETS = ((8, (2.0, 10.0)), (0, (10.0,)))
"""Seeds and moments: about fifty things by day, about fifteen at dusk."""


@cache
def typical_pictures() -> tuple[NDArray[np.uint8], ...]:
    """Return a few different pictures, each (height, width, 3) RGB."""
    pictures: list[NDArray[np.uint8]] = []
    for seed, moments in STREETS:
        whole = [painted_street(seed, at_s) for at_s in moments]
        half, middle = SIZE_PX[1] // 2, SIZE_PX[0] // 4
        pictures += [*whole, whole[0][half:, middle:-middle], whole[0][: half // 2]]
    return tuple(pictures)


def typical_canvases(
    width_px: int, height_px: int, fill: int = 114, fit: Fit = "top_left"
) -> list[NDArray[np.uint8]]:
    """Return these pictures as a model sees them, each (height_px, width_px, 3)."""
    canvases = []
    for rgb in typical_pictures():
        canvas = np.empty((height_px, width_px, 3), np.uint8)
        lay_into(rgb, canvas, fill, fit)
        canvases.append(canvas)
    return canvases
