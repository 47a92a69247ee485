"""Finds the GPUs that CUDA offers this process, in CUDA's own order. Linux only.

Asks the driver (`libcuda`), because everything else differs from what a `device_id` of ONNX Runtime
means: `nvidia-smi` and /proc/driver/nvidia count by the bus and ignore CUDA_VISIBLE_DEVICES, and
ONNX Runtime's own list of devices names hardware, whether CUDA can use it or not.

As a program it prints a row for each GPU, as `nvidia-smi` does: a driver that hangs then hangs a
process of its own.
"""

import ctypes
from pathlib import Path
from typing import Protocol

from edgebox.inference.cuda_libraries import DRIVER

_NAME_BYTES = 256
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR."""
JETSON = Path("/etc/nv_tegra_release")
"""JetPack brings it."""
_PCI = Path("/sys/bus/pci/devices")
_NVIDIA = "0x10de"
_DISPLAY = "0x03"
"""How the class of a PCI device begins that is a graphics card or computes as one."""


class CudaDriver(Protocol):
    """The functions used of the driver; every call returns 0 on success."""

    def cuInit(self, flags: int, /) -> int: ...  # noqa: N802 - CUDA's names
    def cuDriverGetVersion(self, version: object, /) -> int: ...  # noqa: N802
    def cuDeviceGetCount(self, count: object, /) -> int: ...  # noqa: N802
    def cuDeviceGet(self, device: object, ordinal: int, /) -> int: ...  # noqa: N802
    def cuDeviceGetName(self, name: object, size: int, device: object, /) -> int: ...  # noqa: N802


class DescribingDriver(CudaDriver, Protocol):
    """The functions that tell more of a GPU."""

    def cuDeviceTotalMem_v2(self, size: object, device: object, /) -> int: ...  # noqa: N802
    def cuDeviceGetAttribute(  # noqa: N802
        self, value: object, attribute: int, device: object, /
    ) -> int: ...


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


def gpu_rows(driver: DescribingDriver) -> list[str]:
    """Return what a driver says of each GPU: name, driver, memory, compute capability."""
    release = driver_cuda_release(driver) or (0, 0)
    rows = []
    for ordinal, name in enumerate(gpu_names(driver)):
        device, size, version = ctypes.c_int(), ctypes.c_size_t(), [ctypes.c_int(), ctypes.c_int()]
        driver.cuDeviceGet(ctypes.byref(device), ordinal)
        driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
        for value, attribute in zip(version, (_MAJOR, _MINOR), strict=True):
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        rows.append(
            f"{name}, for CUDA {release[0]}.{release[1]}, {size.value >> 20} MiB, "
            f"{version[0].value}.{version[1].value}"
        )
    return rows


def has_nvidia_device(pci: Path = _PCI, jetson: Path = JETSON) -> bool:
    """Say whether the machine has an NVIDIA GPU, with or without a driver.

    Args:
        pci: folder of the devices on the bus.
        jetson: a file that only NVIDIA's own boards have.
    """
    return jetson.exists() or any(
        _text(file) == _NVIDIA and _text(file.with_name("class")).startswith(_DISPLAY)
        for file in pci.glob("*/vendor")
    )


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _name(driver: CudaDriver, ordinal: int) -> str:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES)
    if driver.cuDeviceGet(ctypes.byref(device), ordinal) != 0:
        return "NVIDIA GPU"
    if driver.cuDeviceGetName(name, _NAME_BYTES, device) != 0:
        return "NVIDIA GPU"
    return name.value.decode(errors="replace")


if __name__ == "__main__":
    print("\n".join(gpu_rows(ctypes.CDLL(DRIVER))))
