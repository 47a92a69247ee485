"""Carries out the core's orders about executors: abandons lost ones and opens them again.

`scheduling.supervision` decides. Here are the threads that may hang, and the notices to people.
Lives on the event loop.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, LatencyProfile
from edgebox.inference.executor import THREADS, Executor
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.loading import Loader, Loads
from edgebox.scheduling.actions import Abandon, ExitProcess, Open
from edgebox.scheduling.events import Event, ExecutorStarted, MemoryLimited, OpenFailed
from edgebox.scheduling.supervised import HANGS_MAX
from edgebox.scheduling.supervision import FAILURES_MAX, REFUSALS_MAX

_log = logging.getLogger(__name__)

FromThread = Callable[[Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class Reopened:
    """A warm, idle executor that replaces a lost one."""

    executor: Executor
    profiles: tuple[LatencyProfile, ...]
    limited: MemoryLimited | None = None
    """Its resident weights, if its memory is limited."""
    loader: Loader | None = None
    problems: tuple[str, ...] = ()
    """Models that it can no longer run, and why."""
    on_use: Callable[[], None] = lambda: None
    """Called on the loop once it is in use."""
    present: Callable[[], tuple[LatencyProfile, ...]] | None = None
    """Returns, on the loop, the profiles with which it is taken into use, where they may have
    changed since it was warmed; None: `profiles`."""


Opener = Callable[[ExecutorId], Reopened]
"""Opens an executor again and warms it. Blocks, in a thread of its own; raises on failure."""


@dataclass(frozen=True, slots=True)
class LastError:
    """The last error of an executor."""

    at_ns: int
    """Instant on the box's clock."""
    text: str


class Supervisor:
    """The executors by name, and the errors of lost ones."""

    def __init__(
        self,
        executors: dict[ExecutorId, Executor],
        loads: Loads,
        from_thread: FromThread,
        *,
        opener: Opener | None,
        feed: Callable[[Event], None],
        on_abandon: Callable[[ExecutorId], object],
        callbacks: Callbacks,
        clock_ns: Callable[[], int],
    ) -> None:
        """Supervise from now on.

        Args:
            executors: by name; executors that are opened again replace lost ones.
            loads: loads weights where memory is limited.
            from_thread: calls a function on the loop; may be used in any thread.
            opener: opens an executor again; None: lost executors stay lost.
            feed: informs the core.
            on_abandon: called with each executor that is lost.
            callbacks: informed of executors that are lost, opened again or given up.
            clock_ns: the box's clock.
        """
        self._executors = executors
        self._loads = loads
        self._from_thread = from_thread
        self._opener = opener
        self._feed = feed
        self._on_abandon = on_abandon
        self._callbacks = callbacks
        self._clock_ns = clock_ns
        self.last_errors: dict[ExecutorId, LastError] = {}
        """Errors of batches, losses and attempts to open an executor again."""
        self.last_losses: dict[ExecutorId, str] = {}
        """Why each executor was last lost."""

    def carry_out(self, order: Abandon | Open | ExitProcess) -> None:
        """Carry out an order."""
        match order:
            case Abandon(executor):
                self._on_abandon(executor)
                self._abandon(order)
            case Open(executor):
                self._begin_to_open(executor)
            case ExitProcess():
                self._callbacks.on_give_up()

    def failed(self, executor: ExecutorId, text: str) -> None:
        """Record an error."""
        self.last_errors[executor] = LastError(self._clock_ns(), text)

    def _abandon(self, order: Abandon) -> None:
        text = self._why(order)
        self.failed(order.executor, text)
        self.last_losses[order.executor] = text
        if order.cause is not LossCause.OPENING:
            self._executors[order.executor].abandon()
        wedged = "; it is wedged and is not opened again" if order.wedged else ""
        self._callbacks.notify("error", f"{order.executor} is lost: {text}{wedged}")
        if order.wedged:
            self._callbacks.on_not_opened(order.executor)

    def _why(self, order: Abandon) -> str:
        waited_s = order.waited_ns / 1e9
        if order.cause is LossCause.OPENING:
            return (
                f"opening it again did not end within {waited_s:.0f} s; its device needs "
                "another process"
            )
        if order.cause in (LossCause.FAILING, LossCause.REFUSING):
            last = self.last_errors.get(order.executor)
            why = "" if last is None else f" ({last.text})"
            many = f"{FAILURES_MAX} batches in a row failed"
            if order.cause is LossCause.REFUSING:
                many = f"its server refused {REFUSALS_MAX} batches in a row"
            return f"{many}, the last of {order.variant}{why}"
        if order.cause is LossCause.GONE:
            last = self.last_errors.get(order.executor)
            return "what runs its batches has ended" if last is None else last.text
        if order.cause is LossCause.LOADING:
            return f"weights did not load within {waited_s:.0f} s"
        if order.variant is None:
            return "an operation other than a batch did not return"
        text = f"a batch of {order.variant} did not end within {waited_s:.1f} s"
        if order.excluded:
            text += f", {HANGS_MAX} times in a row; it is not run there again before a restart"
        return text

    def _begin_to_open(self, executor: ExecutorId) -> None:
        """Open an executor again in a daemon thread."""
        thread = threading.Thread(
            target=self._open, args=(executor,), name=f"{THREADS}open-{executor}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # the process may have no more threads
            self._open_failed(executor, f"no thread could be started ({error})")

    def _open(self, executor: ExecutorId) -> None:
        began_ns = self._clock_ns()
        try:
            if self._opener is None:
                raise EdgeboxError("it cannot be opened again")
            reopened = self._opener(executor)
        except Exception as error:  # the core must be informed of any error
            if not isinstance(error, EdgeboxError):
                _log.critical("opening %s failed", executor, exc_info=error)
            text = str(error)
            self._from_thread(lambda: self._open_failed(executor, text))
            return
        took_ns = self._clock_ns() - began_ns
        self._from_thread(lambda: self._opened(executor, reopened, took_ns))

    def _open_failed(self, executor: ExecutorId, text: str) -> None:
        self.failed(executor, text)
        self._callbacks.notify("warning", f"{executor} cannot be opened again: {text}")
        self._feed(OpenFailed(executor))
        self._callbacks.on_not_opened(executor)

    def _opened(self, executor: ExecutorId, reopened: Reopened, took_ns: int) -> None:
        try:
            if reopened.loader is not None:
                self._loads.use(executor, reopened.loader)
            reopened.on_use()
        except RuntimeError as error:  # the process may have no more threads
            reopened.executor.abandon()
            self._open_failed(executor, f"no thread could be started ({error})")
            return
        self._executors[executor] = reopened.executor
        self._callbacks.notify("info", f"{executor} is back: {reopened.executor.device}")
        for problem in reopened.problems:
            self._callbacks.notify("error", problem)
        profiles = reopened.profiles if reopened.present is None else reopened.present()
        self._feed(ExecutorStarted(executor, profiles, took_ns, reopened.limited))
