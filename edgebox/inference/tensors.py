"""The input tensors: converts a batch's canvases to the input format of a family's model.

One buffer is used for every batch, so one `InputTensors` serves one thread. All conversion is numpy
over whole pictures, inside C.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import Variant
from edgebox.inference.cuda_runtime import CudaRuntime
from edgebox.inference.family import InputSpec
from edgebox.inference.features import Features

Canvas = NDArray[np.uint8]
"""One picture placed on a variant's canvas: (h, w, 3) uint8 RGB."""


@dataclass(frozen=True, slots=True)
class EncodedPicture:
    """A picture as it arrived, decoded where its batch runs."""

    jpeg: bytes | memoryview
    width_px: int
    height_px: int


ModelInput = Canvas | Features | EncodedPicture
"""What a model is given of one request: a picture, or the features of one."""


class InputTensors:
    """The input buffer of one executor, as large as the largest batch so far."""

    def __init__(self, cuda: CudaRuntime | None = None) -> None:
        """Start empty.

        Args:
            cuda: page-locks the buffer; if that fails, copies are slower.
        """
        self._cuda = cuda
        self._buffer = np.empty(0, np.uint8)
        self._locked = False

    def fill(
        self, spec: InputSpec, variant: Variant, canvases: Sequence[Canvas], batch_size: int
    ) -> NDArray[Any]:
        """Return the input tensor for some canvases, padded with the last one to `batch_size`.

        The array is valid until the next call.

        Raises:
            ValueError: no canvas, more than `batch_size`, or one that is not (h, w, 3) uint8 of
                the variant's size.
        """
        if not 1 <= len(canvases) <= batch_size:
            raise ValueError(f"{len(canvases)} pictures do not fit a batch of {batch_size}")
        wanted = (variant.height_px, variant.width_px, 3)
        for canvas in canvases:
            if canvas.shape != wanted or canvas.dtype != np.uint8:
                raise ValueError(
                    f"{variant.name} takes pictures {wanted} uint8, not {canvas.shape} "
                    f"{canvas.dtype}"
                )
        array = self._array(spec, variant, batch_size)
        for row, canvas in enumerate(canvases):
            _convert(spec, canvas, array[row])
        # Padding copies a converted row: any picture will do, and this one is in the cache.
        array[len(canvases) :] = array[len(canvases) - 1]
        return array

    def _array(self, spec: InputSpec, variant: Variant, batch_size: int) -> NDArray[Any]:
        shape = spec.shape(batch_size, variant.width_px, variant.height_px)
        dtype = np.dtype(spec.dtype)
        size_bytes = math.prod(shape) * dtype.itemsize
        if size_bytes > self._buffer.nbytes:
            self.release()
            self._buffer = np.zeros(size_bytes, np.uint8)
            self._lock()
        return self._buffer[:size_bytes].view(dtype).reshape(shape)

    def _lock(self) -> None:
        if self._cuda is not None:
            self._locked = self._cuda.page_lock(self._buffer.ctypes.data, self._buffer.nbytes)

    def release(self) -> None:
        """Give the memory back; unlocked first, as CUDA wants it."""
        if self._cuda is not None and self._locked:
            self._cuda.unlock(self._buffer.ctypes.data)
        self._locked = False
        self._buffer = np.empty(0, np.uint8)


def _convert(spec: InputSpec, canvas: Canvas, out: NDArray[Any]) -> None:
    picture: NDArray[Any] = canvas if spec.order == "rgb" else canvas[..., ::-1]
    channels = (1, 1, 3)
    if spec.layout == "nchw":
        picture = picture.transpose(2, 0, 1)
        channels = (3, 1, 1)
    np.copyto(out, picture)
    if spec.scale != 1.0 or spec.std != (1.0, 1.0, 1.0):
        gain = np.array([spec.scale / std for std in spec.std], np.float32)
        np.multiply(out, gain.reshape(channels), out=out)
    if spec.mean != (0.0, 0.0, 0.0):
        shift = np.array([m / s for m, s in zip(spec.mean, spec.std, strict=True)], np.float32)
        np.subtract(out, shift.reshape(channels), out=out)
