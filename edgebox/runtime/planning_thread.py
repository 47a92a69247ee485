"""Runs the planner in a thread of its own, one plan after the other."""

import logging
import random
from collections.abc import Callable

from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.runtime.threads import DaemonPool, InOrder

_log = logging.getLogger(__name__)

Planner = Callable[[PlanningSnapshot, random.Random, int], Plan]
PLANNER_ITERATIONS_MAX = 1_000
"""Most iterations of a planner's search."""


class PlanningThread:
    """The thread, and the planner's randomness."""

    def __init__(
        self,
        planner: Planner,
        seed: int,
        from_thread: Callable[[Callable[[], None]], None],
        clock_ns: Callable[[], int],
        on_end: Callable[[Plan | None, int], None],
    ) -> None:
        """Start the thread.

        Args:
            planner: the pure planning function.
            seed: seeds its randomness.
            from_thread: calls a function on the loop; may be used in any thread.
            clock_ns: the box's clock.
            on_end: called on the loop with each plan, None where planning failed, and the
                nanoseconds that it took.
        """
        self._planner = planner
        self._rng = random.Random(seed)
        self._from_thread = from_thread
        self._clock_ns = clock_ns
        self._on_end = on_end
        self._thread = DaemonPool(1, "plan", InOrder())

    def compute(self, snapshot: PlanningSnapshot) -> None:
        """Compute a plan, after those ordered before."""
        # The seed is drawn on the loop so that it does not depend on threads' timing.
        rng = random.Random(self._rng.getrandbits(64))

        def work() -> None:
            started_ns = self._clock_ns()
            plan: Plan | None = None
            try:
                plan = self._planner(snapshot, rng, PLANNER_ITERATIONS_MAX)
            except Exception:
                _log.exception("planning failed; the plan in force stays")
            took_ns = self._clock_ns() - started_ns
            self._from_thread(lambda: self._on_end(plan, took_ns))

        self._thread.submit(work)

    def stop(self) -> None:
        """Begin nothing more."""
        self._thread.stop()
