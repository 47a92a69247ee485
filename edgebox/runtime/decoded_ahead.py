"""Decides how many frames are decoded ahead of their batches. Pure.

Under overload most frames are never answered, and those that wait undecoded cost nothing when they
are dropped. So no more are decoded than the executors can work off in a part of the shortest
deadline: enough to fill their next batches, and few enough to be answered in time.
"""

from collections.abc import Iterable

from edgebox.domain.requests import RequestId

DEADLINE_SHARE = 0.25
"""The part of the shortest deadline for which decoded frames may wait for executors.

Of `python -m benchmarks.overload --ablation`: a tenth changes nothing; with all of the deadline an
executor that shares its cores with decoding answers .91 of its capacity in place of .98.
"""
DEADLINE_NS = 1_000_000_000
"""The shortest deadline where none is known: single pictures have it by default."""
_LEAST_PER_EXECUTOR = 2
_LATEST_SHARE = 0.1
"""Weight of the latest batch in the time per frame."""


class DecodedAhead:
    """The frames that are decoded and wait for a batch, and how fast batches take them."""

    def __init__(self) -> None:
        """Start without frames."""
        self._waiting: set[RequestId] = set()
        self._frame_ns: float | None = None
        """Recent execution time per frame on one executor; None: unknown."""
        self._within_ns = DEADLINE_SHARE * DEADLINE_NS

    def deadline(self, tightest_ns: int | None) -> None:
        """Note the shortest deadline of a camera; None: there is no camera."""
        self._within_ns = DEADLINE_SHARE * (DEADLINE_NS if tightest_ns is None else tightest_ns)

    def decoded(self, request: RequestId) -> None:
        """Note that a frame is decoded."""
        self._waiting.add(request)

    def taken(self, requests: Iterable[RequestId]) -> None:
        """Note that frames have gone into a batch or ended; harmless for others."""
        self._waiting.difference_update(requests)

    def ran(self, frames: int, took_ns: int) -> None:
        """Learn from a batch."""
        per_frame_ns = took_ns / frames
        if self._frame_ns is None:
            self._frame_ns = per_frame_ns
        self._frame_ns += _LATEST_SHARE * (per_frame_ns - self._frame_ns)

    def is_enough(self, executors: int) -> bool:
        """Return whether so many executors have enough to do."""
        if self._frame_ns is None:
            return False
        least = executors * _LEAST_PER_EXECUTOR
        if len(self._waiting) < least:
            return False
        return len(self._waiting) * self._frame_ns >= executors * self._within_ns
