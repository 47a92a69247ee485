"""What Schemathesis cannot know by itself: how a JPEG is made."""

import numpy as np
import schemathesis
from hypothesis import strategies as st

from edgebox.media.jpeg import encode


def _picture(width_px: int, height_px: int, grey: int) -> bytes:
    return encode(np.full((height_px, width_px, 3), grey, np.uint8))


schemathesis.openapi.media_type(
    "image/jpeg",
    st.builds(_picture, st.integers(1, 64), st.integers(1, 64), st.integers(0, 255)),
)
