"""Chooses machines for one module within a latency limit, at the least cost. Pure.

Requests are dispatched in whole batches to the machines in the order of their throughput-cost
ratio, so a machine collects its batch at the rate of all requests that no machine before it takes
(Harpagon, section III-B). The worst-case latency of a machine is therefore its batch's duration and
the time in which that rate yields a batch. Of one configuration the machines that are always busy
come first, then the one that is not; only this reading gives the costs of the paper's table II.

`cheapest_plan` differs from Harpagon's Algorithm 1 with dummy requests and reassigned latency,
which take the first configuration that fits and repair the rest. It searches: each configuration
may pass on what its partial machine could have taken, so that the next one collects a batch in time
without dummy requests.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from edgebox.planning.pipelines.cost_problem import Configuration, Module

_RATE_TOLERANCE = 1e-9
"""Relative; sums of rates are not exact."""

_TIME_TOLERANCE_NS = 0.1
"""By how much times may be off, for the same reason."""

NODES_MAX = 2_000
"""Steps of one search. Searches of modules with 3 to 12 configurations take about 20."""


@dataclass(frozen=True, slots=True)
class Group:
    """Machines of one configuration that collect their batches at the same rate."""

    configuration: Configuration
    rate_hz: float
    """What they serve together, dummy requests included."""
    collected_hz: float
    """The rate at which each collects its batch."""

    @property
    def machines(self) -> float:
        """The number of machines; a machine that is partly busy counts in part."""
        return self.rate_hz / self.configuration.throughput_hz

    @property
    def cost(self) -> float:
        """Machines times price."""
        return self.rate_hz * self.configuration.request_cost

    @property
    def latency_ns(self) -> int:
        """The worst-case latency."""
        return latency_ns(self.configuration, self.collected_hz)


@dataclass(frozen=True, slots=True)
class ModulePlan:
    """The machines of a module."""

    groups: tuple[Group, ...]
    """In dispatch order."""
    cost: float
    latency_ns: int
    """The worst-case latency."""
    dummy_hz: float
    """Requests per second that exist only to fill batches in time."""


def latency_ns(configuration: Configuration, collected_hz: float) -> int:
    """Return the worst-case latency of a machine that collects its batch at a rate (Theorem 1)."""
    collecting_ns = configuration.batch * 1e9 / collected_hz
    return configuration.duration_ns + math.ceil(collecting_ns - _TIME_TOLERANCE_NS)


def plan_of(module: Module, shares: Sequence[tuple[Configuration, float]]) -> ModulePlan:
    """Return the plan that gives each configuration a rate; the rest of the rate is dummy requests.

    Args:
        module: the module.
        shares: configuration and requests per second, in the order of cost per request.
    """
    # Summed from the last one on: what is left for it may be a tiny part of the whole.
    sums = [*accumulate(rate_hz for _, rate_hz in reversed(shares))][::-1]
    ignored_hz = _RATE_TOLERANCE * sums[0]
    dummy_hz = sums[0] - module.rate_hz
    groups = []
    for (configuration, rate_hz), left_hz, behind_hz in zip(
        shares, sums, [*sums[1:], 0.0], strict=True
    ):
        throughput_hz = configuration.throughput_hz
        busy_hz = min(rate_hz, _whole(rate_hz, throughput_hz) * throughput_hz)
        rest_hz = rate_hz - busy_hz
        for part_hz, collected_hz in ((busy_hz, left_hz), (rest_hz, rest_hz + behind_hz)):
            if part_hz > ignored_hz:
                groups.append(Group(configuration, part_hz, collected_hz))
    return ModulePlan(
        tuple(groups),
        sum(group.cost for group in groups),
        max(group.latency_ns for group in groups),
        dummy_hz if dummy_hz > ignored_hz else 0.0,
    )


def cheapest_plan(module: Module, limit_ns: int) -> ModulePlan | None:
    """Return the cheapest machines within a worst-case latency; None: no machine is fast enough."""
    search = _Search(module, limit_ns)
    search.continue_from(0, module.rate_hz, 0.0)
    return None if search.shares is None else plan_of(module, search.shares)


def plan_within(module: Module, limit_ns: int) -> ModulePlan:
    """Return the cheapest machines within a worst-case latency above the least batch duration."""
    plan = cheapest_plan(module, limit_ns)
    assert plan is not None
    return plan


def _whole(rate_hz: float, throughput_hz: float) -> int:
    """Return how many machines a rate keeps busy."""
    return math.floor(rate_hz / throughput_hz * (1 + _RATE_TOLERANCE))


def _in_full(rate_hz: float, throughput_hz: float) -> int:
    """Return how many machines serve a rate."""
    return math.ceil(rate_hz / throughput_hz * (1 - _RATE_TOLERANCE / 2))


class _Search:
    """Depth-first search over what each configuration serves and what it leaves to the next."""

    def __init__(self, module: Module, limit_ns: int) -> None:
        self.shares: list[tuple[Configuration, float]] | None = None
        self._cost = math.inf
        self._nodes = 0
        # Half of what `plan_of` ignores, so that no part which is ignored here is a machine there.
        self._least_hz = _RATE_TOLERANCE / 2 * module.rate_hz
        self._path: list[tuple[Configuration, float]] = []
        late_ns = _TIME_TOLERANCE_NS / 2  # of what `latency_ns` ignores
        self._choices = [
            # What must be left for it, so that it collects a batch in time.
            (
                c,
                c.batch * 1e9 / (limit_ns - c.duration_ns + late_ns),
                c.throughput_hz,
                c.request_cost,
            )
            for c in module.configurations
            if c.duration_ns < limit_ns
        ]

    def continue_from(self, first: int, left_hz: float, cost: float) -> None:
        """Serve what is left by the configurations from the `first` on."""
        for at in range(first, self._serve(first, left_hz, cost)):
            self._pad_and_pass_on(at, left_hz, cost)

    def _serve(self, first: int, left_hz: float, cost: float) -> int:
        """Serve what is left, with dummy requests for one configuration at most.

        Returns:
            The number of the configuration from which on all others would cost more.
        """
        for at in range(first, len(self._choices)):
            configuration, needed_hz, throughput_hz, request_cost = self._choices[at]
            self._nodes += 1
            if cost + left_hz * request_cost >= self._cost or self._nodes > NODES_MAX:
                return at
            in_time = left_hz >= needed_hz
            busy_hz = _whole(left_hz, throughput_hz) * throughput_hz if in_time else 0.0
            rest_hz = left_hz - busy_hz
            if in_time and (rest_hz <= self._least_hz or rest_hz >= needed_hz):
                self._end(configuration, left_hz, cost + left_hz * request_cost)
                return at
            # The rest waits too long here: dummy requests, or another configuration.
            padded_hz = busy_hz + needed_hz
            if needed_hz > throughput_hz:
                padded_hz = _in_full(max(left_hz, needed_hz), throughput_hz) * throughput_hz
            self._end(configuration, padded_hz, cost + padded_hz * request_cost)
            if in_time:
                self._pass_on(at, left_hz, rest_hz, cost)
        return len(self._choices)

    def _pad_and_pass_on(self, at: int, left_hz: float, cost: float) -> None:
        """Add dummy requests so that a configuration collects in time beside those behind it.

        A machine that collects its batch only at a rate above its own throughput cannot serve all
        of that rate. With dummy requests, those behind it serve what it leaves.
        """
        _, needed_hz, throughput_hz, request_cost = self._choices[at]
        least_hz = max(left_hz, needed_hz)
        if needed_hz <= throughput_hz or cost + least_hz * request_cost >= self._cost:
            return
        others = self._others(left_hz, needed_hz, throughput_hz)
        padded_hz = others * throughput_hz + needed_hz
        if padded_hz > left_hz * (1 + _RATE_TOLERANCE):
            self._pass_on(at, padded_hz, needed_hz - throughput_hz, cost)
        if left_hz < needed_hz:
            # Whole machines, too. Where it collects in time already, others add what they need.
            for machines in range(1, math.ceil(needed_hz / throughput_hz)):
                self._nodes += 1
                if self._nodes > NODES_MAX:
                    return
                busy_hz = machines * throughput_hz
                for passed_hz in sorted(self._served_in_full(at, needed_hz - busy_hz)):
                    if not self._leave(at, busy_hz, passed_hz, cost):
                        break

    def _pass_on(self, at: int, left_hz: float, rest_hz: float, cost: float) -> None:
        """Serve a part by one configuration and leave the rest to those behind it."""
        _, needed_hz, throughput_hz, _ = self._choices[at]
        # A machine that is partly busy collects what is left when those before it are busy.
        spare_hz = left_hz - needed_hz * (1 - _RATE_TOLERANCE / 2)
        first = math.floor(spare_hz / throughput_hz) + 1
        last = _whole(left_hz, throughput_hz)
        # The most machines first: those that leave least are the cheapest.
        whole = range(max(first, last - NODES_MAX), last + 1)
        all_busy = {left_hz - machines * throughput_hz for machines in whole}
        least_hz = max(rest_hz, left_hz - first * throughput_hz)
        for passed_hz in sorted(all_busy | self._served_in_full(at, least_hz)):
            own_hz = left_hz - passed_hz
            if own_hz <= self._least_hz or not self._leave(at, own_hz, passed_hz, cost):
                break

    def _leave(self, at: int, own_hz: float, passed_hz: float, cost: float) -> bool:
        """Leave a rate to the configurations behind; False: leaving that or more costs too much."""
        configuration, _, _, request_cost = self._choices[at]
        cost += own_hz * request_cost
        # Those behind serve what is passed on at the next one's cost or more.
        if (
            at + 1 == len(self._choices)
            or cost + passed_hz * self._choices[at + 1][3] >= self._cost
        ):
            return False
        self._path.append((configuration, own_hz))
        self.continue_from(at + 1, passed_hz, cost)
        self._path.pop()
        return True

    def _served_in_full(self, at: int, least_hz: float) -> set[float]:
        """Return rates, from the least on, that one of the configurations behind can serve in full.

        That is by machines that are all busy, or by those and one that just collects its batch in
        time.
        """
        found = set()
        for _, needed_hz, throughput_hz, _ in self._choices[at + 1 :]:
            found.add(_in_full(max(least_hz, needed_hz), throughput_hz) * throughput_hz)
            others = self._others(least_hz, needed_hz, throughput_hz)
            found.add(others * throughput_hz + needed_hz)
        return found

    def _others(self, rate_hz: float, needed_hz: float, throughput_hz: float) -> int:
        """Return how many machines serve a rate beside one that just collects its batch in time."""
        return max(0, math.ceil((rate_hz - needed_hz - self._least_hz) / throughput_hz))

    def _end(self, configuration: Configuration, rate_hz: float, cost: float) -> None:
        if cost < self._cost:
            self._cost = cost
            self.shares = [*self._path, (configuration, rate_hz)]
