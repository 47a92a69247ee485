"""PNG: decoded whole, within the limits of frames."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from edgebox.domain.errors import InvalidInputError
from edgebox.media.jpeg_header import FRAME_LIMITS
from edgebox.media.rgb import rgb_of

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def decode_png(content: bytes | memoryview) -> NDArray[np.uint8]:
    """Decode a picture at its own size into (height, width, 3) RGB; what is transparent is not.

    Raises:
        InvalidInputError: not a PNG, truncated, broken, too large in pixels, or not to be shown.
    """
    try:
        with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
            FRAME_LIMITS.check("PNG", *picture.size)
            return rgb_of(picture)
    except UnidentifiedImageError:  # Pillow's words name an object of ours
        raise InvalidInputError("a broken PNG: its header cannot be read") from None
    except Image.DecompressionBombError:  # whose words name a limit of Pillow's
        raise InvalidInputError(f"the PNG has too many pixels: {FRAME_LIMITS.wanted}") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidInputError(f"a broken or truncated PNG: {error}") from None
