"""Owns the frames and crops that have arrived and not ended, and tells whoever waits for each."""

import asyncio
import logging
from collections.abc import Iterable, Iterator

from edgebox.domain.requests import RequestId
from edgebox.runtime.frames import FrameResult, PendingFrame

_log = logging.getLogger(__name__)


class PendingFrames:
    """All pending frames and crops, by request. Every one ends exactly once."""

    def __init__(self) -> None:
        """Start without frames."""
        self._frames: dict[RequestId, PendingFrame] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._frames)

    def __contains__(self, request: RequestId) -> bool:
        return request in self._frames

    def __iter__(self) -> Iterator[RequestId]:
        """Return all requests as they are now; they may end meanwhile."""
        return iter(list(self._frames))

    def __getitem__(self, request: RequestId) -> PendingFrame:
        return self._frames[request]

    @property
    def frames(self) -> int:
        """How many there are, without crops."""
        return sum(frame.parent is None for frame in self._frames.values())

    def of(self, requests: Iterable[RequestId]) -> list[PendingFrame]:
        """Return those of these requests that are still pending, in order."""
        return [self._frames[request] for request in requests if request in self._frames]

    def add(self, frames: Iterable[PendingFrame]) -> None:
        """Begin to wait for frames or crops."""
        for frame in frames:
            self._frames[frame.request.id] = frame
            self._empty.clear()

    def end(self, request: RequestId) -> PendingFrame:
        """Remove one that has ended, and free its decoded picture if nobody else has it."""
        frame = self._frames.pop(request)
        frame.ended = True
        frame.picture = None
        frame.features = ()
        if not self._frames:
            self._empty.set()
        return frame

    async def until_empty(self) -> None:
        """Wait until every frame has ended."""
        await self._empty.wait()


def report_end(frame: PendingFrame, ending: FrameResult) -> None:
    """Tell the listener of a frame or crop how it ended; its own crops are forgotten."""
    try:
        frame.on_end(frame, ending)
    except Exception:  # a listener's defect must not stop other frames
        _log.exception("the listener of request %d failed", frame.request.id)
    if frame.parent is None:
        frame.forget_crops()
