"""Threads for work in C libraries that may hang, and the end of a process in which one hangs.

A `ThreadPoolExecutor` is joined when the interpreter ends, so one picture or model that hangs keeps
the process alive for ever. These threads are daemons: nothing joins them. Ending the interpreter
while a thread is inside a library may crash, so in that case the process exits immediately.
"""

import contextlib
import functools
import itertools
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from edgebox.inference.executor import THREADS
from edgebox.runtime.background_stream import BackgroundStream
from edgebox.scheduling.supervised import ABANDONED_MAX

_log = logging.getLogger(__name__)

_LAST_LINES_S = 0.5
"""Time limit for writing the log's last lines."""

_Result = TypeVar("_Result")
_JobT = TypeVar("_JobT", bound="Job")

LEFT_BEHIND_MAX = ABANDONED_MAX
"""Most hung threads that are replaced: the cause would make the next one hang as well."""


Work = Callable[[], None]


class Job(Protocol):
    """Work in a thread."""

    @property
    def work(self) -> Work:
        """The function to run."""
        ...


class WorkQueue(Protocol[_JobT]):
    """Decides which work is next. One thread at a time calls it."""

    def put(self, sender: Hashable, work: Work) -> None:
        """Queue work of a sender."""
        ...

    def take(self) -> _JobT | None:
        """Return the next work; None: nothing waits, or other work must end first."""
        ...

    def done(self, job: _JobT, took_ns: int) -> None:
        """Record that a job ended after so much processor time, or was abandoned after so long."""
        ...

    def clear(self) -> None:
        """Discard everything that waits."""
        ...


@dataclass(frozen=True, slots=True)
class _Plain:
    work: Work


