"""The calls of the CUDA runtime that edgebox makes beside ONNX Runtime, on one GPU.

Both share a library and its state in each thread:

- CUDA keeps a call's error until it is fetched, and ONNX Runtime's kernels would take it for their
  own. So whatever fails here, its error is fetched.
- A thread works on GPU 0 until it says otherwise, and merely touching a GPU takes hundreds of MB
  there, or fails where another program has it for itself. So the GPU is chosen before each call
  that needs one, and stays chosen, as after a run of ONNX Runtime.
"""

import ctypes
from typing import Any

_PORTABLE = 1
"""cudaHostRegisterPortable: page-locked for every GPU of the machine."""


class CudaRuntime:
    """The CUDA runtime on one GPU; any thread may use it."""

    def __init__(self, library: Any, device_index: int) -> None:
        """Call nothing yet.

        Args:
            library: `libcudart`; its functions return 0 on success.
            device_index: which GPU.
        """
        self._library = library
        self._device_index = device_index

    def page_lock(self, address: int, size_bytes: int) -> bool:
        """Page-lock memory, so that GPUs fetch it directly and at full speed; say whether it is."""
        return self._choose() and self._done(
            self._library.cudaHostRegister(
                ctypes.c_void_p(address), ctypes.c_size_t(size_bytes), ctypes.c_uint(_PORTABLE)
            )
        )

    def unlock(self, address: int) -> None:
        """End what `page_lock` began."""
        self._choose()
        self._done(self._library.cudaHostUnregister(ctypes.c_void_p(address)))

    def used_bytes(self) -> int | None:
        """Return the memory in use on the GPU, by anybody; None: it is not reported."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        if not self._choose() or not self._done(
            self._library.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        ):
            return None
        return total.value - free.value

    def _choose(self) -> bool:
        return self._done(self._library.cudaSetDevice(ctypes.c_int(self._device_index)))

    def _done(self, code: int) -> bool:
        if code != 0:
            self._library.cudaGetLastError()
        return code == 0
