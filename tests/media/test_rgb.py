"""Pictures of any depth become RGB of 8 bits with the brightness that they have."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from edgebox_client.pictures import as_jpeg
from numpy.typing import NDArray
from PIL import Image

from edgebox.domain.errors import InvalidInputError
from edgebox.media.jpeg import decode
from edgebox.media.png import decode_png
from edgebox.media.rgb import rgb_of
from edgebox.media.sources import decode_picture

RAMP = np.linspace(0, 65_535, 64 * 64).astype(np.uint16).reshape(64, 64)
"""From black to white in 16 bits."""
WANTED = np.repeat((RAMP >> 8).astype(np.uint8)[:, :, None], 3, axis=2)


def written(image: Image.Image, kind: str) -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    "read",
    [
        lambda image: decode_png(written(image, "PNG")),
        lambda image: decode_picture(written(image, "PNG")),
        lambda image: decode_picture(written(image, "TIFF")),
        rgb_of,
    ],
    ids=["png", "file", "tiff", "image"],
)
def test_grey_of_16_bits_keeps_its_shades(read: Callable[[Image.Image], NDArray[Any]]) -> None:
    assert np.array_equal(read(Image.fromarray(RAMP)), WANTED)


def test_the_client_sends_what_the_picture_shows() -> None:
    for given in (Image.fromarray(RAMP), written(Image.fromarray(RAMP), "PNG")):
        sent = decode(as_jpeg(given)).astype(np.int16)
        assert np.abs(sent - WANTED).mean() < 2


def test_big_endian_grey_is_the_same() -> None:
    swapped = Image.frombytes("I;16B", (64, 64), RAMP.astype(">u2").tobytes())
    assert np.array_equal(rgb_of(swapped), WANTED)


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_numbers_without_a_range_are_refused(kind: type[np.int32] | type[np.float32]) -> None:
    image = Image.fromarray(RAMP.astype(kind))
    for read in (rgb_of, lambda image: decode_picture(written(image, "TIFF")), as_jpeg):
        with pytest.raises(InvalidInputError, match="convert it to 8 or 16 bits"):
            read(image)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
def test_others_are_as_pillow_converts_them(mode: str) -> None:
    image = Image.fromarray(WANTED).convert(mode)
    assert np.array_equal(rgb_of(image), np.asarray(image.convert("RGB")))