class InOrder:
    """A first-in-first-out queue."""

    def __init__(self) -> None:
        self._waiting: deque[_Plain] = deque()

    def put(self, sender: Hashable, work: Work) -> None:
        """Queue work."""
        self._waiting.append(_Plain(work))

    def take(self) -> _Plain | None:
        """Return the oldest work."""
        return self._waiting.popleft() if self._waiting else None

    def done(self, job: _Plain, took_ns: int) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Discard everything that waits."""
        self._waiting.clear()


@dataclass(eq=False, slots=True)
class _Running:
    """The job of a thread."""

    job: Job
    began_ns: int


@dataclass(frozen=True, slots=True)
class HangLimit:
    """The time after which a thread counts as hanging, and the callbacks of a pool for that
    case."""

    limit_ns: int
    on_hang: Callable[[str], None]
    """Called with a sentence about each abandoned thread."""
    on_wedged: Callable[[], None]
    """Called once when all threads hang and are no longer replaced."""


class DaemonPool:
    """Threads that run work in an order that a queue decides.

    A thread that does not return within a limit is abandoned and replaced, until `LEFT_BEHIND_MAX`
    threads hang: more would hang as well. The pool checks this whenever work is submitted.
    """

    def __init__(
        self,
        threads: int,
        name: str,
        queue: WorkQueue[Any],
        *,
        hang_limit: HangLimit | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Start the threads.

        Args:
            threads: number of threads.
            name: suffix of the threads' names.
            queue: decides what is next; the pool owns it from now on.
            hang_limit: None: threads are waited for, however long they take.
            clock_ns: a monotonic clock.
        """
        self._name = name
        self._queue = queue
        self._hang_limit = hang_limit
        self._clock_ns = clock_ns
        self._changed = threading.Condition()
        self._stopped = False
        self._numbers = itertools.count()
        self._threads = threads
        self._running: list[_Running] = []
        self._left_behind = 0
        """Threads that were replaced and still hang."""
        self._wedged = False
        for _ in range(threads):
            self._start_thread()

    def submit(self, work: Work, sender: Hashable = None) -> None:
        """Queue work, which must not raise. Does nothing after `stop`."""
        with self._changed:
            if self._stopped:
                return
            tell = self._replace_hanging()
            self._queue.put(sender, work)
            self._changed.notify()
        for each in tell:
            each()

    def hanging(self) -> tuple[int, int]:
        """Return how many threads hang, abandoned ones included, and how many do not."""
        limit = self._hang_limit
        with self._changed:
            now_ns = self._clock_ns()
            late = [
                of
                for of in self._running
                if limit is not None and now_ns - of.began_ns >= limit.limit_ns
            ]
            return self._left_behind + len(late), self._threads - len(late)

    def change(self, change: Callable[[], None]) -> None:
        """Change the queue, after which threads look for work again."""
        with self._changed:
            change()
            self._changed.notify_all()

    def stop(self) -> None:
        """Start no more work. Does not wait for running work."""
        with self._changed:
            self._stopped = True
            self._queue.clear()
            self._changed.notify_all()

    def _start_thread(self) -> None:
        # A daemon thread does not keep the process alive.
        name = f"{THREADS}{self._name}-{next(self._numbers)}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _replace_hanging(self) -> list[Callable[[], None]]:
        """Abandon threads that hang; return the notifications to call."""
        limit = self._hang_limit
        if limit is None:
            return []
        now_ns = self._clock_ns()
        tell: list[Callable[[], None]] = []
        hanging = [of for of in self._running if now_ns - of.began_ns >= limit.limit_ns]
        for of in hanging[: LEFT_BEHIND_MAX - self._left_behind]:
            self._running.remove(of)
            self._queue.done(of.job, now_ns - of.began_ns)
            self._left_behind += 1
            self._start_thread()
            text = (
                f"a thread ({self._name}) did not return within {limit.limit_ns / 1e9:.0f} s "
                "and is abandoned; another one takes its place"
            )
            tell.append(functools.partial(limit.on_hang, text))
        wedged = len(hanging) == self._threads and not tell
        if wedged and not self._wedged:
            tell.append(limit.on_wedged)
        self._wedged = wedged
        return tell

    def _serve(self) -> None:
        while (running := self._next()) is not None:
            # On a busy machine work lasts longer, but computes no more.
            before_ns = time.thread_time_ns()
            try:
                running.job.work()
            except BaseException:  # also what would end the thread: nobody would notice that
                _log.exception("work in a thread failed")
            with self._changed:
                if running not in self._running:
                    self._left_behind -= 1
                    return
                self._running.remove(running)
                self._queue.done(running.job, time.thread_time_ns() - before_ns)
                self._changed.notify()  # another may have been waiting for a thread to be free
            # Free its memory now, not when the next work arrives.
            del running

    def _next(self) -> _Running | None:
        with self._changed:
            while not self._stopped:
                job = self._queue.take()
                if job is not None:
                    running = _Running(job, self._clock_ns())
                    self._running.append(running)
                    return running
                self._changed.wait()
        return None


def within(
    limit_s: float, work: Callable[[], _Result], name: str, too_late: Callable[[_Result], None]
) -> _Result:
    """Run a function that may hang in a thread, and wait for at most a limit. Blocks.

    Args:
        limit_s: how long to wait.
        work: the function; its exceptions are raised here.
        name: suffix of the thread's name.
        too_late: called in that thread with a result that arrives after the limit.

    Raises:
        TimeoutError: it did not end within the limit.
    """
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # every exception belongs to the caller
            done.set_exception(error)

    def ended(late: Future[_Result]) -> None:
        if late.exception() is None:
            too_late(late.result())

    thread = threading.Thread(target=run, name=f"{THREADS}{name}", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive() and not done.done():
        done.add_done_callback(ended)
        raise TimeoutError(f"not done within {limit_s:g} s")
    return done.result()


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
        # Whether they hang, or do what Ctrl-C has made useless, nobody can tell.
        _log.warning("ended without waiting for the work of %s", ", ".join(names))
        leave(status)


def leave(status: int) -> None:
    """End the process now: nothing is joined, no destructor runs."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
            if isinstance(stream, BackgroundStream):
                stream.drain(_LAST_LINES_S)
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
