"""Measures the memory that this process uses, on the machine and on a GPU; releases free memory.

Limits: only Linux reports a process's resident memory; elsewhere sizes of files are used. A GPU
reports its free memory, whichever process took the rest.
"""

import contextlib
import ctypes
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident_bytes(statm: Path = _STATM) -> int | None:
    """Return the resident memory of this process; None: unknown on this system."""
    try:
        pages = int(statm.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * _page_bytes()


def _page_bytes() -> int:
    import resource  # noqa: PLC0415 - is not there on every system that has no /proc/self/statm

    return resource.getpagesize()


def device_used_bytes(cuda: ctypes.CDLL, device_index: int = 0) -> int | None:
    """Return the memory in use on a GPU; None: its runtime does not report it."""
    free, total, before = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_int()
    # The runtime tells of the calling thread's device.
    if cuda.cudaGetDevice(ctypes.byref(before)) != 0 or cuda.cudaSetDevice(device_index) != 0:
        return None
    failed = cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) != 0
    cuda.cudaSetDevice(before.value)
    return None if failed else total.value - free.value


def give_back() -> None:
    """Return what the C library keeps of freed memory to the system, where it can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
