"""JPEG: reading headers, decoding into a canvas, encoding, resizing.

libjpeg-turbo is the codec: simplejpeg decodes, Pillow encodes, and judges what simplejpeg refuses
(slight damage). Both release the GIL, and nothing here is shared between calls, so all of it
may run in many threads at once. Nothing is allocated for a picture before its header was found
acceptable, so a header that promises 30,000 x 30,000 px costs a few microseconds.
"""

import io
from dataclasses import dataclass
from typing import Literal

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from edgebox.domain.errors import InvalidInputError
from edgebox.media.jpeg_header import FRAME_LIMITS, JpegHeader, JpegLimits, read_header

QUALITY_DEFAULT = 85

_RESAMPLING = Image.Resampling.BILINEAR

Fit = Literal["top_left", "centre", "stretch", "cover"]
"""As `edgebox.vision.letterbox` explains; a test compares its arithmetic with this one."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of a picture in a canvas, and its sizes."""

    width_px: int
    """Size of the picture as sent."""
    height_px: int
    placed_width_px: int
    """Size of the picture on the canvas; larger than the canvas for "cover"."""
    placed_height_px: int
    left_px: int
    """Canvas column of the picture's left edge; below 0 where it juts out."""
    top_px: int


def probe(jpeg: bytes | memoryview) -> tuple[int, int]:
    """Return (width, height) as the header says, without decoding anything.

    A few microseconds; a picture that may have several scans is searched for them, at C speed.

    Raises:
        InvalidInputError: as `jpeg_header.read_header`.
    """
    header = read_header(jpeg)
    return header.width_px, header.height_px


def decode_into(
    jpeg: bytes | memoryview,
    canvas: NDArray[np.uint8],
    fill: int = 114,
    fit: Fit = "top_left",
) -> Placement:
    """Decode a picture, scale it to its place on the canvas, fill the rest.

    A picture of the size that it has on the canvas, and as wide as that, is decoded in place. A
    larger one is first reduced by the codec, in eighths, as far as its place allows: that saves
    most of the decoding and scaling. Bytes after the picture's end are ignored.

    Args:
        jpeg: one JPEG; greyscale and CMYK are converted.
        canvas: (height, width, 3) RGB, overwritten whole.
        fill: the grey level of what the picture does not cover.
        fit: where the picture goes.

    Raises:
        InvalidInputError: not a JPEG, truncated, broken, or too large in pixels.
    """
    header = read_header(jpeg)
    place = _placed((header.width_px, header.height_px), canvas, fit)
    target = (place.placed_width_px, place.placed_height_px)
    top, bottom = place.top_px, place.top_px + place.placed_height_px
    in_place = target == (header.width_px, header.height_px) == (canvas.shape[1], bottom - top)
    if in_place and top >= 0 and bottom <= len(canvas) and canvas.flags.c_contiguous:
        decoded = _decoded(jpeg, header, target, canvas[top:bottom])
        canvas[:top] = fill
        canvas[bottom:] = fill
        if not np.may_share_memory(decoded, canvas):
            canvas[top:bottom] = decoded
    else:
        _lay(Image.fromarray(_decoded(jpeg, header, target)), canvas, fill, place)
    return place


def lay_into(
    rgb: NDArray[np.uint8], canvas: NDArray[np.uint8], fill: int = 114, fit: Fit = "top_left"
) -> Placement:
    """Scale a decoded picture (height, width, 3) to its place on a canvas, like `decode_into`."""
    place = _placed((rgb.shape[1], rgb.shape[0]), canvas, fit)
    _lay(Image.fromarray(rgb), canvas, fill, place)
    return place


def _placed(size: tuple[int, int], canvas: NDArray[np.uint8], fit: Fit) -> Placement:
    width, height = size
    canvas_height, canvas_width = canvas.shape[:2]
    if fit == "stretch":
        return Placement(width, height, canvas_width, canvas_height, 0, 0)
    scales = (canvas_width / width, canvas_height / height)
    scale = max(scales) if fit == "cover" else min(scales)
    placed_width, placed_height = max(1, round(width * scale)), max(1, round(height * scale))
    if fit == "top_left":
        return Placement(width, height, placed_width, placed_height, 0, 0)
    left, top = (canvas_width - placed_width) // 2, (canvas_height - placed_height) // 2
    return Placement(width, height, placed_width, placed_height, left, top)


