"""Keeps a CUDA graph's recording apart from all other work on GPUs in this process.

ONNX Runtime records in CUDA's global mode: while a thread records, calls of other threads that
take or free memory, copy or synchronise can fail, and break the recording. So a recording has the
GPUs of the process to itself, and other work waits for it, for a bounded time: whatever hangs in a
driver keeps nothing else from running.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

RECORDING_S = 0.5
"""How long others wait for a recording, and one for others. Below the second that any batch may
take (`edgebox.scheduling.supervision`), so that waiting loses no executor."""


class RecordingGate:
    """Many work at a time, or one records."""

    def __init__(self, patience_s: float = RECORDING_S) -> None:
        """Start idle; nobody waits longer than `patience_s`."""
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._working = 0
        self._recording = False

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work on a GPU, once nothing is recorded any more or the recording takes too long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._recording, self._patience_s)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextmanager
    def recording(self) -> Iterator[bool]:
        """Yield whether the GPUs are the caller's alone; False: somebody works for too long."""
        with self._changed:
            alone = not self._recording
            if alone:
                self._recording = True  # keeps others from beginning
                alone = self._changed.wait_for(lambda: not self._working, self._patience_s)
                self._recording = alone
                self._changed.notify_all()
        try:
            yield alone
        finally:
            if alone:
                with self._changed:
                    self._recording = False
                    self._changed.notify_all()


GATE = RecordingGate()
"""The process's."""
