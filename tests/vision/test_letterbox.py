"""Placement arithmetic: agrees with the decoder that moves the pixels, and leads back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.media.jpeg import decode_into, encode
from edgebox.vision.detections import Detections
from edgebox.vision.letterbox import Fit, Placement

sides = st.integers(1, 3000)
fits = st.sampled_from(["top_left", "centre"])


@given(sides, sides, sides, sides, fits)
def test_a_placed_picture_fits_touches_two_sides_and_keeps_its_aspect(
    width: int, height: int, canvas_width: int, canvas_height: int, fit: Fit
) -> None:
    placed = Placement.on_canvas(width, height, canvas_width, canvas_height, fit)
    assert placed.left_px >= 0
    assert placed.top_px >= 0
    assert placed.left_px + placed.width_px <= canvas_width
    assert placed.top_px + placed.height_px <= canvas_height
    assert placed.width_px == canvas_width or placed.height_px == canvas_height
    # Each side is within half a pixel of the exact one, or 1 px.
    scale = min(canvas_width / width, canvas_height / height)
    assert abs(placed.width_px - max(1, width * scale)) <= 0.5 + 1e-9
    assert abs(placed.height_px - max(1, height * scale)) <= 0.5 + 1e-9


@given(st.integers(4, 3000), st.integers(4, 3000), st.integers(32, 640), st.integers(32, 640), fits)
def test_a_box_drawn_on_the_canvas_comes_back_to_the_source(
    width: int, height: int, canvas_width: int, canvas_height: int, fit: Fit
) -> None:
    placed = Placement.on_canvas(width, height, canvas_width, canvas_height, fit)
    source = np.array([width * 0.25, height * 0.25, width * 0.75, height * 0.5])
    x, y = placed.width_px / width, placed.height_px / height
    offset = np.array([placed.left_px, placed.top_px] * 2)
    canvas_box = (source * np.array([x, y, x, y]) + offset).astype(np.float32)
    found = Detections(canvas_box[None], np.ones(1, np.float32), np.zeros(1, np.int64))
    back = placed.to_source(found, width, height)
    assert back.boxes[0] == pytest.approx(source, rel=1e-3, abs=width * 1e-3)


def test_boxes_on_the_fill_alone_vanish() -> None:
    placed = Placement.on_canvas(200, 100, 100, 100)
    on_fill = Detections(
        np.array([[10, 60, 40, 90]], np.float32), np.ones(1, np.float32), np.zeros(1, np.int64)
    )
    assert len(placed.to_source(on_fill, 200, 100)) == 0


@pytest.mark.parametrize("fit", ["top_left", "centre", "stretch", "cover"])
@pytest.mark.parametrize("size", [(64, 36), (30, 90), (33, 33), (200, 150), (500, 7)])
def test_the_decoder_puts_the_pixels_where_the_arithmetic_says(
    size: tuple[int, int], fit: Fit
) -> None:
    white = np.full((size[1], size[0], 3), 255, np.uint8)
    canvas = np.zeros((64, 96, 3), np.uint8)
    decode_into(encode(white), canvas, fill=0, fit=fit)
    placed = Placement.on_canvas(*size, 96, 64, fit)
    rows, columns = np.nonzero(canvas[:, :, 0] > 200)
    covered = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert covered == (
        max(0, placed.left_px),
        max(0, placed.top_px),
        min(96, placed.left_px + placed.width_px),
        min(64, placed.top_px + placed.height_px),
    )


@pytest.mark.parametrize("fit", ["stretch", "cover"])
@pytest.mark.parametrize("size", [(64, 36), (30, 90), (500, 7)])
def test_boxes_come_back_from_a_canvas_that_is_filled(size: tuple[int, int], fit: Fit) -> None:
    width, height = size
    placed = Placement.on_canvas(width, height, 96, 64, fit)
    middle = np.array([[47.0, 31.0, 49.0, 33.0]], np.float32)
    found = Detections(middle, np.ones(1, np.float32), np.zeros(1, np.int64))
    x1, y1, x2, y2 = placed.to_source(found, width, height).boxes[0]
    assert (x1 + x2) / 2 == pytest.approx(width / 2, abs=0.02 * width)
    assert (y1 + y2) / 2 == pytest.approx(height / 2, abs=0.02 * height)
    assert x2 - x1 == pytest.approx(2 * width / placed.width_px, rel=1e-3)


def test_a_picture_without_a_side_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 px"):
        Placement.on_canvas(0, 10, 32, 32)
