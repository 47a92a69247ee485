"""Decodes a frame's picture to a variant's input, in reused canvases."""

import threading
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.inference.family import InputSpec
from edgebox.media.jpeg import decode, decode_into, lay_into
from edgebox.runtime.frames import PendingFrame
from edgebox.vision.letterbox import Placement

_SPARE_MAX = 32
"""Canvases kept per variant; a burst may allocate more, which are freed."""


class CanvasPool:
    """Input canvases by variant. Taken in decoding threads, given back on the loop."""

    def __init__(self, inputs: dict[FamilyName, InputSpec], needs_pixels: bool = True) -> None:
        """Serve the families in `inputs`; without `needs_pixels` nothing is decoded."""
        self.needs_pixels = needs_pixels
        self._inputs = inputs
        self._spare: dict[VariantName, list[NDArray[np.uint8]]] = defaultdict(list)
        self._lock = threading.Lock()

    def input_of(self, variant: Variant) -> InputSpec:
        """Return the layout of this variant's input."""
        return self._inputs[variant.family]

    def take(self, variant: Variant) -> NDArray[np.uint8]:
        """Return a canvas (h, w, 3) uint8 with unspecified content."""
        with self._lock:
            spare = self._spare[variant.name]
            if spare:
                return spare.pop()
        return np.empty((variant.height_px, variant.width_px, 3), np.uint8)

    def give_back(self, frame: PendingFrame) -> None:
        """Return a frame's canvas to the pool, if it has one."""
        canvas, name = frame.canvas, frame.canvas_of
        frame.canvas = frame.canvas_of = None
        if canvas is not None and name is not None:
            self.put(canvas, name)

    def put(self, canvas: NDArray[np.uint8], name: VariantName) -> None:
        """Return a canvas that nobody reads or writes any more."""
        with self._lock:
            spare = self._spare[name]
            if len(spare) < _SPARE_MAX:
                spare.append(canvas)


def prepare(frame: PendingFrame, variant: Variant, canvases: CanvasPool) -> None:
    """Decode a frame into a canvas; an error is stored in `frame.invalid_because`."""
    canvas = canvases.take(variant)
    frame.canvas, frame.canvas_of = canvas, variant.name
    spec = canvases.input_of(variant)
    try:
        if frame.stages_after and frame.parent is None:
            # Crops are cut from the whole picture, so it is decoded at its own size.
            frame.picture = decode(frame.jpeg) if frame.rgb is None else frame.rgb
            sent = lay_into(frame.picture, canvas, spec.fill, spec.fit)
        elif frame.rgb is None:
            sent = decode_into(frame.jpeg, canvas, spec.fill, spec.fit)
        else:
            sent = lay_into(frame.rgb, canvas, spec.fill, spec.fit)
        frame.placement = Placement.on_canvas(
            sent.width_px, sent.height_px, variant.width_px, variant.height_px, spec.fit
        )
    except EdgeboxError as error:
        frame.invalid_because = str(error)
    except Exception as error:  # a decoder's defect must stop neither the thread nor the count
        frame.invalid_because = f"the picture could not be decoded ({type(error).__name__})"
