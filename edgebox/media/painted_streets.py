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


def painted_street(seed: int, at_s: float) -> NDArray[np.uint8]:
    """Return the picture of a street at a moment, (360, 640, 3) RGB.

    Args:
        seed: chooses the street, as `edgebox.scene.street_camera.Scene` has it.
        at_s: the moment. Only what edgebox uses was painted.
    """
    return decode(file_of(seed, at_s).read_bytes())


def file_of(seed: int, at_s: float) -> Path:
    """Return where a picture is kept, as a JPEG."""
    return FOLDER / f"street-{seed}-{at_s:g}.jpg"
