"""Decides on which variant each request runs, for what waits at the moment. Pure.

The plan gives each camera a variant for the load of the last seconds. Arrivals vary faster than
that. When the executors cannot answer all that waits in time, some requests run on a smaller
variant instead of being dropped; as soon as they can, requests run on their own again. Nothing is
remembered: each decision starts from the variants that admission chose.

What waits is served in simulation, in the order of deadlines, on all executors. If requests would
miss, the step to a smaller variant that loses the least accuracy for the time it saves is taken
first, for the requests with the earliest deadlines first, because all others gain from that. The
fewest such steps are taken with which as many requests are in time as with all of them. That is
decided just before batches are formed.

A frame whose picture has the pixels for a larger variant runs on that one where an executor would
otherwise idle. That is decided when it arrives, because it is decoded for its variant; if others
wait when its batch is formed, it runs on its own.

Source: SuperServe (Khare et al., NSDI '25) chooses the variant of each batch by the time that its
most urgent member has left ("slack fit"). Ours looks at all that waits, and takes steps in the
order in which the planner would at a rising price of the executors' time.
"""

import math
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request
from edgebox.scheduling.affinity import ExecutorAffinity
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.ladders import Ladders
from edgebox.scheduling.ledger import Ledger, LiveRequest
from edgebox.scheduling.request_stages import Stage

LOOKED_AT_MAX = 64
"""How many waiting requests are looked at, by deadline. It bounds the time of a decision; those
behind them are looked at before they run."""

LONGEST_SHARE = 0.5
"""How long a batch on a larger variant may take, as a share of the shortest deadline of a camera.
The other half is left to a frame that comes meanwhile."""

BatchTimes = Sequence[float]
"""Time in ns of a batch of 1, 2, ... requests; a request more never takes less time."""


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """A request that waits for a batch."""

    due_ns: int
    variants: tuple[VariantName, ...]
    """What it may run on: the variant that admission chose, then smaller ones, by falling size."""


@dataclass(frozen=True, slots=True)
class ExecutorTimes:
    """An executor as far as this decision needs it."""

    free_ns: float
    """When it can start a batch."""
    batch_ns: Mapping[VariantName, BatchTimes]
    """The variants that it may run."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of some requests to a smaller variant."""

    accuracy_per_ns: float
    """The accuracy that it loses for each ns of executor time that it saves."""
    requests: Sequence[int]
    """Indices of the requests, by deadline."""
    to: int
    """Index in their `variants`."""


def choose_variants(
    waiting: Sequence[WaitingRequest],
    executors: Sequence[ExecutorTimes],
    accuracies: Mapping[VariantName, float],
) -> list[int]:
    """Choose the variant of each waiting request.

    Args:
        waiting: by deadline.
        executors: all that run; at least one.
        accuracies: the accuracy of each variant that one of them may run on.

    Returns:
        For each request an index into its `variants`.
    """
    ends_ns = {variant: _earliest_end_ns(variant, executors) for variant in accuracies}
    alone = [_largest_in_time(request, ends_ns) for request in waiting]
    in_time = answered(waiting, alone, executors)
    if in_time == len(waiting):
        return alone
    # What only a smaller variant can answer may take the time of several others.
    planned = [0] * len(waiting)
    if any(alone) and (count := answered(waiting, planned, executors)) > in_time:
        alone, in_time = planned, count
    steps = _steps(waiting, executors, accuracies)
    total = sum(len(step.requests) for step in steps)
    reachable = answered(waiting, _after(steps, total, alone), executors)
    if reachable <= in_time:
        return alone
    low, high = 0, total  # `low` is too few, `high` enough
    while high - low > 1:
        middle = (low + high) // 2
        if answered(waiting, _after(steps, middle, alone), executors) >= reachable:
            high = middle
        else:
            low = middle
    return _after(steps, high, alone)


