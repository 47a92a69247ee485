"""Decides how many threads each batch of a CPU executor computes with. Pure.

The policy has chosen the batch. It gets the fewest threads with which its members meet their
deadlines, the executor keeps up, and all threads can still answer what waits and comes
(`core_choice`, which the simulator also runs). All CPU executors share the machine's cores: a batch
never takes cores that other batches compute on, except that it always has one. Decoding and the
event loop have no cores of their own; they get what batches leave, and what their work costs a
batch is part of the measured slowdown.
"""

import math
from collections.abc import Mapping
from heapq import nsmallest

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.cores.arrival_forecast import ArrivalForecast
from edgebox.scheduling.cores.core_choice import Awaited, WaitingWork, choose_cores
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.ledger import Ledger, LiveRequest
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.request_stages import Stage

LOAD_MEMORY_NS = 2_000_000_000
"""Time constant of the load."""
FOLLOWING_MAX = 64
"""How many waiting requests, and how many that come, are looked at. It bounds the time of a choice;
an executor behind which more wait is overloaded or has batches so short that they do not matter."""


class _Fading:
    """A sum in which what is older weighs less."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._at_ns = 0

    def add(self, amount: float, now_ns: int) -> None:
        """Add an amount."""
        self._sum = self.at(now_ns) + amount
        self._at_ns = now_ns

    def at(self, now_ns: int) -> float:
        """Return the sum at an instant."""
        return self._sum * math.exp((self._at_ns - now_ns) / LOAD_MEMORY_NS)


class _Load:
    """The share of the time for which executors compute if all batches have all threads.

    It is that of the batches that ran, times the requests that came for each that was run: an
    executor that does not keep up computes no more than all the time.
    """

    def __init__(self) -> None:
        self._computed_ns: dict[ExecutorId, _Fading] = {}
        self._came = _Fading()
        self._ran = _Fading()
        self._first_ns: int | None = None

    def came(self, now_ns: int) -> None:
        """Note a request."""
        self._came.add(1, now_ns)
        if self._first_ns is None:
            self._first_ns = now_ns

    def runs(self, requests: int, now_ns: int) -> None:
        """Note so many requests that are run, on any executor."""
        self._ran.add(requests, now_ns)

    def computed(self, executor: ExecutorId, took_ns: float, now_ns: int) -> None:
        """Note a batch that would have taken so long with all threads."""
        self._computed_ns.setdefault(executor, _Fading()).add(took_ns, now_ns)

    def of(self, executor: ExecutorId, now_ns: int) -> float:
        """Return the share of an executor."""
        if self._first_ns is None or executor not in self._computed_ns:
            return 0.0
        ran = self._ran.at(now_ns)
        came_for_each = max(1.0, self._came.at(now_ns) / ran) if ran else 1.0
        # The weights of all instants since the first request.
        over_ns = -LOAD_MEMORY_NS * math.expm1((self._first_ns - now_ns) / LOAD_MEMORY_NS)
        return self._computed_ns[executor].at(now_ns) / max(1.0, over_ns) * came_for_each


class ThreadChoice:
    """The threads of each batch, on executors that have a choice."""

    def __init__(self, ledger: Ledger, times: ExecutionTimes) -> None:
        self._ledger = ledger
        self._times = times
        self._cores = times.latencies.parameters.cores
        self._forecast = ArrivalForecast()
        self._load = _Load()
        self._choosing: tuple[int, bool] = (-1, False)

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Note an admitted request, with the deadline of its stage."""
        if self._any_choice():
            self._load.came(now_ns)
            if request.frame is None:
                self._forecast.arrived(request, variant, now_ns)

    def completed(self, infer: Infer, isolated_ns: int, now_ns: int) -> None:
        """Note a batch; `isolated_ns`: its time with all threads, without interference."""
        if infer.threads:
            self._load.computed(infer.executor, isolated_ns, now_ns)

    def threads(self, executor: ExecutorId, batch: Batch, now_ns: int) -> int:
        """Return the threads of a batch that the policy has chosen; 0: there is no choice."""
        if not self._any_choice():
            return 0
        self._load.runs(len(batch.requests), now_ns)
        latencies = self._times.latencies
        profile = latencies.profiles(executor)[batch.variant]
        if len(profile.thread_counts) < 2:
            return 0
        free = self._free(executor)
        counts = [n for n in profile.thread_counts if n <= free] or [profile.thread_counts[0]]
        members = [self._ledger.live[member] for member in batch.requests]
        high_ns = self._times.expectations.batch_ns(
            executor,
            batch.variant,
            [live.request.app for live in members],
            batch.batch_size,
            latencies.parameters.high_quantile,
        )
        assert high_ns is not None
        overhead_ns = latencies.overhead_ns(executor)
        times_ns = [
            high_ns * profile.core_factor(batch.batch_size, n) + overhead_ns for n in counts
        ]
        load = self._load.of(executor, now_ns)
        # With fewer than all threads free, the executor keeps up less.
        load *= profile.core_factor(batch.batch_size, counts[-1])
        left_ns = min(live.due_ns for live in members) - now_ns
        rest = self._rest(executor, members, round(max(times_ns)), now_ns)
        return counts[choose_cores(left_ns, times_ns, counts, load, rest)]

    def _free(self, executor: ExecutorId) -> int:
        """Return the cores that no other executor's batch computes on, at least 1."""
        taken = sum(
            self._threads_of(batch.infer)
            for other, batch in self._ledger.running.items()
            if other != executor
        )
        return max(1, self._cores - taken) if self._cores else 1 << 30

    def _threads_of(self, infer: Infer) -> int:
        if infer.threads:
            return infer.threads
        known = self._times.latencies.known(infer.executor).get(infer.variant)
        return known.thread_counts[-1] if known is not None and known.thread_counts else 0

    def _any_choice(self) -> bool:
        """Return whether any executor has a choice."""
        version = self._times.latencies.version
        if self._choosing[0] != version:
            known = self._times.latencies.all_known.values()
            any_choice = any(len(p.thread_counts) > 1 for of in known for p in of.values())
            self._choosing = version, any_choice
        return self._choosing[1]

    def _rest(
        self, executor: ExecutorId, members: list[LiveRequest], slowest_ns: int, now_ns: int
    ) -> WaitingWork:
        """Return what this executor may have to run after a batch."""
        fastest_ns: list[list[float]] = []
        index: dict[VariantName, int] = {}
        for variant in self._times.latencies.profiles(executor):
            index[variant] = len(fastest_ns)
            fastest_ns.append(self._fastest_ns(executor, variant))
        prepare_ns = self._times.calibration.prepare_ns
        here = self._waiting(index, {live.request.id for live in members}, prepare_ns)
        foreseen = self._forecast.until(now_ns, now_ns + slowest_ns, FOLLOWING_MAX)
        coming = [
            Awaited(each.arrival_ns - now_ns + prepare_ns, each.deadline_ns - now_ns, at)
            for each in foreseen
            if (at := index.get(each.variant)) is not None
        ]
        return WaitingWork(
            [Awaited(ready_ns, due_ns - now_ns, at) for due_ns, _, ready_ns, at in here],
            sorted(coming, key=lambda each: each.deadline_ns),
            fastest_ns,
        )

    def _waiting(
        self, index: Mapping[VariantName, int], members: set[int], prepare_ns: int
    ) -> list[tuple[int, int, int, int]]:
        """Return the waiting requests: deadline, id, time until it can run, and variant."""
        return nsmallest(
            FOLLOWING_MAX,
            (
                (live.due_ns, request, 0 if live.stage is Stage.READY else prepare_ns, at)
                for request, live in self._ledger.live.items()
                if live.waits
                and request not in members
                and (at := index.get(live.variant)) is not None
            ),
        )

    def _fastest_ns(self, executor: ExecutorId, variant: VariantName) -> list[float]:
        """Return the times of batches of 1, 2, ... requests with all threads, seldom exceeded."""
        row = self._times.latencies.row(executor, variant)
        assert row is not None
        times: list[float] = []
        for size, high_ns in zip(row.sizes, row.high_ns, strict=True):
            times += [float(high_ns)] * (size - len(times))
        return times
