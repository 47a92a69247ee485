"""Boxes on pictures: where they are drawn, and that the original stays as it was."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from edgebox.domain.errors import InvalidInputError
from edgebox.media.drawing import draw_boxes, save_picture

GREY = np.full((120, 160, 3), 100, np.uint8)
BOXES = np.array([[40.0, 50.0, 90.0, 100.0], [100.0, 0.0, 150.0, 30.0]], np.float32)


def test_boxes_are_drawn_where_they_are() -> None:
    drawn = draw_boxes(GREY, BOXES, ["person 90 %", "car 50 %"], ["person", "car"])
    assert (GREY == 100).all()
    changed = (drawn != GREY).any(axis=2)
    assert changed[50:101, 40].all()
    assert changed[100, 40:91].all()
    assert not changed[52:99, 42:89].any()
    assert not changed[105:, :].any()
    assert tuple(drawn[100, 60]) != tuple(drawn[30, 120])


def test_nothing_found_changes_nothing() -> None:
    empty = np.zeros((0, 4), np.float32)
    assert (draw_boxes(GREY, empty, [], []) == GREY).all()


def test_pictures_are_written_as_their_names_say(tmp_path: Path) -> None:
    save_picture(GREY, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert (np.asarray(picture) == GREY).all()
    for name in ("a.nothing", "nowhere/a.png"):
        with pytest.raises(InvalidInputError, match="cannot be written"):
            save_picture(GREY, tmp_path / name)
