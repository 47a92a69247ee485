"""Owns the interface between the Scheduler and the policy that forms batches.

The Scheduler keeps the records: which cameras are connected, what waits, what runs, how each
request ended. A policy only orders and groups requests. The Scheduler notifies it of every fact as
it happens and asks it two questions: which requests have expired, and what an idle executor runs
next. A policy is as pure as the Scheduler: time is an argument, and nothing in it is random.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request, RequestId
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.affinity import NONE, Excluded
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch that an executor runs now."""

    variant: VariantName
    requests: tuple[RequestId, ...]
    batch_size: int
    """A profiled size, at least the number of requests; the rest is padding."""


class BatchingPolicy(Protocol):
    """The interface of a batching policy.

    The policy knows a request from `admitted` until it returns it (`expired`, `next_batch`) or the
    Scheduler removes it (`removed`).
    """

    wants_samples: bool
    """Whether it decides by application, so that running finished requests again helps it."""

    def attach(self, latencies: Latencies, learning: Learning, expectations: Expectations) -> None:
        """Set the expected times to decide by; called once, before anything else.

        `latencies` has them by variant and `learning` also by application; the Scheduler updates
        both. `expectations` has the values that admission uses. A policy that drops a request
        earlier than these values say loses admitted requests.
        """

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Note a request that is being decoded for this variant; no batch may contain it yet."""

    def prepared(self, request: RequestId, now_ns: int) -> None:
        """Note that an admitted request can now be put into a batch."""

    def removed(self, request: RequestId) -> None:
        """Forget a request that has ended (camera gone, overload, invalid)."""

    def batch_completed(self, batch: Infer, took_ns: int, now_ns: int) -> None:
        """Note how long a batch took, for policies with measurements of their own."""

    def expired(self, now_ns: int) -> list[RequestId]:
        """Remove and return the requests to be dropped now."""

    def next_batch(
        self, executor: ExecutorId, now_ns: int, excluded: Excluded = NONE
    ) -> Batch | None:
        """Remove and return the requests that this idle executor runs now; None: no batch now.

        Variants in `excluded` may not run on this executor.
        """

    def next_wakeup_ns(self) -> int | None:
        """Return the earliest instant at which an answer changes without any event."""

    def pending(self) -> Iterable[RequestId]:
        """Iterate over every request the policy knows; the invariants compare them."""
