"""The pictures of streets that edgebox brings are those that the scene paints."""

import numpy as np
import pytest

from edgebox.media.painted_streets import FOLDER, PAINTED, file_of, painted_street
from tests.media.paint_streets import paint


@pytest.mark.parametrize(("seed", "at_s"), PAINTED)
def test_each_is_what_the_scene_paints(seed: int, at_s: float) -> None:
    brought, painted = painted_street(seed, at_s), paint(seed, at_s)
    assert brought.shape == painted.shape
    off = np.abs(brought.astype(int) - painted).mean()
    assert off < 6, "paint them anew: python -m tests.media.paint_streets"


def test_all_are_there_and_no_others() -> None:
    assert sorted(FOLDER.iterdir()) == sorted(file_of(*each) for each in PAINTED)
