"""Writes to a descriptor in a thread, so that nobody waits for who reads it.

A pipe or terminal whose reader stands still takes no more after some 64 KB, and the next write
waits for ever. A box must not: its event loop logs.
"""

import contextlib
import errno
import io
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

_BYTES_MAX = 1 << 20
"""Text that may wait; more is thrown away."""
_READER_GONE = (errno.EPIPE, errno.ECONNRESET, errno.EBADF)
"""Errors after which nobody reads any more. Others, such as those of a full disk, may pass."""


class BackgroundStream(io.TextIOBase):
    """A text stream whose writes never wait and never fail."""

    def __init__(
        self, descriptor: int, on_lost: Callable[[int], None], bytes_max: int = _BYTES_MAX
    ) -> None:
        """Begin to write.

        Args:
            descriptor: stays open and belongs to the caller.
            on_lost: called in the thread with the number of writes that were thrown away, once
                others are taken again.
            bytes_max: text that may wait.
        """
        self._descriptor = descriptor
        self._on_lost = on_lost
        self._bytes_max = bytes_max
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._lost = 0
        self._gone = False
        """Whether the reader has gone."""
        # A daemon: the process ends although nobody reads.
        threading.Thread(target=self._run, name="log-writer", daemon=True).start()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the bytes."""
        return "utf-8"

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether a person reads it."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Queue a text, or throw it away if too much waits."""
        data = text.encode("utf-8", "backslashreplace")
        with self._changed:
            if self._gone or not data:
                return len(text)
            if self._waiting_bytes + len(data) > self._bytes_max:
                self._lost += 1
                return len(text)
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify_all()
        return len(text)

    def drain(self, limit_s: float) -> bool:
        """Wait until everything is written, for at most a limit; return whether it is. Blocks."""
        deadline_s = time.monotonic() + limit_s
        with self._changed:
            while self._waiting_bytes and not self._gone:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._changed.wait(left_s):
                    return False
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                data = self._waiting.popleft()
            error = self._written(data)
            with self._changed:
                self._waiting_bytes -= len(data)
                self._gone = error is not None and error.errno in _READER_GONE
                if self._gone:
                    self._waiting.clear()
                # Told once a text is written again: what tells it writes here, too.
                lost, self._lost = (self._lost, 0) if error is None else (0, self._lost + 1)
                self._changed.notify_all()
            if self._gone:
                return
            if lost:
                self._on_lost(lost)

    def _written(self, data: bytes) -> OSError | None:
        """Write bytes, however long it takes; return why they are lost, None: they are not."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as error:
                return error
        return None


@contextlib.contextmanager
def drained(stream: BackgroundStream, limit_s: float) -> Iterator[BackgroundStream]:
    """Give a stream; at the end wait until it is written, for at most a limit."""
    try:
        yield stream
    finally:
        stream.drain(limit_s)


@contextlib.contextmanager
def stderr_in_background(limit_s: float) -> Iterator[None]:
    """Write to stderr in a thread meanwhile; at the end wait for it, for at most a limit.

    A program that says something then waits for no reader, and goes on although the disk is full.
    """
    before = sys.stderr
    try:
        descriptor = before.fileno()
    except (OSError, ValueError):  # in memory, as in tests
        yield
        return
    before.flush()
    sys.stderr = BackgroundStream(descriptor, lambda count: None)
    try:
        with drained(sys.stderr, limit_s):
            yield
    finally:
        sys.stderr = before
