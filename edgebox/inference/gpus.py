"""Finds the GPUs that CUDA offers this process, in CUDA's own order. Linux only.

Asks the driver (`libcuda`), because everything else differs from what a `device_id` of ONNX Runtime
means: `nvidia-smi` and /proc/driver/nvidia count by the bus and ignore CUDA_VISIBLE_DEVICES, and
ONNX Runtime's own list of devices names hardware, whether CUDA can use it or not.
"""

import ctypes
from typing import Protocol

from edgebox.inference.cuda_libraries import DRIVER

_NAME_BYTES = 256


class CudaDriver(Protocol):
    """The functions used of the driver; every call returns 0 on success."""

    def cuInit(self, flags: int, /) -> int: ...  # noqa: N802 - CUDA's names
    def cuDriverGetVersion(self, version: object, /) -> int: ...  # noqa: N802
    def cuDeviceGetCount(self, count: object, /) -> int: ...  # noqa: N802
    def cuDeviceGet(self, device: object, ordinal: int, /) -> int: ...  # noqa: N802
    def cuDeviceGetName(self, name: object, size: int, device: object, /) -> int: ...  # noqa: N802


def cuda_driver() -> CudaDriver | None:
    """Return the driver's library; None: there is none on this machine."""
    try:
        return ctypes.CDLL(DRIVER)
    except OSError:
        return None


def driver_cuda_release(driver: CudaDriver | None = None) -> tuple[int, int] | None:
    """Return the newest CUDA release that the driver can run, as (13, 0); None: no driver.

    Args:
        driver: the driver's library; None: the machine's, if there is one.
    """
    driver = driver or cuda_driver()
    version = ctypes.c_int()
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def gpu_names(driver: CudaDriver | None = None) -> tuple[str, ...]:
    """Return the product name of each GPU; its place is its number for CUDA. Empty: none.

    Args:
        driver: the driver's library; None: the machine's, if there is one.
    """
    driver = driver or cuda_driver()
    count = ctypes.c_int()
    if driver is None or driver.cuInit(0) != 0:
        return ()
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    return tuple(_name(driver, ordinal) for ordinal in range(count.value))


def _name(driver: CudaDriver, ordinal: int) -> str:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES)
    if driver.cuDeviceGet(ctypes.byref(device), ordinal) != 0:
        return "NVIDIA GPU"
    if driver.cuDeviceGetName(name, _NAME_BYTES, device) != 0:
        return "NVIDIA GPU"
    return name.value.decode(errors="replace")
