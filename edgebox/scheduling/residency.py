"""Owns the contents of each executor's memory: orders loads and unloads so that it follows the
plan.

Pure. `weight_placement` decides what to hold; this module decides how to get there. One load at a
time per executor. Nothing is unloaded before its space is needed, nor while a request waits for it
or runs on it. What cannot start now is tried again with the next plan. Until a load has ended,
frames run on what is in memory.

Limits: it tracks only executors whose memory is limited; all others hold everything.
"""

from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from edgebox.domain.model_family import ExecutorId, VariantName, Weights, WeightsId
from edgebox.scheduling.actions import Action, Load, Unload
from edgebox.scheduling.events import LoadFailed, MemoryLimited, WeightsLoaded
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.sampling import Sampling
from edgebox.scheduling.weight_placement import choose_resident, matched

RETRY_NS = 60_000_000_000
"""Delay after a failed load."""


@dataclass(slots=True)
class Memory:
    """One executor's memory, with counts of how well its contents were predicted."""

    limit_bytes: int
    weights: dict[WeightsId, Weights]
    resident: dict[WeightsId, None]
    loading: WeightsId | None = None
    planned: Mapping[VariantName, int] = field(default_factory=dict)
    """Cameras by variant, from the last plan."""
    hits: int = 0
    """Variants that a plan added and that were in memory."""
    misses: int = 0
    loads: int = 0
    switches: int = 0
    """Misses that have been loaded since."""
    switch_ns: int = 0
    """Total time of these, from the plan to the end of the load."""
    missed_ns: dict[WeightsId, int] = field(default_factory=dict)
    failed_ns: dict[WeightsId, int] = field(default_factory=dict)

    @property
    def used_bytes(self) -> int:
        """Bytes in memory, including those being loaded."""
        loading = () if self.loading is None else (self.loading,)
        return sum(self.weights[each].size_bytes for each in (*self.resident, *loading))

    @property
    def variants(self) -> list[VariantName]:
        """The variants that can run now."""
        return [variant for each in self.resident for variant in self.weights[each].variants]

    def count_prediction(self, weights: WeightsId, now_ns: int) -> None:
        """Count whether a variant that a plan adds was already in memory."""
        if weights in self.resident:
            self.hits += 1
        else:
            self.misses += 1
            self.missed_ns.setdefault(weights, now_ns)

    def load_ended(self, weights: WeightsId, now_ns: int, *, well: bool) -> None:
        """Note how the current load has ended."""
        self.loading = None
        missed_ns = self.missed_ns.pop(weights, None)
        if not well:
            self.failed_ns[weights] = now_ns
            return
        self.resident[weights] = None
        self.loads += 1
        if missed_ns is not None:
            self.switches += 1
            self.switch_ns += now_ns - missed_ns

    def target(self, now_ns: int, runs: Container[VariantName]) -> list[Weights]:
        """Return the weights that the last plan asks for, the most needed first.

        Args:
            now_ns: the instant.
            runs: the variants that the executor can run. Others, which hang there, are not held:
                they would keep out what it can run.
        """
        possible = [
            each
            for each in self.weights.values()
            if any(variant in runs for variant in each.variants)
            and (
                each.id in self.resident
                or now_ns - self.failed_ns.get(each.id, now_ns - RETRY_NS) >= RETRY_NS
            )
        ]
        cameras = {
            each.id: sum(self.planned.get(variant, 0) for variant in each.variants)
            for each in possible
        }
        held = choose_resident(possible, cameras, self.resident, self.limit_bytes)
        return [self.weights[each] for each in held]


