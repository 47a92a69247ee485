"""Simulates batches that run at once on one device and slow each other. Pure.

While n batches run, each progresses at 1 / (1 + k (n - 1)) of its speed on an idle device. The
progress changes whenever a batch starts or ends, as on a real device.
"""

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

Work = TypeVar("Work")


@dataclass(slots=True)
class _Running(Generic[Work]):
    work: Work
    left_ns: float
    """What it would still take on an idle device."""
    started_ns: int


class SharedDevice(Generic[Work]):
    """The batches that run on a device; O(running) per call."""

    def __init__(self, interference: float) -> None:
        """Begin idle; `interference` is k."""
        self._interference = interference
        self._running: list[_Running[Work]] = []
        self._now_ns = 0

    def start(self, work: Work, alone_ns: int, now_ns: int) -> None:
        """Start a batch that takes `alone_ns` on an idle device."""
        self._advance(now_ns)
        self._running.append(_Running(work, float(alone_ns), now_ns))

    def next_end_ns(self) -> int | None:
        """Return when the next batch ends if none starts before; None: none runs."""
        if not self._running:
            return None
        least_ns = min(each.left_ns for each in self._running)
        return self._now_ns + max(0, math.ceil(least_ns * self._factor - 1e-6))

    def ended(self, now_ns: int) -> list[tuple[Work, int]]:
        """Remove and return the batches that have ended, with the time each one took."""
        self._advance(now_ns)
        done = [each for each in self._running if each.left_ns <= 1e-6]
        self._running = [each for each in self._running if each.left_ns > 1e-6]
        return [(each.work, now_ns - each.started_ns) for each in done]

    @property
    def _factor(self) -> float:
        return 1.0 + self._interference * (len(self._running) - 1)

    def _advance(self, now_ns: int) -> None:
        if self._running:
            progress_ns = (now_ns - self._now_ns) / self._factor
            for each in self._running:
                each.left_ns -= progress_ns
        self._now_ns = now_ns
