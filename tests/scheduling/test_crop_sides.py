"""How large a camera's objects are, learned from crops as they were cut."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.requests import CameraId
from edgebox.scheduling.crop_sides import QUANTILES, SIDES_MIN, WINDOW, CropSides
from tests.scheduling.pipelines import CHAIN, READ, crops
from tests.scheduling.scene import request

STAGE = CHAIN.stages[1]
FRAME = replace(request(1, 300), width_px=640, height_px=360)
CAMERA = FRAME.camera


def observed(*sides_px: int) -> CropSides:
    """Return what is known after square objects of these sides."""
    found = CropSides()
    (crop,) = crops(FRAME, READ, [2], 0)
    for side_px in sides_px:
        cut_px = round(side_px * (1 + 2 * STAGE.margin))
        found.observe(FRAME, replace(crop, width_px=cut_px, height_px=cut_px), STAGE)
    return found


@given(st.lists(st.integers(10, 300), min_size=SIDES_MIN, max_size=WINDOW + 40))
def test_quantiles_are_those_of_the_last_objects_as_a_share_of_the_picture(
    sides_px: list[int],
) -> None:
    known = observed(*sides_px).quantiles(CAMERA, READ)
    picture_px = math.sqrt(640 * 360)
    recent = sorted(min(1.0, side / picture_px) for side in sides_px[-WINDOW:])
    assert len(known) == QUANTILES
    assert list(known) == sorted(known)
    for at, side in enumerate(known):
        middle = recent[int((at + 0.5) / QUANTILES * len(recent))]
        assert side == pytest.approx(middle, abs=1 / picture_px)  # a crop has whole pixels


def test_few_objects_say_nothing_and_a_forgotten_camera_has_none() -> None:
    few = observed(*[40] * (SIDES_MIN - 1))
    assert few.quantiles(CAMERA, READ) == ()
    known = observed(*[40] * SIDES_MIN)
    assert known.quantiles(CAMERA, READ)
    assert known.quantiles(CameraId("other"), READ) == ()
    known.forget(CAMERA)
    assert known.quantiles(CAMERA, READ) == ()
