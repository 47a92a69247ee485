"""Measures the memory that this process uses on the machine; releases free memory.

Limits: only Linux reports a process's resident memory; elsewhere sizes of files are used.
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


def give_back() -> None:
    """Return what the C library keeps of freed memory to the system, where it can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
