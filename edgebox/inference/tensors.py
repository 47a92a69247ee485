"""Owns the input tensors: canvases of a batch become what a family's model wants to be fed.

Buffers are allocated once per input shape and reused, so one `InputTensors` serves one thread.
All conversion is numpy over whole pictures, inside C.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.models import Variant
from edgebox.inference.cuda_libraries import cuda_runtime
from edgebox.inference.family import InputSpec

Canvas = NDArray[np.uint8]
"""One picture placed on a variant's canvas: (h, w, 3) uint8 RGB."""


class PinnedMemory:
    """Page-locks arrays so that the GPU fetches them directly, at full PCIe speed.

    Goes through the CUDA runtime that ONNX Runtime has loaded; where that cannot be found or
    refuses, arrays stay pageable, which is slower and nothing else.
    """

    def __init__(self) -> None:
        self._runtime = cuda_runtime()
        self._addresses: list[int] = []

    @property
    def available(self) -> bool:
        """Say whether a CUDA runtime was found."""
        return self._runtime is not None

    def pin(self, array: NDArray[Any]) -> bool:
        """Page-lock an array until `release`; say whether that worked."""
        if self._runtime is None:
            return False
        address = array.ctypes.data
        code = self._runtime.cudaHostRegister(
            ctypes.c_void_p(address), ctypes.c_size_t(array.nbytes), ctypes.c_uint(0)
        )
        if code == 0:
            self._addresses.append(address)
        return bool(code == 0)

    def release(self) -> None:
        """Unlock every array; call before they are freed."""
        if self._runtime is not None:
            for address in self._addresses:
                self._runtime.cudaHostUnregister(ctypes.c_void_p(address))
        self._addresses.clear()


class InputTensors:
    """The reusable input arrays of one executor, by input shape and kind."""

    def __init__(self, pinned: PinnedMemory | None = None) -> None:
        self._pinned = pinned
        self._arrays: dict[tuple[InputSpec, tuple[int, ...]], NDArray[Any]] = {}

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
        array = self._arrays.get((spec, shape))
        if array is None:
            array = np.zeros(shape, np.dtype(spec.dtype))
            if self._pinned is not None:
                self._pinned.pin(array)
            self._arrays[spec, shape] = array
        return array

    def release(self) -> None:
        """Give the memory back."""
        if self._pinned is not None:
            self._pinned.release()
        self._arrays.clear()


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
