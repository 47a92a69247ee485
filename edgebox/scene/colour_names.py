"""The names that people give to the colours of paint.

Pure. The names are the basic colour terms of English (Berlin and Kay 1969) without pink, which no
paint of the street has, and with beige, which people say of cars.
"""

from __future__ import annotations

from colorsys import rgb_to_hsv

from edgebox.scene.optics import Colour

COLOUR_NAMES = (
    "white", "grey", "black", "red", "orange", "yellow", "green", "blue", "purple", "brown",
    "beige",
)  # fmt: skip

_PALE = 0.18  # saturation below which a colour has no hue to speak of
_BLACK_BELOW, _WHITE_FROM = 0.26, 0.82  # value, 0..1, of what is pale
_MUTED = 0.6  # saturation below which what is between red and yellow is brown or beige
_BEIGE_FROM = 0.6  # value
_HUES = ((15, "red"), (42, "orange"), (70, "yellow"), (175, "green"), (260, "blue"),
         (330, "purple"), (360, "red"))  # fmt: skip
"""Hues, degrees, below which each name holds."""


def colour_name(paint: Colour) -> str:
    """Return the name of a paint as it is in plain daylight; one of COLOUR_NAMES.

    Silver is grey, dark red is red, and amber is orange.
    """
    red, green, blue = (level / 255 for level in paint)
    hue, saturation, value = rgb_to_hsv(red, green, blue)
    if saturation < _PALE:
        if value < _BLACK_BELOW:
            return "black"
        return "white" if value >= _WHITE_FROM else "grey"
    degrees = 360 * hue
    if 15 <= degrees < 50 and saturation < _MUTED:
        return "beige" if value >= _BEIGE_FROM else "brown"
    return next(name for below, name in _HUES if degrees < below or below == 360)
