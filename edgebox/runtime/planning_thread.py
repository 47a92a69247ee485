"""Runs the planner in a thread of its own, one plan after the other."""

import logging
from collections.abc import Callable

from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.runtime.callbacks import Notify
from edgebox.runtime.threads import DaemonPool, InOrder

_log = logging.getLogger(__name__)

PlanFunction = Callable[[PlanningSnapshot, int], Plan]
"""The pure function that answers a `ComputePlan`, with most parameters filled in."""
PLANNER_ITERATIONS_MAX = 1_000
"""Most iterations of a planner's search."""
OVERDUE_NS = 10_000_000_000
"""A plan of a hundred cameras takes a fiftieth of this."""


class PlanningThread:
    """The thread, and what is reported from it."""

    def __init__(
        self,
        planner: PlanFunction,
        from_thread: Callable[[Callable[[], None]], None],
        clock_ns: Callable[[], int],
        on_end: Callable[[Plan | None, int], None],
        notify: Notify = lambda level, text: None,
    ) -> None:
        """Start the thread.

        Args:
            planner: the pure planning function.
            from_thread: calls a function on the loop; may be used in any thread.
            clock_ns: the box's clock.
            on_end: called on the loop with each plan, None where planning failed, and the
                nanoseconds that it took.
            notify: called on the loop with what people should know of it, once each time.
        """
        self._planner = planner
        self._from_thread = from_thread
        self._clock_ns = clock_ns
        self._on_end = on_end
        self._notify = notify
        self._began_ns: int | None = None
        self._overdue = False
        self.last_error = ""
        """Why the last plan failed; empty: it did not."""
        self._thread = DaemonPool(1, "plan", InOrder())

    @property
    def computing_ns(self) -> int | None:
        """How long the present plan has taken so far; None: none is being computed."""
        return None if self._began_ns is None else self._clock_ns() - self._began_ns

    def check(self) -> None:
        """Say so, once, if a plan takes far too long; called now and then."""
        took_ns = self.computing_ns
        if took_ns is not None and took_ns >= OVERDUE_NS and not self._overdue:
            self._overdue = True
            waited_s = took_ns / 1e9
            self._notify(
                "warning",
                f"the planner has not ended for {waited_s:.0f} s: the last plan stays in force",
            )

    def compute(self, snapshot: PlanningSnapshot) -> None:
        """Compute a plan, after those ordered before."""
        self._began_ns = self._clock_ns()

        def work() -> None:
            started_ns = self._clock_ns()
            plan, problem = None, ""
            try:
                plan = self._planner(snapshot, PLANNER_ITERATIONS_MAX)
            except Exception as error:
                _log.exception("planning failed; the plan in force stays")
                problem = f"{type(error).__name__}: {error}"
            took_ns = self._clock_ns() - started_ns
            self._from_thread(lambda: self._ended(plan, problem, took_ns))

        self._thread.submit(work)

    def _ended(self, plan: Plan | None, problem: str, took_ns: int) -> None:
        before, self.last_error = self.last_error, problem
        if problem and not before:
            text = f"planning failed ({problem}): the last plan stays in force"
            self._notify("warning", text)
        elif not problem and (before or self._overdue):
            self._notify("info", "there is a new plan again")
        self._began_ns, self._overdue = None, False
        self._on_end(plan, took_ns)

    def stop(self) -> None:
        """Begin nothing more."""
        self._thread.stop()
