"""Calls functions on the event loop: for other threads, and at the instant the core waits for."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

_log = logging.getLogger(__name__)


class LoopCalls:
    """One event loop and one timer. Does nothing before `bind` and after `stop`."""

    def __init__(self, on_wake: Callable[[], None], clock_ns: Callable[[], int]) -> None:
        """Start without a loop; the timer calls `on_wake`."""
        self._on_wake = on_wake
        self._clock_ns = clock_ns
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fires_ns = 0
        """When the timer fires, if there is one."""
        self._due_ns: int | None = None
        """The instant that the core waits for."""
        self._reports = deque[Callable[[], None]]()
        """What threads have reported and the loop has not called yet."""
        self._ended = deque[Callable[[], None]]()
        """The same, of work that ended on executors: called first."""
        self._called = False
        """Whether the loop is going to call what is reported now."""
        self._catching_up = False

    def bind(self) -> None:
        """Use the running loop from now on."""
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Call nothing any more."""
        self.cancel_wakeup()
        self._loop = None

    def from_thread(self, report: Callable[[], None]) -> None:
        """Call a function on the loop soon. May be used in any thread."""
        self._report(report, self._reports)

    def ended(self, report: Callable[[], None]) -> None:
        """Do the same for work that ended on an executor, before what else was reported.

        Every report makes the core look at the clock, and what has not come back by then may hang.
        """
        self._report(report, self._ended)

    def _report(self, report: Callable[[], None], reports: deque[Callable[[], None]]) -> None:
        loop = self._loop
        if loop is None:
            return
        reports.append(report)
        if self._called:
            return
        self._called = True
        try:
            loop.call_soon_threadsafe(self._reported)
        except RuntimeError:  # the loop closed while a thread was finishing
            _log.debug("a report came after the loop had closed")

    def catch_up(self) -> None:
        """Call what threads have reported so far, in order, work that ended first.

        A loop that was held up learns here what has happened meanwhile before it looks at the
        clock: a batch that has come back does not hang. What raises is logged.
        """
        if self._catching_up:
            return
        self._catching_up = True
        for reports in (self._ended, self._reports):
            for _ in range(len(reports)):
                try:
                    reports.popleft()()
                except Exception:
                    _log.exception("a report of a thread failed")
        self._catching_up = False

    def wake_at(self, wakeup_ns: int | None) -> None:
        """Set the instant of the box's clock at which to wake; None: no wake-up is needed.

        A timer that fires before is kept: it waits for the rest then. Nearly every request moves
        the instant, and nearly always to a later one.
        """
        self._due_ns = wakeup_ns
        if wakeup_ns is None or self._loop is None:
            return
        if self._timer is None or wakeup_ns < self._fires_ns:
            self._arm(wakeup_ns, self._loop)

    def overdue_ns(self, now_ns: int) -> int:
        """Return for how long the instant that the core waits for has passed; 0: it has not."""
        return 0 if self._due_ns is None else max(0, now_ns - self._due_ns)

    def soon(self, call: Callable[[], None]) -> None:
        """Call a function when all that the loop has to do already is done."""
        if self._loop is not None:
            self._loop.call_soon(call)

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        """Call a function after a while, or now, unless everything has stopped by then."""
        if delay_s <= 0:
            call()
        elif self._loop is not None:
            self._loop.call_later(delay_s, lambda: call() if self._loop is not None else None)

    def cancel_wakeup(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _reported(self) -> None:
        self._called = False
        self.catch_up()

    def _arm(self, fires_ns: int, loop: asyncio.AbstractEventLoop) -> None:
        self.cancel_wakeup()
        self._fires_ns = fires_ns
        delay_s = max(0, fires_ns - self._clock_ns()) / 1e9
        self._timer = loop.call_later(delay_s, self._fired)

    def _fired(self) -> None:
        self._timer = None
        due_ns, loop = self._due_ns, self._loop
        if due_ns is None or loop is None:
            return
        if due_ns > self._clock_ns():
            self._arm(due_ns, loop)
        else:
            self._on_wake()
