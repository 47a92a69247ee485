"""Decodes a frame's picture to a variant's input, in reused canvases."""

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import overload

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import FamilyName, Variant
from edgebox.inference.family import InputSpec
from edgebox.inference.tensors import Canvas, EncodedPicture, ModelInput
from edgebox.media.jpeg import decode, decode_into, lay_into
from edgebox.runtime.frames import PendingFrame
from edgebox.vision.letterbox import Fit, Placement

_SPARE_MAX = 32
"""Canvases kept per size; a burst may allocate more, which are freed."""

_Size = tuple[int, int]
"""Height and width, px."""


class CanvasPool:
    """Input canvases by size. Taken in decoding threads, given back on the loop.

    A variant's name does not tell its size: a family may come under the name of a removed one.
    """

    def __init__(self, inputs: dict[FamilyName, InputSpec], needs_pixels: bool = True) -> None:
        """Serve the families in `inputs`; without `needs_pixels` nothing is decoded."""
        self.needs_pixels = needs_pixels
        self._inputs = inputs
        self._spare: dict[_Size, list[NDArray[np.uint8]]] = {}
        """Of each size that was taken."""
        self._lock = threading.Lock()

    def input_of(self, variant: Variant) -> InputSpec:
        """Return the layout of this variant's input."""
        return self._inputs[variant.family]

    def take(self, variant: Variant) -> NDArray[np.uint8]:
        """Return a canvas (h, w, 3) uint8 with unspecified content."""
        size = (variant.height_px, variant.width_px)
        with self._lock:
            spare = self._spare.setdefault(size, [])
            if spare:
                return spare.pop()
        return np.empty((*size, 3), np.uint8)

    def give_back(self, frame: PendingFrame) -> None:
        """Return a frame's canvas to the pool, if it has one."""
        canvas, reusable = frame.let_go_of_canvas()
        if canvas is not None and reusable:
            self.put(canvas)

    def put(self, canvas: NDArray[np.uint8]) -> None:
        """Return a canvas that nobody reads or writes any more."""
        with self._lock:
            spare = self._spare.get(canvas.shape[:2])
            if spare is not None and len(spare) < _SPARE_MAX:
                spare.append(canvas)

    def keep_only(self, variants: Iterable[Variant]) -> None:
        """Free the canvases of other sizes than these variants have."""
        sizes = {(each.height_px, each.width_px) for each in variants}
        with self._lock:
            self._spare = {size: spare for size, spare in self._spare.items() if size in sizes}


def batch_inputs(
    frames: Sequence[PendingFrame],
    variant: Variant,
    canvases: CanvasPool,
    *,
    encoded: bool = False,
) -> Sequence[ModelInput]:
    """Return what a variant is given of some frames. To be called on the loop.

    A frame that was prepared for another variant is scaled to this one in the executor's thread.

    Args:
        frames: the frames of a batch.
        variant: what they run on.
        canvases: the pool of their canvases.
        encoded: whether their executor takes pictures as they arrived. It is given those that were
            not decoded in any case.
    """
    inputs: list[ModelInput | Callable[[], ModelInput]] = []
    for frame in frames:
        if frame.features:
            inputs.append(frame.features)
        elif frame.is_encoded and (encoded or frame.canvas is None) and canvases.needs_pixels:
            canvases.give_back(frame)  # it may be of another variant, and nothing reads it
            inputs.append(as_arrived(frame))
        elif frame.canvas is not None and frame.canvas_of == variant.name:
            inputs.append(frame.canvas)
        elif frame.canvas is not None:
            source = _source(frame, canvases.input_of(variant).fit)
            inputs.append(partial(_prepare_again, frame, source, variant, canvases))
    return _Inputs(inputs)


def as_arrived(frame: PendingFrame) -> EncodedPicture:
    """Return a frame's picture; what is found on it is in px of the picture as it was sent."""
    width_px, height_px = frame.request.width_px, frame.request.height_px
    frame.placement = Placement.on_canvas(width_px, height_px, width_px, height_px)
    return EncodedPicture(frame.jpeg, width_px, height_px)


class _Inputs(Sequence[ModelInput]):
    """Inputs, some of which are made whenever they are read."""

    def __init__(self, made_by: Sequence[ModelInput | Callable[[], ModelInput]]) -> None:
        self._made_by = made_by

    def __len__(self) -> int:
        return len(self._made_by)

    @overload
    def __getitem__(self, at: int) -> ModelInput: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[ModelInput]: ...

    def __getitem__(self, at: int | slice) -> ModelInput | Sequence[ModelInput]:
        if isinstance(at, slice):
            return _Inputs(self._made_by[at])
        found = self._made_by[at]
        return found() if callable(found) else found


def _source(frame: PendingFrame, fit: Fit) -> NDArray[np.uint8] | bytes | memoryview:
    """Return what a prepared frame is scaled from: what its canvas shows of the picture.

    Where the picture juts out of the canvas, it is the picture itself.
    """
    place, canvas = frame.placement, frame.canvas
    assert place is not None
    assert canvas is not None
    if fit != "cover":
        below, right = place.top_px + place.height_px, place.left_px + place.width_px
        return canvas[place.top_px : below, place.left_px : right]
    source = frame.picture if frame.rgb is None else frame.rgb
    return frame.jpeg if source is None else source


def _prepare_again(
    frame: PendingFrame,
    source: NDArray[np.uint8] | bytes | memoryview,
    variant: Variant,
    canvases: CanvasPool,
) -> Canvas:
    spec = canvases.input_of(variant)
    picture = source if isinstance(source, np.ndarray) else decode(source)
    # A new canvas: nobody else may read it, whatever becomes of the frame meanwhile.
    canvas = np.empty((variant.height_px, variant.width_px, 3), np.uint8)
    lay_into(picture, canvas, spec.fill, spec.fit)
    height_px, width_px = picture.shape[:2]
    frame.placement = Placement.on_canvas(
        width_px, height_px, variant.width_px, variant.height_px, spec.fit
    )
    frame.canvas, frame.canvas_of = canvas, variant.name
    return canvas


def prepared_as_sent(frame: PendingFrame, variant: Variant) -> bool:
    """Use a frame's pixels as the canvas if they have its size; return whether they are used.

    Then nothing is left to be done in a thread.
    """
    rgb = frame.rgb
    if rgb is None or frame.parent is not None:
        return False
    if rgb.shape != (variant.height_px, variant.width_px, 3) or not rgb.flags.c_contiguous:
        return False
    frame.canvas, frame.canvas_of = rgb, variant.name
    frame.placement = Placement.on_canvas(*_size(variant), *_size(variant))
    if frame.stages_after:
        frame.picture = rgb
    return True


def _size(variant: Variant) -> tuple[int, int]:
    return variant.width_px, variant.height_px


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