def _lay(picture: Image.Image, canvas: NDArray[np.uint8], fill: int, place: Placement) -> None:
    """Scale what the canvas shows of a picture, and fill the rest."""
    height, width = canvas.shape[:2]
    left, top = max(0, place.left_px), max(0, place.top_px)
    right = min(width, place.left_px + place.placed_width_px)
    bottom = min(height, place.top_px + place.placed_height_px)
    # What juts out is cut off before scaling: a thin picture would become a huge one.
    x, y = picture.width / place.placed_width_px, picture.height / place.placed_height_px
    box = (
        (left - place.left_px) * x,
        (top - place.top_px) * y,
        min(picture.width, (right - place.left_px) * x),
        min(picture.height, (bottom - place.top_px) * y),
    )
    size = (right - left, bottom - top)
    whole = (0.0, 0.0, float(picture.width), float(picture.height))
    if picture.size != size or box != whole:
        picture = picture.resize(size, _RESAMPLING, box)
    canvas[:top] = fill
    canvas[bottom:] = fill
    canvas[top:bottom, :left] = fill
    canvas[top:bottom, right:] = fill
    canvas[top:bottom, left:right] = np.asarray(picture, dtype=np.uint8)


def decode(jpeg: bytes | memoryview, limits: JpegLimits = FRAME_LIMITS) -> NDArray[np.uint8]:
    """Decode a picture at its own size into (height, width, 3) RGB.

    Raises:
        InvalidInputError: as `decode_into`.
    """
    header = read_header(jpeg, limits)
    return _decoded(jpeg, header, (header.width_px, header.height_px))


def _decoded(
    jpeg: bytes | memoryview,
    header: JpegHeader,
    target: tuple[int, int],
    into: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """Decode a picture to (height, width, 3) RGB, reduced by the codec as far as a size allows.

    Args:
        jpeg: one JPEG.
        header: its header.
        target: (width, height) that the result has at least, unless the picture itself is smaller.
        into: contiguous, takes the result where simplejpeg decodes a picture that is not reduced.
    """
    essence = header.essence(jpeg)
    width, height = min(target[0], header.width_px), min(target[1], header.height_px)
    try:
        decoded: NDArray[np.uint8] = simplejpeg.decode_jpeg(
            essence, "RGB", min_width=width, min_height=height, buffer=into
        )
    except ValueError:  # also damage that leaves the picture whole, which Pillow takes
        return _decoded_by_pillow(essence, header, target)
    return decoded


def _decoded_by_pillow(
    essence: bytes, header: JpegHeader, target: tuple[int, int]
) -> NDArray[np.uint8]:
    try:
        with Image.open(io.BytesIO(essence), formats=("JPEG",)) as picture:
            if picture.size != (header.width_px, header.height_px):
                raise InvalidInputError("a broken JPEG: its size is given twice, differently")
            picture.draft("RGB", target)
            return np.asarray(picture.convert("RGB"), dtype=np.uint8)
    except UnidentifiedImageError:  # Pillow's words name an object of ours
        raise InvalidInputError(
            "a broken JPEG: its header cannot be read by the decoder; encode the picture again"
        ) from None
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidInputError(f"a broken or truncated JPEG: {error}") from None


def encode(rgb: NDArray[np.uint8], quality: int = QUALITY_DEFAULT) -> bytes:
    """Encode a picture.

    Args:
        rgb: (height, width, 3).
        quality: 1 to 100; above 95 only the size grows.
    """
    out = io.BytesIO()
    Image.fromarray(rgb).save(out, "JPEG", quality=quality)
    return out.getvalue()


def resize_rgb(rgb: NDArray[np.uint8], width_px: int, height_px: int) -> NDArray[np.uint8]:
    """Scale a picture to exactly this size; itself if it has that size.

    Args:
        rgb: (height, width, 3).
    """
    height, width = rgb.shape[:2]
    if (width, height) == (width_px, height_px):
        return rgb
    resized = Image.fromarray(rgb).resize((width_px, height_px), _RESAMPLING, reducing_gap=2.0)
    return np.asarray(resized, dtype=np.uint8)
