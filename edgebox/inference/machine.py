"""Properties of this machine: cores this process may use, memory, processor name.

Reads /proc and /sys; limits: Linux first, other systems get what Python's own modules know.
"""

import os
import platform
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def cgroup_cpu_limit(root: Path = _CGROUP) -> float | None:
    """Return how many cores' worth of time a container may use; None: no limit is set."""
    try:  # version 2
        quota, period = (root / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:  # version 1
        quota_us = int((root / "cpu/cpu.cfs_quota_us").read_text())
        period_us = int((root / "cpu/cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return quota_us / period_us if quota_us > 0 and period_us > 0 else None


def cgroup_memory_limit_bytes(root: Path = _CGROUP) -> int | None:
    """Return a container's memory limit; None: no limit is set."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limit = int((root / name).read_text())
        except (OSError, ValueError):  # absent, or "max"
            continue
        # Version 1 writes "no limit" as a number near 2**63.
        return limit if limit < 1 << 60 else None
    return None


def usable_cores(root: Path = _CGROUP) -> int:
    """Return the cores this process may keep busy: its affinity within its container's limit."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    limit = cgroup_cpu_limit(root)
    return max(1, cores if limit is None else min(cores, int(limit)))


def offered_threads(most: int) -> tuple[int, ...]:
    """Return the thread counts that a batch may choose from: 1, 2, 4, ... and the most."""
    return (*(1 << n for n in range(most.bit_length()) if 1 << n < most), most)


def allowed_cores() -> frozenset[int] | None:
    """Return the cores that this process may be pinned to; None: threads cannot be pinned here."""
    try:
        return frozenset(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return None


def pin(cores: Collection[int]) -> None:
    """Keep the calling thread, and those that it starts from now on, on these cores; none: on any.

    Raises:
        OSError: this process may use none of them.
    """
    if cores:
        os.sched_setaffinity(0, cores)


@contextmanager
def pinned(cores: Collection[int]) -> Iterator[None]:
    """Pin the calling thread for a while; threads that it starts meanwhile stay pinned.

    Raises:
        OSError: this process may use none of the cores.
    """
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    pin(cores)
    try:
        yield
    finally:
        pin(before)


def memory_bytes() -> int | None:
    """Return the memory this process may use; None: unknown."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return cgroup_memory_limit_bytes()
    limit = cgroup_memory_limit_bytes()
    return total if limit is None else min(total, limit)


def processor_name() -> str:
    """Return the processor's model name, as stable as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    try:  # single-board computers name the board instead
        return Path("/proc/device-tree/model").read_text().rstrip("\x00\n")
    except OSError:
        return platform.processor() or platform.machine()
