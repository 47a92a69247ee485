"""Turns what Pillow has read into RGB."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from edgebox.domain.errors import InvalidInputError

_GREY_16 = ("I;16", "I;16B", "I;16L", "I;16N")
_WITHOUT_RANGE = {"I": "whole numbers of 32 bits", "F": "floating-point numbers"}


def rgb_of(image: Image.Image) -> NDArray[np.uint8]:
    """Return a picture as (height, width, 3) RGB; what is transparent is not.

    Of 16 bits the upper 8 count, in grey as in colour: Pillow by itself takes grey above 255, most
    of what a thermal camera sends, for white.

    Raises:
        InvalidInputError: its samples have no range that black and white are the ends of.
    """
    if image.mode in _WITHOUT_RANGE:
        raise InvalidInputError(
            f"its pixels are {_WITHOUT_RANGE[image.mode]}, of which nobody knows what is white: "
            "convert it to 8 or 16 bits"
        )
    if image.mode in _GREY_16:
        grey = (np.asarray(image) >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    return np.asarray(image.convert("RGB"), dtype=np.uint8)
