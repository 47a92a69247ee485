"""A CUDA runtime library without a GPU: it keeps errors and chosen GPUs by thread, as CUDA does."""

import ctypes
import threading
from collections.abc import Mapping
from typing import Any


class CudaLibrary:
    """As `libcudart` of CUDA 12 and later; every function returns 0 on success."""

    def __init__(self, fails: Mapping[str, int] | None = None) -> None:
        """Functions named in `fails` return that code."""
        self.locked: dict[int | None, int] = {}
        """Size in bytes of what is page-locked, by address."""
        self.touched: set[int] = set()
        """GPUs that have a context of this process."""
        self._fails = fails or {}
        self._thread = threading.local()

    @property
    def last_error(self) -> int:
        """The error that the next kernel of this thread is taken to have."""
        return int(getattr(self._thread, "error", 0))

    def cudaGetLastError(self) -> int:  # noqa: N802 - CUDA's names
        error, self._thread.error = self.last_error, 0
        return error

    def cudaSetDevice(self, device: ctypes.c_int) -> int:  # noqa: N802
        self._thread.device = device.value
        return self._result("cudaSetDevice")

    def cudaMemGetInfo(self, free: Any, total: Any) -> int:  # noqa: N802
        free._obj.value, total._obj.value = 70, 100
        return self._result("cudaMemGetInfo")

    def cudaHostRegister(  # noqa: N802
        self, address: ctypes.c_void_p, size: ctypes.c_size_t, flags: ctypes.c_uint
    ) -> int:
        assert address.value not in self.locked
        code = self._result("cudaHostRegister")
        if code == 0:
            self.locked[address.value] = size.value
        return code

    def cudaHostUnregister(self, address: ctypes.c_void_p) -> int:  # noqa: N802
        del self.locked[address.value]  # what is not locked must not be unlocked
        return self._result("cudaHostUnregister")

    def _result(self, name: str) -> int:
        code = self._fails.get(name, 0)
        if code == 0:
            self.touched.add(getattr(self._thread, "device", 0))
        else:
            self._thread.error = code
        return code