def answered(
    waiting: Sequence[WaitingRequest], chosen: Sequence[int], executors: Sequence[ExecutorTimes]
) -> int:
    """Return how many requests are answered in time if each runs on the variant chosen for it.

    The executor that is free first takes the request with the earliest deadline that it can still
    meet, and as many others of the same variant as that deadline permits.

    Args:
        waiting: by deadline.
        chosen: for each request an index into its `variants`.
        executors: all that run.
    """
    queues: dict[VariantName, deque[int]] = defaultdict(deque)
    for request, at in zip(waiting, chosen, strict=True):
        queues[request.variants[at]].append(request.due_ns)
    free = [(executor.free_ns, number) for number, executor in enumerate(executors)]
    heapify(free)
    count = 0
    while free and queues:
        now_ns, number = free[0]
        batch_ns = executors[number].batch_ns
        best: VariantName | None = None
        for variant in list(queues):
            if (times := batch_ns.get(variant)) is None:
                continue
            queue = queues[variant]
            while queue and queue[0] < now_ns + times[0]:
                queue.popleft()
            if not queue:
                del queues[variant]
            elif best is None or queue[0] < queues[best][0]:
                best = variant
        if best is None:
            heappop(free)
            continue
        queue, times = queues[best], batch_ns[best]
        size, due_ns = 0, queue[0]
        while size < min(len(times), len(queue)) and now_ns + times[size] <= due_ns:
            size += 1
        for _ in range(size):
            queue.popleft()
        if not queue:
            del queues[best]
        count += size
        heapreplace(free, (now_ns + times[size - 1], number))
    return count


def _largest_in_time(request: WaitingRequest, ends_ns: Mapping[VariantName, float]) -> int:
    """Return the first variant that is in time in a batch of its own, else the quickest; by index.

    0 if no executor has any of them.

    Args:
        request: waits.
        ends_ns: when each variant would end in a batch of its own.
    """
    for at, variant in enumerate(request.variants):
        if ends_ns[variant] <= request.due_ns:
            return at
    return min(range(len(request.variants)), key=lambda at: ends_ns[request.variants[at]])


def _earliest_end_ns(variant: VariantName, executors: Sequence[ExecutorTimes]) -> float:
    """Return when a request that runs alone would be answered; infinite if nothing runs it."""
    return min(
        (e.free_ns + e.batch_ns[variant][0] for e in executors if variant in e.batch_ns),
        default=math.inf,
    )


def _steps(
    waiting: Sequence[WaitingRequest],
    executors: Sequence[ExecutorTimes],
    accuracies: Mapping[VariantName, float],
) -> list[_Step]:
    """Return all steps to smaller variants, in the order in which they are taken."""
    alike: dict[tuple[VariantName, ...], list[int]] = defaultdict(list)
    for number, request in enumerate(waiting):
        alike[request.variants].append(number)
    steps: list[_Step] = []
    for variants, requests in alike.items():
        cost_ns = [_cost_ns(variant, executors) for variant in variants]
        at = 0
        while (best := _next_step(at, variants, cost_ns, accuracies)) is not None:
            slope, at = best
            steps.append(_Step(slope, requests, at))
    return sorted(steps, key=lambda step: (step.accuracy_per_ns, step.to))


def _next_step(
    at: int,
    variants: Sequence[VariantName],
    cost_ns: Sequence[float],
    accuracies: Mapping[VariantName, float],
) -> tuple[float, int] | None:
    """Return the step down that loses least accuracy for the time it saves, and where it leads."""
    slopes = [
        ((accuracies[variants[at]] - accuracies[variants[to]]) / (cost_ns[at] - cost_ns[to]), to)
        for to in range(at + 1, len(variants))
        if cost_ns[to] < cost_ns[at]
    ]
    return min(slopes, default=None)


def _cost_ns(variant: VariantName, executors: Sequence[ExecutorTimes]) -> float:
    """Return the executor time of a request in the largest batch."""
    held = (each for executor in executors if (each := executor.batch_ns.get(variant)) is not None)
    return min((times[-1] / len(times) for times in held), default=math.inf)


def _after(steps: Sequence[_Step], count: int, alone: Sequence[int]) -> list[int]:
    """Return the variants of the requests after the first so many steps of single requests."""
    chosen = list(alone)
    for step in steps:
        for request in step.requests[: max(0, count)]:
            chosen[request] = max(chosen[request], step.to)
        count -= len(step.requests)
        if count <= 0:
            break
    return chosen


def _due_ns(live: LiveRequest, now_ns: int) -> int:
    """Return the deadline that a request waits for: its last one, once the first has passed."""
    request = live.request
    reserve_ns = request.deadline_ns - live.due_ns
    return live.due_ns if now_ns <= live.due_ns else request.last_deadline_ns - reserve_ns


