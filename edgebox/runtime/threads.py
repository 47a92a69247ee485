"""Owns threads for work in C libraries that may hang, and the end of a process in which one does.

A `ThreadPoolExecutor` is joined when the interpreter ends, so one picture or model that hangs keeps
the process alive for ever. These threads are daemons: nobody waits for them. Ending the interpreter
while a thread is inside a library may crash it, so where one still is, the process ends at once.
"""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue

from edgebox.inference.executor import THREADS

_log = logging.getLogger(__name__)


class DaemonPool:
    """Threads that do work in the order in which it comes."""

    def __init__(self, threads: int, name: str) -> None:
        """Start the threads; `name` follows what all of edgebox's threads begin with."""
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = threads
        self._stopped = False
        for number in range(threads):
            threading.Thread(
                target=self._run, name=f"{THREADS}{name}-{number}", daemon=True
            ).start()

    def submit(self, work: Callable[[], None]) -> None:
        """Have something done; it may not raise. Nothing happens once the pool was stopped."""
        self._work.put(work)

    def stop(self) -> None:
        """Begin nothing more. Does not wait for what is being done."""
        self._stopped = True
        for _ in range(self._threads):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None and not self._stopped:
            try:
                work()
            except Exception:  # the thread must go on
                _log.exception("work in a thread failed")
            # Frees what it holds now, not when the next work comes.
            del work


def hanging(patience_s: float = 0.5) -> list[str]:
    """Return the names of edgebox's threads that have not ended within a while."""
    until_s = time.monotonic() + patience_s
    found = [thread for thread in threading.enumerate() if thread.name.startswith(THREADS)]
    for thread in found:
        thread.join(max(0.0, until_s - time.monotonic()))
    return [thread.name for thread in found if thread.is_alive()]


@contextlib.contextmanager
def certain_end() -> Iterator[None]:
    """End the process with this block if a thread hangs by then; leave it as usual otherwise."""
    try:
        yield
    except SystemExit as end:
        _end_if_hanging(_status(end))
        raise
    _end_if_hanging(0)


def _status(end: SystemExit) -> int:
    return end.code if isinstance(end.code, int) else int(end.code is not None)


def _end_if_hanging(status: int) -> None:
    names = hanging()
    if names:
        _log.warning("threads that hang are left behind: %s", ", ".join(names))
        leave(status)


def leave(status: int) -> None:
    """End the process now: nothing is joined, no destructor runs."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def leave_within(patience_s: float, status: int) -> threading.Timer:
    """End the process with `status` unless it has ended by itself, or the timer is cancelled."""

    def end() -> None:
        _log.critical("the process did not end within %g s and is ended", patience_s)
        leave(status)

    timer = threading.Timer(patience_s, end)
    timer.daemon = True
    timer.start()
    return timer
