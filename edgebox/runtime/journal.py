"""The flight recorder: the Scheduler's events and orders of the last minute.

A ring of segments. Each begins with the Scheduler's whole state and holds the calls that followed
as lines of JSON, so the ring can be replayed from its beginning. Lines are encoded soon and kept
as bytes, so recorded objects do not burden the garbage collector. A recorder that fails logs the
error and stops; it never affects the box.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import orjson

from edgebox import __version__
from edgebox.runtime.entries import JournalError, write_entry, write_raised
from edgebox.scheduling.actions import Action
from edgebox.scheduling.checkpoint import write_state
from edgebox.scheduling.events import Event
from edgebox.scheduling.scheduler import Scheduler
from edgebox.storage.wall_clock import wall_clock_ms

_log = logging.getLogger(__name__)

FORMAT = "edgebox-journal"
FORMAT_VERSION = 3
_WINDOW_NS = 60_000_000_000
_BYTES_MAX = 256 << 20
_SEGMENTS = 4
"""Segments in the window (or in the byte limit); each begins with a state."""
_BLOCK_BYTES = 1 << 16
_NEVER = 1 << 63


class NoJournalError(JournalError):
    """No journal is being recorded."""

    http_status = 503
    code = "no_journal"
    title = "There is no journal"


def _nothing() -> None:
    """Have nothing to complete."""


@dataclass(slots=True)
class _Segment:
    began_ns: int
    state: bytes
    blocks: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    entries: int = 0


@dataclass(frozen=True, slots=True)
class Recording:
    """An immutable copy of a journal; any thread may write it to a file."""

    header: bytes
    state: bytes
    blocks: tuple[bytes, ...]
    entries: int

    def lines(self) -> Iterator[bytes]:
        """Yield the file of docs/how-to/journal.md in pieces that end with a line."""
        yield self.header
        yield self.state
        yield from self.blocks


class Journal:
    """A ring of segments, bounded in time and in bytes."""

    def __init__(self, window_ns: int = _WINDOW_NS, bytes_max: int = _BYTES_MAX) -> None:
        """Keep the last `window_ns` (up to one segment more) in about `bytes_max`."""
        self.failure = ""
        """Why recording stopped; empty: it goes on."""
        self._window_ns = window_ns
        self._segment_ns = window_ns // _SEGMENTS
        self._segment_bytes = bytes_max // (_SEGMENTS + 1)
        self._segments: deque[_Segment] = deque()
        self._block = bytearray()
        self.due_ns = 0
        """When the next `checkpoint` is due."""
        self._scheduler: Scheduler | None = None
        self._clock_ns: Callable[[], int] = time.monotonic_ns
        self._complete: Callable[[], None] = _nothing

    def attach(
        self,
        scheduler: Scheduler,
        clock_ns: Callable[[], int],
        complete: Callable[[], None] = _nothing,
    ) -> None:
        """Record another Scheduler from now on.

        Args:
            scheduler: whose calls are recorded.
            clock_ns: the clock of its events.
            complete: records the calls that have not been recorded yet; called before a reading.
        """
        self._scheduler, self._clock_ns, self._complete = scheduler, clock_ns, complete
        self._segments.clear()
        self.checkpoint(clock_ns())

    def record(self, now_ns: int, event: Event | None, actions: list[Action]) -> None:
        """Append one call."""
        if self.failure:
            return
        try:
            self._append(write_entry(now_ns, event, actions))
        except Exception as error:  # the recorder must not stop the box
            self._fail(error)

    def record_raised(self, now_ns: int, event: Event | None, raised: str) -> None:
        """Append a call that raised an exception."""
        if self.failure:
            return
        try:
            self._append(write_raised(now_ns, event, raised))
        except Exception as error:
            self._fail(error)

    def _append(self, line: bytes) -> None:
        self._block += line
        segment = self._segments[-1]
        segment.entries += 1
        if len(self._block) >= _BLOCK_BYTES:
            self._seal(segment)

    def _seal(self, segment: _Segment) -> None:
        segment.blocks.append(bytes(self._block))
        segment.size_bytes += len(self._block)
        self._block.clear()
        if segment.size_bytes >= self._segment_bytes:
            self.due_ns = 0

    def checkpoint(self, now_ns: int) -> None:
        """Begin a segment with the Scheduler's state; forget what is too old or too much."""
        if self.failure:
            return
        try:
            state = orjson.dumps({"state": write_state(self._recorded)}) + b"\n"
        except Exception as error:
            self._fail(error)
            return
        segments = self._segments
        if segments:
            self._seal(segments[-1])
        segments.append(_Segment(now_ns, state, size_bytes=len(state)))
        while len(segments) > 1 and segments[1].began_ns <= now_ns - self._window_ns:
            segments.popleft()
        while len(segments) > _SEGMENTS + 1:
            segments.popleft()
        self.due_ns = now_ns + self._segment_ns

    @property
    def _recorded(self) -> Scheduler:
        if self._scheduler is None:
            raise NoJournalError("there is no journal before the models are ready")
        return self._scheduler

    def _fail(self, error: Exception) -> None:
        self.failure = f"{type(error).__name__}: {error}"
        self._segments.clear()
        self._block.clear()
        self.due_ns = _NEVER
        _log.error("the journal has stopped: %s", self.failure)

    def recording(self) -> Recording:
        """Return what is kept, from the oldest state on. Cheap: only the latest block is copied.

        Raises:
            NoJournalError: nothing is recorded.
        """
        scheduler = self._recorded
        self._complete()
        if self.failure:
            raise NoJournalError(f"the journal has stopped ({self.failure})")
        blocks = [block for segment in self._segments for block in segment.blocks]
        entries = sum(segment.entries for segment in self._segments)
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "edgebox": __version__,
            "policy": type(scheduler.policy).__name__,
            "parameters": scheduler.parameters,
            "entries": entries,
            "clock": {"ns": self._clock_ns(), "unix_ms": wall_clock_ms()},
        }
        return Recording(
            orjson.dumps(header) + b"\n",
            self._segments[0].state,
            (*blocks, bytes(self._block)),
            entries,
        )

    def tail(self, entries: int = 20) -> tuple[str, ...]:
        """Return the last lines, newest last."""
        self._complete()
        blocks = self._segments[-1].blocks[-1:] if self._segments else []
        lines = b"".join((*blocks, self._block)).splitlines()
        return tuple(line.decode() for line in lines[-entries:])
