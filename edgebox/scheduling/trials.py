"""Decides when a frame that seems to have no chance is run all the same.

What is never admitted is never learned: an application that is shorter than the profile by far, or
has become so, would be dropped for ever, and so would be whoever is thought to be slow by mistake.
So now and then one frame that would be dropped as infeasible, or that a policy gives up while its
deadline is still to come, is tried: while the box has nothing else to do, and in no more of an
executor's time than `sample_share`. It runs alone, and ends like any other request. The next one
waits as long as this one's time says, not as long as it was thought to take: if it was quick, what
is believed of it is wrong and is soon seen to be. Pure.

Such frames are the Scheduler's own and no policy's: by all that a policy knows they are hopeless.
"""

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import BatchId, Request, RequestId
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.scheduler_parameters import SchedulerParameters


class Trials:
    """The one request that is being tried, and when another one may be."""

    def __init__(self, parameters: SchedulerParameters, expectations: Expectations) -> None:
        self._share = parameters.sample_share
        self._expectations = expectations
        self._due_ns = 0
        self._started_ns = 0
        self.running: BatchId | None = None
        """The last one that was given to an executor, until it is done."""
        self.request: Request | None = None
        """It has not been given to an executor."""

    def begin(self, request: Request, variant: VariantName, ready_ns: int, now_ns: int) -> bool:
        """Say whether a frame is tried, on a box that has nothing else to do; remember it then."""
        if self._share <= 0 or self.request is not None or now_ns < self._due_ns:
            return False
        if request.last_deadline_ns <= ready_ns:
            return False
        alone = self._expectations.alone(variant, request.app)
        if alone is None:
            return False
        self._due_ns = now_ns + round(alone.high_ns / self._share)
        self.request = request
        return True

    def is_of(self, request: RequestId) -> bool:
        """Say whether it is this request that is being tried."""
        return self.request is not None and self.request.id == request

    def late(self, now_ns: int) -> bool:
        """Say whether there is one whose last deadline is over before it was run."""
        return self.request is not None and self.request.last_deadline_ns < now_ns

    def due_ns(self) -> int | None:
        """Return when the one that waits is late; None: there is none."""
        return None if self.request is None else self.request.last_deadline_ns + 1

    def end(self) -> None:
        """Forget it: it has ended without running."""
        self.request = None

    def started(self, batch: BatchId, now_ns: int) -> None:
        """Note that it runs."""
        self.request, self.running, self._started_ns = None, batch, now_ns

    def ran(self, batch: BatchId, took_ns: int) -> None:
        """Note what a batch took: if it was the one that was tried, so much is to be paid for."""
        if self.running == batch:
            self._due_ns = self._started_ns + round(took_ns / self._share)
            self.running = None
