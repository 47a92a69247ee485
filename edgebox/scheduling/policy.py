"""Owns the seam between the Scheduler and what decides the next batch.

The Scheduler keeps the books (who is connected, what waits, what runs, how each request ended);
a policy only orders and groups. It is told every fact as it happens and asked two questions:
what can no longer make it, and what an idle executor runs next. A policy is as pure as the
Scheduler: time is an argument, and nothing in it is random.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request, RequestId
from edgebox.scheduling.affinity import NONE, Excluded
from edgebox.scheduling.events import Infer
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning


@dataclass(frozen=True, slots=True)
class Batch:
    """What an executor shall run now."""

    variant: VariantName
    requests: tuple[RequestId, ...]
    batch_size: int
    """A profiled size, at least as many as there are requests; the rest is padding."""


class BatchingPolicy(Protocol):
    """What decides who runs next.

    A request is known to the policy from `admitted` until the policy gives it away (`expired`,
    `next_batch`) or is told that it is gone (`removed`).
    """

    wants_samples: bool
    """Whether it decides by applications, so that running requests again, alone, is worth it."""

    def attach(self, latencies: Latencies, learning: Learning, expectations: Expectations) -> None:
        """Take the expected times to decide by; called once, before anything else.

        `latencies` has them by variant, `learning` by application too; the Scheduler feeds both.
        `expectations` has what admission goes by: who drops earlier loses what was admitted.
        """

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Note a request that is being decoded for this variant: not ready for a batch yet."""

    def prepared(self, request: RequestId, now_ns: int) -> None:
        """Note that an admitted request may now be put into a batch."""

    def removed(self, request: RequestId) -> None:
        """Forget a request that has ended (camera gone, overload, invalid)."""

    def batch_completed(self, batch: Infer, took_ns: int, now_ns: int) -> None:
        """Note how long a batch took, for policies with measurements of their own."""

    def expired(self, now_ns: int) -> list[RequestId]:
        """Give away the requests to be dropped now."""

    def next_batch(
        self, executor: ExecutorId, now_ns: int, excluded: Excluded = NONE
    ) -> Batch | None:
        """Give away the requests that this idle executor runs now; None: nothing, for now.

        Of a variant that is excluded from the executor nothing may run on it.
        """

    def next_wakeup_ns(self) -> int | None:
        """Return the earliest instant at which an answer changes if nothing else happens."""

    def pending(self) -> Iterable[RequestId]:
        """Iterate over every request it knows; the invariants compare it with the books."""
