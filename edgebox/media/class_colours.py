"""The colour of each class, the same on the page and in drawn pictures, whatever the model. Pure.

webui/src/live/classColours.ts has the same rule.
"""

PALETTE = (
    *("#ffb43a", "#4cc9f0", "#ff7aa8", "#8ce07a", "#b9a0ff", "#ff9770"),
    *("#e9e36a", "#8fb8ff", "#5fe0c0", "#f59bee", "#c9d46b", "#e8b08a"),
)
"""Bright enough for any picture; text on them is dark."""
_FREQUENT = ("person", "car", "bus", "truck", "motorcycle", "bicycle", "dog", "cat")
"""Classes that are often seen together have colours of their own, in this order."""
_ALIASES = {"motorbike": "motorcycle", "pedestrian": "person"}


def class_colour(label: str) -> str:
    """Return the colour of a class by its name."""
    name = _ALIASES.get(label.lower(), label.lower())
    if name in _FREQUENT:
        return PALETTE[_FREQUENT.index(name)]
    number = 0
    for letter in name:
        number = (number * 31 + ord(letter)) % 2**32
    return PALETTE[number % len(PALETTE)]
