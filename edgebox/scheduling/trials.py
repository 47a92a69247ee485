"""Decides when a frame that seems to have no chance is run all the same.

What is never admitted is never learned: an application that is shorter than the profile by far, or
has become so, would be dropped for ever. So now and then one frame that would be dropped as
infeasible is tried: where its application is hardly known on that variant, or has not been seen for
`STALE_NS`, while the box has nothing else to do, and in no more of an executor's time than
`sample_share`. It runs alone, and ends like any other request. Pure.

Such frames are the Scheduler's own and no policy's: by all that a policy knows they are hopeless.
"""

from edgebox.domain.models import VariantName
from edgebox.domain.requests import Request, RequestId
from edgebox.scheduling.expectations import STALE_NS, Expectations
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.parameters import SchedulerParameters


class Trials:
    """The one request that is being tried, and when another one may be."""

    def __init__(
        self, parameters: SchedulerParameters, learning: Learning, expectations: Expectations
    ) -> None:
        self._share = parameters.sample_share
        self._learning = learning
        self._expectations = expectations
        self._due_ns = 0
        self.request: Request | None = None
        """It has not been given to an executor."""

    def begin(self, request: Request, variant: VariantName, ready_ns: int, now_ns: int) -> bool:
        """Say whether a frame is tried, on a box that has nothing else to do; remember it then."""
        if self._share <= 0 or self.request is not None or now_ns < self._due_ns:
            return False
        if request.last_deadline_ns <= ready_ns or self._is_known(request, variant, now_ns):
            return False
        alone = self._expectations.alone(variant, request.app)
        if alone is None:
            return False
        self._due_ns = now_ns + round(alone.high_ns / self._share)
        self.request = request
        return True

    def _is_known(self, request: Request, variant: VariantName, now_ns: int) -> bool:
        known = self._learning.distribution(variant, request.app)
        return known is not None and known.known and now_ns - known.seen_ns <= STALE_NS

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
        """Forget it: it runs, or has ended otherwise."""
        self.request = None
