"""Paints the pictures of streets that edgebox brings, anew: python -m tests.media.paint_streets."""

import numpy as np
from numpy.typing import NDArray

from edgebox.inference.importing import importer
from edgebox.media import typical
from edgebox.media.jpeg import encode
from edgebox.media.painted_streets import SIZE_PX, file_of
from edgebox.scene.street_camera import Scene

PAINTED = (
    *((seed, at_s) for seed, moments in typical.STREETS for at_s in moments),
    *importer.STREETS,
)
"""Seed and moment in seconds of each street that edgebox uses."""


def paint(seed: int, at_s: float) -> NDArray[np.uint8]:
    """Return a picture as the scene has it now."""
    return Scene(seed, *SIZE_PX).render(at_s).rgb


if __name__ == "__main__":
    for each in PAINTED:
        file_of(*each).write_bytes(encode(paint(*each), quality=90))
