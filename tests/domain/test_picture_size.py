"""The size at which a picture travels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.picture_size import send_size

sides = st.integers(1, 4000)


def variant(width_px: int, height_px: int) -> Variant:
    return Variant(VariantName("v"), FamilyName("f"), width_px, height_px, 0.5)


@pytest.mark.parametrize(
    ("picture", "canvas", "sent"),
    [
        ((1280, 720), (256, 256), (256, 144)),
        ((720, 1280), (256, 256), (144, 256)),
        ((320, 240), (608, 608), (320, 240)),
        ((640, 640), (640, 384), (384, 384)),
        ((8192, 2), (128, 128), (128, 1)),
    ],
)
def test_examples(picture: tuple[int, int], canvas: tuple[int, int], sent: tuple[int, int]) -> None:
    assert send_size(*picture, variant(*canvas)) == sent


@given(sides, sides, sides, sides)
def test_it_fits_keeps_the_aspect_and_fills_one_side(w: int, h: int, cw: int, ch: int) -> None:
    canvas = variant(cw, ch)
    sent_w, sent_h = send_size(w, h, canvas)
    assert canvas.covers(sent_w, sent_h)
    assert 1 <= sent_w <= w
    assert 1 <= sent_h <= h
    if not canvas.covers(w, h):
        assert sent_w == cw or sent_h == ch
        scale = min(cw / w, ch / h)
        assert abs(sent_w - w * scale) <= 1
        assert abs(sent_h - h * scale) <= 1
