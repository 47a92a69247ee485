"""Runs the planner in a thread of its own, one plan after the other."""

import logging
from collections.abc import Callable

from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.runtime.threads import DaemonPool, InOrder

_log = logging.getLogger(__name__)

PlanFunction = Callable[[PlanningSnapshot, int], Plan]
"""The pure function that answers a `ComputePlan`, with most parameters filled in."""
PLANNER_ITERATIONS_MAX = 1_000
"""Most iterations of a planner's search."""


class PlanningThread:
    """The thread, and what is reported from it."""

    def __init__(
        self,
        planner: PlanFunction,
        from_thread: Callable[[Callable[[], None]], None],
        clock_ns: Callable[[], int],
        on_end: Callable[[Plan | None, int], None],
    ) -> None:
        """Start the thread.

        Args:
            planner: the pure planning function.
            from_thread: calls a function on the loop; may be used in any thread.
            clock_ns: the box's clock.
            on_end: called on the loop with each plan, None where planning failed, and the
                nanoseconds that it took.
        """
        self._planner = planner
        self._from_thread = from_thread
        self._clock_ns = clock_ns
        self._on_end = on_end
        self._thread = DaemonPool(1, "plan", InOrder())

    def compute(self, snapshot: PlanningSnapshot) -> None:
        """Compute a plan, after those ordered before."""

        def work() -> None:
            started_ns = self._clock_ns()
            plan: Plan | None = None
            try:
                plan = self._planner(snapshot, PLANNER_ITERATIONS_MAX)
            except Exception:
                _log.exception("planning failed; the plan in force stays")
            took_ns = self._clock_ns() - started_ns
            self._from_thread(lambda: self._on_end(plan, took_ns))

        self._thread.submit(work)

    def stop(self) -> None:
        """Begin nothing more."""
        self._thread.stop()
