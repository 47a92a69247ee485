"""Pictures of synthetic streets that were painted beforehand, for measuring and checking models.

Painting a street takes a quarter of a second of a core, on small boards a second. `python -m
tests.media.paint_streets` paints them anew.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgebox.media.jpeg import decode

FOLDER = Path(__file__).parent / "streets"
SIZE_PX = (640, 360)
PAINTED = ((0, 10.0), (3, 2.0), (5, 4.0), (8, 2.0), (8, 10.0), (11, 1.0))
"""Seed and moment in seconds of each."""


def painted_street(seed: int, at_s: float) -> NDArray[np.uint8]:
    """Return the picture of a street at a moment, (360, 640, 3) RGB.

    Args:
        seed: chooses the street, as `edgebox.scene.street_camera.Scene` has it.
        at_s: the moment; both together are one of `PAINTED`.
    """
    return decode(file_of(seed, at_s).read_bytes())


def file_of(seed: int, at_s: float) -> Path:
    """Return where a picture is kept, as a JPEG."""
    return FOLDER / f"street-{seed}-{at_s:g}.jpg"
