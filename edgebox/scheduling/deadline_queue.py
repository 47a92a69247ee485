"""Owns the requests that a policy knows, in the order of their deadlines. Pure.

Decisions want arrays, changes want a cheap insert: the queue is parallel lists, sorted, and its
arrays are made when a decision asks for them and kept until the next change. At 10,000 requests
an insert is a bisection and four short memmoves.

A request with several deadlines waits for the earliest that it can still make, even if only alone,
now and at its quickest. When that is lost it moves to the next, with what is left to gain; only
who has lost the last is hopeless.
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
    """Indices into the policy's own list of applications."""
    steps: StepColumns | None = None
    """All deadlines that are left, the first among them; None where everybody has one."""


class ReadyQueue:
    """The ready requests of one variant, by deadline."""

    def __init__(self) -> None:
        self.requests: list[RequestId] = []
        self.deadlines: list[int] = []
        self.slos: list[int] = []
        self.apps: list[int] = []
        self.singles: dict[RequestId, tuple[UtilityStep, ...]] = {}
        """Of those with several deadlines the single ones that are left."""
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
        """Take a request in, behind those with the same deadline and a smaller id."""
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
        """Take a request out."""
        self.remove_at((self.requests.index(request, bisect_left(self.deadlines, deadline_ns)),))

    def remove_at(self, places: Iterable[int]) -> None:
        """Take the requests at these places out."""
        falling = sorted(places, reverse=True)
        if self.singles:
            for at in falling:
                self.singles.pop(self.requests[at], None)
        for at in falling:
            del self.deadlines[at], self.requests[at], self.slos[at], self.apps[at]
        self._columns = None

    def first_from(self, deadline_ns: int) -> int:
        """Return the place of the first request whose deadline is not before this."""
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
    """The one it waits for now."""
    steps: tuple[UtilityStep, ...]
    """Those that are left, with that one; empty where there was one only."""
    ready: bool = False
    given_up: bool = False


class Waiting:
    """All requests a policy knows: those being prepared, the queues, and who is hopeless when.

    Cost: O(log n) comparisons per change and per hopeless request.
    """

    def __init__(self, quickest_ns: Callable[[VariantName, int], float]) -> None:
        """Start empty.

        Args:
            quickest_ns: the least time that a request of a variant and application (by index)
                can take from now; may change at any time.
        """
        self.queues: dict[VariantName, ReadyQueue] = {}
        self._entries: dict[RequestId, _Entry] = {}
        self._quickest_ns = quickest_ns
        self._hopeless: list[tuple[int, RequestId]] = []

    def request(self, request: RequestId) -> Request:
        """Return what is known of a waiting request."""
        return self._entries[request].request

    def variant(self, request: RequestId) -> VariantName:
        """Return what a waiting request shall run on."""
        return self._entries[request].variant

    def admit(self, request: Request, variant: VariantName, app: int) -> None:
        """Take in a request that is not ready yet; `app` is whatever the policy counts by."""
        steps = (UtilityStep(request.deadline_ns, 1.0), *request.steps) if request.steps else ()
        entry = _Entry(variant, request, app, request.deadline_ns, steps)
        self._entries[request.id] = entry
        heappush(self._hopeless, (self._hopeless_ns(entry), request.id))

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

    def give_up(self, requests: Iterable[RequestId], now_ns: int) -> None:
        """Give up the deadlines that ready requests wait for.

        Who has no later one leaves its queue; the next `expired` gives it away.
        """
        for request in requests:
            entry = self._entries[request]
            if len(entry.steps) > 1:
                self._wait_for_next(entry)
                continue
            self.queues[entry.variant].remove(request, entry.deadline_ns)
            entry.ready, entry.given_up = False, True
            heappush(self._hopeless, (now_ns + 1, request))

    def take(self, variant: VariantName, places: Sequence[int]) -> tuple[Request, ...]:
        """Give away the requests at these places of a queue."""
        queue = self.queues[variant]
        members = tuple(self._entries.pop(queue.requests[at]).request for at in places)
        queue.remove_at(places)
        self._tidy()
        return members

    def expired(self, now_ns: int) -> list[RequestId]:
        """Give away the requests that would miss even if they ran alone, now, at their quickest.

        With several deadlines: the last one.
        """
        gone: list[RequestId] = []
        while self._hopeless and self._hopeless[0][0] <= now_ns:
            _, request = heappop(self._hopeless)
            entry = self._entries.get(request)
            if entry is None:
                continue
            at_ns = self._hopeless_ns(entry)
            if at_ns > now_ns and not entry.given_up:  # it has become quicker since it came
                heappush(self._hopeless, (at_ns, request))
                continue
            if len(entry.steps) > 1:
                self._wait_for_next(entry)
                continue
            self.remove(request)
            gone.append(request)
        return gone

    def next_hopeless_ns(self) -> int | None:
        """Return when the next request becomes hopeless, by what was known when it came."""
        while self._hopeless and self._hopeless[0][1] not in self._entries:
            heappop(self._hopeless)
        return self._hopeless[0][0] if self._hopeless else None

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
        heappush(self._hopeless, (self._hopeless_ns(entry), entry.request.id))

    def _hopeless_ns(self, entry: _Entry) -> int:
        return entry.deadline_ns - int(self._quickest_ns(entry.variant, entry.app)) + 1

    def _tidy(self) -> None:
        if len(self._hopeless) > 2 * len(self._entries) + 64:
            self._hopeless = [at for at in self._hopeless if at[1] in self._entries]
            heapify(self._hopeless)
