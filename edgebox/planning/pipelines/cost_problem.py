"""Defines pipelines to be served at least cost: modules, their configurations, their graph. Pure.

Terms and cost model from Harpagon (arXiv 2412.06161, sections II and III).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Configuration:
    """A way to run a module on one machine."""

    batch: int
    """Requests per batch."""
    duration_ns: int
    """How long a batch runs."""
    hardware: str
    price: float
    """The cost of a machine of this hardware that is always busy."""

    @property
    def throughput_hz(self) -> float:
        """Requests per second of a machine that is always busy."""
        return self.batch * 1e9 / self.duration_ns

    @property
    def request_cost(self) -> float:
        """Cost of one request per second: the reciprocal of the throughput-cost ratio."""
        return self.price / self.throughput_hz


@dataclass(frozen=True, slots=True)
class Module:
    """A model of the pipeline and the requests that reach it."""

    name: str
    rate_hz: float
    configurations: tuple[Configuration, ...]
    """In the order of their cost per request, the least first."""


def module(name: str, rate_hz: float, configurations: Sequence[Configuration]) -> Module:
    """Make a module, its configurations put in order."""
    ranked = sorted(configurations, key=lambda c: (c.request_cost, c.duration_ns))
    return Module(name, rate_hz, tuple(ranked))


@dataclass(frozen=True)
class CostProblem:
    """A directed acyclic graph of modules with one deadline for every path."""

    slo_ns: int
    modules: tuple[Module, ...]
    edges: tuple[tuple[int, int], ...]
    """(from, to) as places in `modules`."""

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The places of the modules, each after those it depends on.

        Raises:
            ValueError: the graph has a cycle.
        """
        waits_for = [len(of) for of in self.predecessors]
        ready = [at for at, count in enumerate(waits_for) if not count]
        found = []
        while ready:
            at = ready.pop()
            found.append(at)
            for to in self.successors[at]:
                waits_for[to] -= 1
                if not waits_for[to]:
                    ready.append(to)
        if len(found) < len(self.modules):
            raise ValueError("the graph has a cycle")
        return tuple(found)

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """The modules that depend on each module."""
        return tuple(
            tuple(sorted({to for start, to in self.edges if start == at}))
            for at in range(len(self.modules))
        )

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """The modules that each module depends on."""
        return tuple(
            tuple(sorted({start for start, to in self.edges if to == at}))
            for at in range(len(self.modules))
        )

    @cached_property
    def least_latencies_ns(self) -> tuple[int, ...]:
        """Below these latencies no machine of each module finishes a batch."""
        return tuple(min(c.duration_ns for c in of.configurations) + 1 for of in self.modules)

    @property
    def least_latency_ns(self) -> int:
        """The longest path of least latencies."""
        return max(self.longest_ns(self.least_latencies_ns))

    def longest_ns(self, latencies_ns: Sequence[int]) -> list[int]:
        """Return the latency of the longest path through each module.

        Args:
            latencies_ns: the latency of each module.
        """
        before = [0] * len(self.modules)
        after = [0] * len(self.modules)
        for at in self.order:
            before[at] = max(
                (before[p] + latencies_ns[p] for p in self.predecessors[at]), default=0
            )
        for at in reversed(self.order):
            after[at] = max((after[s] + latencies_ns[s] for s in self.successors[at]), default=0)
        return [b + own + a for b, own, a in zip(before, latencies_ns, after, strict=True)]
