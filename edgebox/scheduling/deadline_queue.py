"""Owns the requests that a policy knows, ordered by deadline. Pure.

Decisions need arrays; changes need a cheap insertion. The queue is a set of parallel sorted lists.
Its arrays are built when a decision reads them and kept until the next change. At 10,000 requests
an insertion is a bisection and four short memmoves.

A request with several deadlines waits for the earliest one that it can still meet if it runs at
once, in a batch of its own and in its minimum time. When that deadline can no longer be met, the
request moves to the next one. It has expired when it can no longer meet the last one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import Request, RequestId, UtilityStep, single_deadlines
from edgebox.scheduling.deadline_utility import StepColumns, spread


@dataclass(frozen=True, slots=True)
class Columns:
    """The ready requests of one variant as arrays of equal length, by rising deadline."""

    deadline_ns: npt.NDArray[np.int64]
    slo_ns: npt.NDArray[np.float64]
    app: npt.NDArray[np.intp]
    """Indices into the policy's list of applications."""
    steps: StepColumns | None = None
    """All remaining deadlines; None if every request has only one."""


class ReadyQueue:
    """The ready requests of one variant, by deadline."""

    def __init__(self) -> None:
        self.requests: list[RequestId] = []
        self.deadlines: list[int] = []
        self.slos: list[int] = []
        self.apps: list[int] = []
        self.singles: dict[RequestId, tuple[UtilityStep, ...]] = {}
        """For each request with several deadlines, the remaining single deadlines."""
        self._columns: Columns | None = None

    def __len__(self) -> int:
        return len(self.requests)

    def add(
        self,
        request: RequestId,
        deadline_ns: int,
        slo_ns: int,
        app: int,
        singles: tuple[UtilityStep, ...] = (),
    ) -> None:
        """Insert a request, after those with the same deadline and a smaller id."""
        at = bisect_left(self.deadlines, deadline_ns)
        while (
            at < len(self.deadlines)
            and self.deadlines[at] == deadline_ns
            and self.requests[at] < request
        ):
            at += 1
        self.deadlines.insert(at, deadline_ns)
        self.requests.insert(at, request)
        self.slos.insert(at, slo_ns)
        self.apps.insert(at, app)
        if singles:
            self.singles[request] = singles
        self._columns = None

    def remove(self, request: RequestId, deadline_ns: int) -> None:
        """Remove a request."""
        self.remove_at((self.requests.index(request, bisect_left(self.deadlines, deadline_ns)),))

    def remove_at(self, indices: Iterable[int]) -> None:
        """Remove the requests at these indices."""
        falling = sorted(indices, reverse=True)
        if self.singles:
            for at in falling:
                self.singles.pop(self.requests[at], None)
        for at in falling:
            del self.deadlines[at], self.requests[at], self.slos[at], self.apps[at]
        self._columns = None

    def first_from(self, deadline_ns: int) -> int:
        """Return the index of the first request whose deadline is at or after this instant."""
        return bisect_left(self.deadlines, deadline_ns)

    @property
    def columns(self) -> Columns:
        """The queue as arrays."""
        if self._columns is None:
            self._columns = Columns(
                np.array(self.deadlines, dtype=np.int64),
                np.array(self.slos, dtype=np.float64),
                np.array(self.apps, dtype=np.intp),
                self._steps() if self.singles else None,
            )
        return self._columns

    def _steps(self) -> StepColumns:
        deadline_ns, gain = spread(
            self.deadlines, [self.singles.get(request) for request in self.requests]
        )
        slo_ns = np.array(self.slos, dtype=np.float64) + (deadline_ns - deadline_ns[0])
        return StepColumns(deadline_ns, slo_ns, gain)


@dataclass(slots=True)
class _Entry:
    variant: VariantName
    request: Request
    app: int
    deadline_ns: int
    """The deadline that the request waits for now."""
    steps: tuple[UtilityStep, ...]
    """The remaining deadlines, this one included; empty if the request had only one."""
    ready: bool = False
    abandoned: bool = False