class Residency:
    """The memories of all executors with a limit."""

    def __init__(self, latencies: Latencies, sampling: Sampling) -> None:
        self._latencies = latencies
        self._sampling = sampling
        self.memories: dict[ExecutorId, Memory] = {}

    def limit(self, event: MemoryLimited) -> list[Action]:
        """Set an executor's limit, its weights and what it holds."""
        weights = {each.id: each for each in event.weights}
        resident = dict.fromkeys(each for each in event.resident if each in weights)
        self.memories[event.executor] = Memory(event.limit_bytes, weights, resident)
        return self._update_resident(event.executor)

    def executor_stopped(self, executor: ExecutorId) -> None:
        """Remove an executor."""
        self.memories.pop(executor, None)

    def profiles_changed(self, executor: ExecutorId) -> list[Action]:
        """Note that an executor can run other variants; its memory holds what it held."""
        return self._update_resident(executor) if executor in self.memories else []

    def planned(
        self,
        cameras: Mapping[ExecutorId, Mapping[VariantName, int]],
        in_use: AbstractSet[VariantName],
        now_ns: int,
    ) -> list[Action]:
        """Follow a plan that gives these variants to this many cameras.

        Args:
            cameras: for each executor, by variant that it is to serve.
            in_use: variants of live requests; they stay in memory.
            now_ns: the instant.
        """
        out: list[Action] = []
        for executor, memory in self.memories.items():
            for each in memory.weights.values():
                for variant in each.variants:
                    if variant in cameras[executor] and variant not in memory.planned:
                        memory.count_prediction(each.id, now_ns)
            memory.planned = dict(cameras[executor])
            out += self._move(executor, in_use, now_ns)
        return out

    def ended(
        self,
        event: WeightsLoaded | LoadFailed,
        in_use: AbstractSet[VariantName],
        now_ns: int,
        *,
        more: bool,
    ) -> list[Action]:
        """Note the end of a load, and start the next if `more` may be loaded."""
        memory = self.memories.get(event.executor)
        if memory is None or memory.loading != event.weights:
            return []
        memory.load_ended(event.weights, now_ns, well=isinstance(event, WeightsLoaded))
        out = self._update_resident(event.executor)
        return out + self._move(event.executor, in_use, now_ns) if more else out

    def _update_resident(self, executor: ExecutorId) -> list[Action]:
        variants = self.memories[executor].variants
        self._latencies.set_resident(executor, variants)
        return list(self._sampling.held(executor, variants))

    def _move(
        self, executor: ExecutorId, in_use: AbstractSet[VariantName], now_ns: int
    ) -> list[Action]:
        memory = self.memories[executor]
        if memory.loading is not None:
            return []
        held = memory.target(now_ns, self._latencies.known(executor))
        orders = _orders(executor, memory, held, in_use)
        if any(isinstance(order, Unload) for order in orders):
            return [*self._update_resident(executor), *orders]
        return orders


def _orders(
    executor: ExecutorId, memory: Memory, held: Sequence[Weights], in_use: AbstractSet[VariantName]
) -> list[Action]:
    """Return the next orders towards what is to be held, and apply them to the memory.

    Nothing is being loaded.
    """
    are = [memory.weights[each] for each in memory.resident]
    replaces = matched(are, held)
    may_leave = [each for each in are if each not in held and in_use.isdisjoint(each.variants)]
    for each in held:
        if each.id in memory.resident:
            continue
        leaving = _leaving(memory, each, may_leave, replaces.get(each.id))
        if leaving is not None:
            for gone in leaving:
                del memory.resident[gone]
            memory.loading = each.id
            return [*(Unload(executor, gone) for gone in leaving), Load(executor, each.id)]
    return []


def _leaving(
    memory: Memory, coming: Weights, may_leave: list[Weights], partner: WeightsId | None
) -> list[WeightsId] | None:
    """Return the weights to unload for these, their partner first; None: that is not enough."""
    over_bytes = memory.used_bytes + coming.size_bytes - memory.limit_bytes
    leaving = []
    for each in sorted(may_leave, key=lambda w: (w.id != partner, -abs(w.pixels - coming.pixels))):
        if over_bytes <= 0:
            break
        leaving.append(each.id)
        over_bytes -= each.size_bytes
    return leaving if over_bytes <= 0 else None
