"""Turns what programs have of a picture into a JPEG."""

from os import PathLike

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.home_folder import given_path
from edgebox.media.jpeg import encode
from edgebox.media.rgb import rgb_of
from edgebox.media.sources import decode_picture

Picture = str | PathLike[str] | bytes | Image.Image | NDArray[np.uint8]
"""A file's path; a file's bytes; a Pillow image; (height, width, 3) RGB or (height, width) grey.

OpenCV's pictures are BGR: turn them with `picture[:, :, ::-1]`.
"""
_QUALITY = 95


def as_jpeg(picture: Picture) -> bytes:
    """Return a picture as a JPEG; one that is a JPEG already stays as it is. Blocks.

    Raises:
        InvalidInputError: it cannot be read, or is no picture.
    """
    if isinstance(picture, str | PathLike):
        try:
            data = given_path(picture).read_bytes()
        except OSError as error:
            raise InvalidInputError(f"{picture}: cannot be read: {error.strerror}") from None
        return _as_jpeg(data, f"{picture}: ")
    if isinstance(picture, bytes | bytearray | memoryview):
        return _as_jpeg(bytes(picture), "")
    if isinstance(picture, Image.Image):
        return encode(rgb_of(picture), _QUALITY)
    return encode(_rgb(picture), _QUALITY)


def _as_jpeg(data: bytes, name: str) -> bytes:
    if data.startswith(b"\xff\xd8"):
        return data
    try:
        return encode(decode_picture(data), _QUALITY)
    except (OSError, ValueError, InvalidInputError) as error:
        raise InvalidInputError(f"{name}not a picture that can be read: {error}") from None


def _rgb(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if not isinstance(array, np.ndarray):
        raise InvalidInputError(
            "a picture must be a path, bytes, a Pillow image or a numpy array, not "
            f"{type(array).__name__}"
        )
    grey = array.ndim == 2
    if array.dtype != np.uint8 or array.size == 0 or not (grey or array.shape[2:] == (3,)):
        raise InvalidInputError(
            "a picture must be uint8 of shape (height, width, 3), RGB, or (height, width), grey, "
            f"not {array.dtype} of {array.shape}"
        )
    return np.repeat(array[:, :, None], 3, axis=2) if grey else np.ascontiguousarray(array)
