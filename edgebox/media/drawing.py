"""Pictures with detections on them, for people."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from edgebox.domain.errors import InvalidInputError
from edgebox.media.class_colours import class_colour

_LINE_SHARE = 400
"""The picture's longer side by the width of a line."""


def draw_boxes(
    rgb: NDArray[np.uint8],
    boxes: NDArray[np.float32],
    texts: Sequence[str],
    labels: Sequence[str],
) -> NDArray[np.uint8]:
    """Return a copy of a picture with boxes and what they are.

    Args:
        rgb: (h, w, 3).
        boxes: (n, 4) xyxy, px of the picture.
        texts: n, one per box.
        labels: n names of classes; each class has its colour.
    """
    picture = Image.fromarray(rgb)
    canvas = ImageDraw.Draw(picture)
    line_px = max(1, max(picture.size) // _LINE_SHARE)
    font = ImageFont.load_default(max(10, 6 * line_px))
    for box, text, label in zip(boxes.tolist(), texts, labels, strict=True):
        colour = class_colour(label)
        canvas.rectangle(box, outline=colour, width=line_px)
        left, top, right, bottom = canvas.textbbox((0, 0), text, font=font)
        height = bottom - top + 2 * line_px
        x, y = box[0], max(0.0, box[1] - height)
        canvas.rectangle((x, y, x + right - left + 2 * line_px, y + height), fill=colour)
        canvas.text((x + line_px - left, y + line_px - top), text, fill="black", font=font)
    return np.asarray(picture, dtype=np.uint8)


def save_picture(rgb: NDArray[np.uint8], path: Path) -> None:
    """Write a picture, in the format that the name's ending says.

    Raises:
        InvalidInputError: there is no such format, or the file cannot be written.
    """
    try:
        Image.fromarray(rgb).save(path)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path}: the picture cannot be written: {error}") from None
