"""Runs requests on one executor with a policy of cores, and counts core-seconds. Pure."""

import math
import random
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from edgebox.scheduling.cores.core_choice import Drop, Wait
from edgebox.simulation.vertical.core_policies import CorePolicy, S, run_most
from edgebox.simulation.vertical.vertical_scenario import Arrivals, VerticalScenario


@dataclass(frozen=True, slots=True)
class VerticalFigures:
    """What came of one run."""

    policy: str
    requests: int
    dropped: int
    late: int
    core_seconds: float
    """Cores held, over time, until the last batch ended."""
    busy_core_seconds: float
    """Cores that computed."""

    @property
    def violations(self) -> int:
        """Requests that were not answered in time."""
        return self.dropped + self.late


class _Cores:
    """The cores that are held over time."""

    def __init__(self, held: int) -> None:
        self._held = held
        self._since_ns = 0
        self.ns = 0.0

    def hold(self, now_ns: int, cores: int) -> None:
        """Hold so many from now on."""
        self.ns += self._held * (now_ns - self._since_ns)
        self._held, self._since_ns = cores, now_ns


class _Run:
    """One run of one policy."""

    def __init__(self, scenario: VerticalScenario, arrivals: Arrivals, policy: CorePolicy) -> None:
        self._arrivals, self._policy = arrivals, policy
        self._times_ns = scenario.times_ns
        self._spread, self._rng = scenario.spread, random.Random(scenario.seed)
        self._queue: deque[int] = deque()
        self._busy_until_ns: int | None = None
        self._running = 0
        self._cores = _Cores(policy.held_cores(0))
        self.dropped = self.late = 0
        self.busy_ns = 0.0

    def run(self) -> VerticalFigures:
        arrivals = self._arrivals
        instants = arrivals.arrivals_ns
        at, now_ns, wake_ns, tick_ns = 0, 0, None, 0
        while at < len(instants) or self._queue or self._busy_until_ns is not None:
            known = (
                tick_ns,
                instants[at] if at < len(instants) else None,
                wake_ns,
                self._busy_until_ns,
            )
            now_ns = min(each for each in known if each is not None)
            if self._busy_until_ns is not None and self._busy_until_ns <= now_ns:
                self._busy_until_ns, self._running = None, 0
            while at < len(instants) and instants[at] <= now_ns:
                self._queue.append(at)
                self._policy.arrived(now_ns, now_ns - arrivals.captures_ns[at])
                at += 1
            if now_ns >= tick_ns:
                self._policy.tick(now_ns, len(self._queue))
                tick_ns += S
            wake_ns = self._decide(now_ns) if self._busy_until_ns is None else None
            self._cores.hold(now_ns, self._policy.held_cores(self._running))
        return VerticalFigures(
            self._policy.name,
            len(instants),
            self.dropped,
            self.late,
            self._cores.ns / S,
            self.busy_ns / S,
        )

    def _decide(self, now_ns: int) -> int | None:
        """Start a batch if one is chosen; return when to decide again."""
        deadlines = self._arrivals.deadlines_ns
        while self._queue:
            choice = self._policy.decide([deadlines[each] for each in self._queue], now_ns)
            if isinstance(choice, Drop):
                self._queue.popleft()
                self.dropped += 1
                continue
            if isinstance(choice, Wait):
                return choice.until_ns
            size = min(choice.batch_size, len(self._queue))
            median_ns = self._times_ns[size - 1, choice.cores - 1]
            took_ns = round(median_ns * math.exp(self._rng.gauss(0.0, self._spread)))
            ends_ns = now_ns + max(1, took_ns)
            for _ in range(size):
                self.late += ends_ns > deadlines[self._queue.popleft()]
            self._busy_until_ns, self._running = ends_ns, choice.cores
            self.busy_ns += choice.cores * took_ns
            return None
        return None


def run_policy(
    scenario: VerticalScenario, arrivals: Arrivals, policy: CorePolicy
) -> VerticalFigures:
    """Run a policy over the requests of one run."""
    return _Run(scenario, arrivals, policy).run()


def run_horizontal(scenario: VerticalScenario, arrivals: Arrivals) -> VerticalFigures:
    """Run instances of one core each, whose number follows the load once a second.

    Source: FA2 (Razavi et al., RTAS '22) as Sponge's evaluation uses it. The batch size is the
    largest for which two batches fit into what the worst transit of the last second leaves of the
    SLO: one to wait for, one to run. The instances are as few as carry the rate with it. A new one
    answers after the cold start; one too many ends when it is idle as the number is decided.
    """
    times_ns, rng = scenario.times_max_ns, random.Random(scenario.seed)
    queue: deque[int] = deque()
    free: list[int] = [0]
    """When each instance is free, rising: a heap."""
    at = dropped = late = 0
    held_ns = busy_ns = 0.0
    tick_ns = last_ns = 0
    longest_ns, batch = 0, 1
    instants = arrivals.arrivals_ns
    while at < len(instants) or queue:
        upcoming = [tick_ns]
        if at < len(instants):
            upcoming.append(instants[at])
        if queue:
            upcoming.append(max(free[0], last_ns))
        now_ns = min(upcoming)
        held_ns += len(free) * (now_ns - last_ns)
        last_ns = now_ns
        while at < len(instants) and instants[at] <= now_ns:
            queue.append(at)
            longest_ns = max(longest_ns, now_ns - arrivals.captures_ns[at])
            at += 1
        if now_ns >= tick_ns:
            batch, wanted = _instances(scenario, longest_ns)
            while len(free) < wanted:
                heappush(free, now_ns + scenario.cold_start_ns)
            idle = sum(each <= now_ns for each in free)
            for _ in range(min(idle, len(free) - wanted)):
                heappop(free)
            longest_ns, tick_ns = 0, tick_ns + S
        while queue and free[0] <= now_ns:
            left = [arrivals.deadlines_ns[each] for each in queue]
            choice = run_most(left, now_ns, times_ns, 1, batch)
            if isinstance(choice, Drop):
                queue.popleft()
                dropped += 1
                continue
            assert not isinstance(choice, Wait)
            size = choice.batch_size
            spread = math.exp(rng.gauss(0.0, scenario.spread))
            took_ns = max(1, round(scenario.times_ns[size - 1, 0] * spread))
            heappop(free)
            heappush(free, now_ns + took_ns)
            busy_ns += took_ns
            late += sum(
                now_ns + took_ns > arrivals.deadlines_ns[queue.popleft()] for _ in range(size)
            )
    held_ns += sum(max(0, each - last_ns) for each in free)
    return VerticalFigures("horizontal", len(instants), dropped, late, held_ns / S, busy_ns / S)


def _instances(scenario: VerticalScenario, longest_ns: int) -> tuple[int, int]:
    """Return the batch size, and the number of one-core instances that carry the rate with it."""
    times_ns = scenario.times_max_ns[:, 0]
    left_ns = scenario.slo_ns - longest_ns
    fitting = [size for size, took in enumerate(times_ns, 1) if 2 * took <= left_ns]
    batch = max(fitting, default=1)
    throughput_hz = batch * 1e9 / float(times_ns[batch - 1])
    return batch, max(1, math.ceil(scenario.rate_hz / throughput_hz))
