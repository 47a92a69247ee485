"""Measures how busy a machine is, and how much of that is this process and those below it.

Reads Linux's /proc.
"""

import contextlib
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """How busy the machine was for a while, in cores."""

    ours: float
    """By this process and those that it started, and they."""
    others: float
    load_before: float
    load_after: float


class Usage:
    """Processor time since it was made."""

    def __init__(self) -> None:
        self._then = time.monotonic(), _busy_s(), _own_s()
        self._load = os.getloadavg()[0]

    def since(self) -> Machine:
        """Return how busy the machine was."""
        began_s, busy_s, own_s = self._then
        took_s = time.monotonic() - began_s
        ours = (_own_s() - own_s) / took_s
        others = max(0.0, (_busy_s() - busy_s) / took_s - ours)
        return Machine(ours, others, self._load, os.getloadavg()[0])


def _busy_s() -> float:
    """Return the processor time of everybody since the machine started."""
    user, nice, system, _, _, interrupts, soft, steal, *_ = (
        int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + interrupts + soft + steal) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """Return the processor time of this process and of all below it, the living included."""
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    ended_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return ended_s + sum(living_s(pid) for pid in _children(os.getpid()))


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    return []


def living_s(pid: int) -> float:
    """Return the processor time of a process, all its threads included; 0 once it has gone."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0