class DeadlineQueues:
    """All requests that a policy knows, in preparation or ready, and when each one expires.

    Cost: O(log n) comparisons per change and per expired request.
    """

    def __init__(self, quickest_ns: Callable[[VariantName, int], float]) -> None:
        """Start empty.

        Args:
            quickest_ns: minimum time of a request of a variant and application (by index) from now;
                it may change at any time.
        """
        self.queues: dict[VariantName, ReadyQueue] = {}
        self._entries: dict[RequestId, _Entry] = {}
        self._quickest_ns = quickest_ns
        self._expiries: list[tuple[int, RequestId]] = []

    def request(self, request: RequestId) -> Request:
        """Return a waiting request by its id."""
        return self._entries[request].request

    def variant(self, request: RequestId) -> VariantName:
        """Return the variant that a waiting request is to run on."""
        return self._entries[request].variant

    def admit(self, request: Request, variant: VariantName, app: int) -> None:
        """Add a request that is not ready yet; `app` is the policy's index of its application."""
        steps = (UtilityStep(request.deadline_ns, 1.0), *request.steps) if request.steps else ()
        entry = _Entry(variant, request, app, request.deadline_ns, steps)
        self._entries[request.id] = entry
        heappush(self._expiries, (self._expiry_ns(entry), request.id))

    def prepared(self, request: RequestId) -> None:
        """Put a request into its queue."""
        entry = self._entries[request]
        entry.ready = True
        self._queue(entry)

    def remove(self, request: RequestId) -> None:
        """Forget a request."""
        entry = self._entries.pop(request)
        if entry.ready:
            self.queues[entry.variant].remove(request, entry.deadline_ns)
        self._tidy()

    def abandon(self, requests: Iterable[RequestId], now_ns: int) -> None:
        """Abandon the deadlines that these ready requests wait for.

        A request without a later deadline leaves its queue; the next call of `expired` returns it.
        """
        for request in requests:
            entry = self._entries[request]
            if len(entry.steps) > 1:
                self._wait_for_next(entry)
                continue
            self.queues[entry.variant].remove(request, entry.deadline_ns)
            entry.ready, entry.abandoned = False, True
            heappush(self._expiries, (now_ns + 1, request))

    def take(self, variant: VariantName, indices: Sequence[int]) -> tuple[Request, ...]:
        """Remove and return the requests at these indices of a queue."""
        queue = self.queues[variant]
        members = tuple(self._entries.pop(queue.requests[at]).request for at in indices)
        queue.remove_at(indices)
        self._tidy()
        return members

    def expired(self, now_ns: int) -> list[RequestId]:
        """Remove and return the requests that would miss even in a batch of their own, started now.

        Of a request with several deadlines, the last one counts.
        """
        gone: list[RequestId] = []
        while self._expiries and self._expiries[0][0] <= now_ns:
            _, request = heappop(self._expiries)
            entry = self._entries.get(request)
            if entry is None:
                continue
            at_ns = self._expiry_ns(entry)
            if (
                at_ns > now_ns and not entry.abandoned
            ):  # its minimum time has fallen since it arrived
                heappush(self._expiries, (at_ns, request))
                continue
            if len(entry.steps) > 1:
                self._wait_for_next(entry)
                continue
            self.remove(request)
            gone.append(request)
        return gone

    def next_expiry_ns(self) -> int | None:
        """Return when the next request expires, by the minimum times known at its arrival."""
        while self._expiries and self._expiries[0][1] not in self._entries:
            heappop(self._expiries)
        return self._expiries[0][0] if self._expiries else None

    def __iter__(self) -> Iterator[RequestId]:
        return iter(self._entries)

    def _queue(self, entry: _Entry) -> None:
        known = entry.request
        queue = self.queues.setdefault(entry.variant, ReadyQueue())
        slo_ns = max(1, entry.deadline_ns - known.captured_ns)
        singles = single_deadlines(entry.steps) if entry.steps else ()
        queue.add(known.id, entry.deadline_ns, slo_ns, entry.app, singles)

    def _wait_for_next(self, entry: _Entry) -> None:
        if entry.ready:
            self.queues[entry.variant].remove(entry.request.id, entry.deadline_ns)
        entry.steps = entry.steps[1:]
        entry.deadline_ns = entry.steps[0].by_ns
        if entry.ready:
            self._queue(entry)
        heappush(self._expiries, (self._expiry_ns(entry), entry.request.id))

    def _expiry_ns(self, entry: _Entry) -> int:
        return entry.deadline_ns - int(self._quickest_ns(entry.variant, entry.app)) + 1

    def _tidy(self) -> None:
        if len(self._expiries) > 2 * len(self._entries) + 64:
            self._expiries = [at for at in self._expiries if at[1] in self._entries]
            heapify(self._expiries)
