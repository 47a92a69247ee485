"""The pictures of streets that edgebox brings are those that the scene paints."""

import numpy as np
import pytest
from numpy.typing import NDArray

from edgebox.media.painted_streets import FOLDER, file_of, painted_street
from tests.media.paint_streets import PAINTED, paint

BLOCK_PX = 16
"""A JPEG keeps the mean of a block within 2; a vehicle at another place puts it 100 off."""


def blocks(picture: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the mean colour of each block of a picture, (rows, columns, 3)."""
    rows, columns = picture.shape[0] // BLOCK_PX, picture.shape[1] // BLOCK_PX
    whole = picture[: rows * BLOCK_PX, : columns * BLOCK_PX]
    by_block = whole.reshape(rows, BLOCK_PX, columns, BLOCK_PX, 3)
    means: NDArray[np.float64] = by_block.mean((1, 3))
    return means


@pytest.mark.parametrize(("seed", "at_s"), PAINTED)
def test_each_is_what_the_scene_paints(seed: int, at_s: float) -> None:
    brought, painted = painted_street(seed, at_s), paint(seed, at_s)
    assert brought.shape == painted.shape
    off = np.abs(blocks(brought) - blocks(painted)).max()
    assert off < 8, "paint them anew: python -m tests.media.paint_streets"


def test_all_are_there_and_no_others() -> None:
    assert sorted(FOLDER.iterdir()) == sorted(file_of(*each) for each in PAINTED)