class VariantChoice:
    """The variants of the core's waiting requests."""

    def __init__(
        self, ledger: Ledger, times: ExecutionTimes, ladders: Ladders, affinity: ExecutorAffinity
    ) -> None:
        self._ledger = ledger
        self._times = times
        self._ladders = ladders
        self._affinity = affinity

    def changes(self, idle: int, now_ns: int) -> list[tuple[LiveRequest, VariantName]]:
        """Return the prepared requests that are to run on another variant than so far.

        Args:
            idle: how many executors run nothing. Only if no more requests wait may these run on
                larger variants than admission chose.
            now_ns: the instant.
        """
        every = self._ledger.live
        looked_at = [every[request] for _, request in self._ledger.by_due[:LOOKED_AT_MAX]]
        if not any(live.variants for live in looked_at):
            return []  # nobody has a choice
        enough = len(looked_at) <= idle
        waiting = [
            WaitingRequest(
                _due_ns(live, now_ns),
                live.variants[0 if enough else live.larger :] or (live.variant,),
            )
            for live in looked_at
        ]
        ladders = {request.variants for request in waiting}
        variants = {variant for ladder in ladders for variant in ladder}
        slower = self._slower(variants, {(live.variant, live.request.app) for live in looked_at})
        executors = [
            self._times_of(executor, variants, slower, now_ns)
            for executor in self._times.latencies.fastest_first()
        ]
        if not executors:
            return []
        chosen = choose_variants(waiting, executors, {v: self._accuracy(v) for v in variants})
        return [
            (live, variant)
            for live, request, at in zip(looked_at, waiting, chosen, strict=True)
            if (variant := request.variants[at]) != live.variant and live.stage is Stage.READY
        ]

    def in_time(
        self,
        request: Request,
        variants: Sequence[VariantName],
        idle: Iterable[ExecutorId],
        tightest_slo_ns: int,
        ready_ns: int,
    ) -> Sequence[VariantName]:
        """Return the variants from the first that answers a request in time on an idle executor.

        Args:
            request: has arrived, and nothing waits that the idle executors are needed for.
            variants: larger ones than the request's own, by falling size.
            idle: the executors that run nothing.
            tightest_slo_ns: the shortest deadline of a camera; see `LONGEST_SHARE`.
            ready_ns: when the request will be decoded.
        """
        slower = self._slower(variants, [(variant, request.app) for variant in variants])
        due_ns = min(request.deadline_ns, ready_ns + LONGEST_SHARE * tightest_slo_ns)
        executors = [self._times_of(executor, variants, slower, ready_ns) for executor in idle]
        for at, variant in enumerate(variants):
            if _earliest_end_ns(variant, executors) <= due_ns:
                return variants[at:]
        return ()

    def _accuracy(self, name: VariantName) -> float:
        variant = self._ladders.named(name)
        return 0.0 if variant is None else variant.accuracy

    def _slower(
        self, variants: Iterable[VariantName], kinds: Collection[tuple[VariantName, str]]
    ) -> dict[VariantName, float]:
        """Return how many times as long as its profile says each variant takes at worst.

        Each by what is known of it: a variant that was slow for a moment says nothing of smaller
        ones. But no more than those on which requests would run now: the times of small variants
        are short, so that their high quantile varies most.

        Args:
            variants: what requests may run on.
            kinds: what they would run on now, with their application.
        """
        longest = max((self._longer(*kind) for kind in kinds), default=1.0)
        if longest == 1.0:
            return dict.fromkeys(variants, 1.0)
        apps = {app for _, app in kinds}
        return {
            variant: min(longest, max(self._longer(variant, app) for app in apps))
            for variant in variants
        }

    def _longer(self, variant: VariantName, app: str) -> float:
        known = self._times.expectations.single_request(variant, app)
        best = self._times.latencies.best(variant)
        if known is None or best is None:
            return 1.0
        return max(1.0, known.high_ns / max(1, best.high_ns[0]))

    def _times_of(
        self,
        executor: ExecutorId,
        variants: Iterable[VariantName],
        slower: Mapping[VariantName, float],
        now_ns: int,
    ) -> ExecutorTimes:
        latencies = self._times.latencies
        overhead_ns = latencies.overhead_ns(executor)
        excluded = self._affinity.non_affine(executor)
        batch_ns: dict[VariantName, BatchTimes] = {}
        for variant in variants:
            row = None if variant in excluded else latencies.row(executor, variant)
            if row is not None:
                times: list[float] = []
                for size, high_ns in zip(row.sizes, row.high_ns, strict=True):
                    times += [high_ns * slower[variant] + overhead_ns] * (size - len(times))
                batch_ns[variant] = times
        running = self._ledger.running.get(executor)
        free_ns = None if running is None else latencies.usually_free_ns(running)
        if free_ns is not None:
            free_ns = max(now_ns, free_ns + overhead_ns)
        return ExecutorTimes(now_ns if free_ns is None else free_ns, batch_ns)
