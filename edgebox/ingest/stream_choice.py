"""Decides which of a camera's two streams is read: the one that the plan needs. Pure."""

from dataclasses import dataclass
from typing import Literal

Stream = Literal["main", "sub"]
SETTLED_NS = 10_000_000_000
"""The smaller stream must have been enough for so long before it is read: opening costs time."""


@dataclass(slots=True)
class StreamChoice:
    """The choice of one camera."""

    reading: Stream = "main"
    sub_px: tuple[int, int] | None = None
    """(width, height) of the smaller stream; None: it has not been seen yet."""
    _enough_since_ns: int | None = None

    def wanted(self, advised_px: tuple[int, int], now_ns: int) -> Stream:
        """Return the stream to be read.

        Args:
            advised_px: (width, height) that the plan wants pictures to have.
            now_ns: the present.
        """
        enough = self.sub_px is None or (
            advised_px[0] <= self.sub_px[0] and advised_px[1] <= self.sub_px[1]
        )
        if not enough:
            self._enough_since_ns = None
            return "main"
        if self._enough_since_ns is None:
            self._enough_since_ns = now_ns
        if self.reading == "sub" or now_ns - self._enough_since_ns >= SETTLED_NS:
            return "sub"
        return "main"

    def failed(self, now_ns: int) -> None:
        """Note that the smaller stream cannot be read now: the main one is read meanwhile."""
        self.reading = "main"
        self._enough_since_ns = now_ns
