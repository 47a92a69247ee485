"""Decides when a frame that is expected to miss its deadline is run all the same.

What is never admitted is never measured. An application whose requests are much shorter than the
profile, or have become so, would be dropped for ever; so would one whose estimate is too high by
mistake. So from time to time one frame is tried that would be dropped as infeasible, or that a
policy drops before its deadline. A trial runs in a batch of its own, only on a box that has nothing
else to do, and all trials together take at most `sample_share` of an executor's time. It ends like
any other request. The delay until the next trial depends on the time that this one took, not on its
expected time: if it was fast, the estimate is wrong and should be corrected soon. Pure.

The Scheduler owns such frames and no policy knows them, because by a policy's rules they have
expired.
"""

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import BatchId, Request, RequestId
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.scheduler_parameters import SchedulerParameters


class Trials:
    """The current trial, and when the next one may start."""

    def __init__(self, parameters: SchedulerParameters, expectations: Expectations) -> None:
        self._share = parameters.sample_share
        self._expectations = expectations
        self._due_ns = 0
        self._started_ns = 0
        self.running: BatchId | None = None
        """The last trial that was given to an executor, until it has ended."""
        self.request: Request | None = None
        """The trial that has not been given to an executor."""

    def begin(self, request: Request, variant: VariantName, ready_ns: int, now_ns: int) -> bool:
        """Say whether to try a frame, on a box that has nothing else to do; if so, remember it."""
        if self._share <= 0 or self.request is not None or now_ns < self._due_ns:
            return False
        if request.last_deadline_ns <= ready_ns:
            return False
        single_request = self._expectations.single_request(variant, request.app)
        if single_request is None:
            return False
        self._due_ns = now_ns + round(single_request.high_ns / self._share)
        self.request = request
        return True

    def is_of(self, request: RequestId) -> bool:
        """Say whether this request is the current trial."""
        return self.request is not None and self.request.id == request

    def late(self, now_ns: int) -> bool:
        """Say whether the last deadline of the waiting trial has passed."""
        return self.request is not None and self.request.last_deadline_ns < now_ns

    def due_ns(self) -> int | None:
        """Return when the waiting trial will be late; None: there is none."""
        return None if self.request is None else self.request.last_deadline_ns + 1

    def end(self) -> None:
        """Forget the trial, which ended without running."""
        self.request = None

    def started(self, batch: BatchId, now_ns: int) -> None:
        """Note that the trial runs."""
        self.request, self.running, self._started_ns = None, batch, now_ns

    def ran(self, batch: BatchId, took_ns: int) -> None:
        """Note what a batch took; if it was the trial, the next one must wait accordingly."""
        if self.running == batch:
            self._due_ns = self._started_ns + round(took_ns / self._share)
            self.running = None
