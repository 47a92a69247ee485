"""What executors with limited memory hold in a made-up world, and whether orders about it hold."""

from collections.abc import Collection
from dataclasses import dataclass, field

from edgebox.domain.model_family import ExecutorId, VariantName, Weights, WeightsId
from edgebox.scheduling.actions import Load, Unload
from edgebox.scheduling.events import (
    Event,
    ExecutorStarted,
    ExecutorStopped,
    LoadFailed,
    MemoryLimited,
    WeightsLoaded,
)
from edgebox.simulation.faults.small_box import FAMILY, STREET

FILE_BYTES = 10
STOCK = tuple(
    Weights(WeightsId(f"{each.name}.onnx"), STREET, FILE_BYTES, each.pixels, (each.name,))
    for each in FAMILY
)
"""A file for each variant, the smallest first."""


@dataclass(slots=True)
class _Memory:
    files_max: int
    resident: set[WeightsId]
    loading: WeightsId | None = None


@dataclass
class Held:
    """The memories of those executors that were told a limit."""

    memories: dict[ExecutorId, _Memory] = field(default_factory=dict)

    def runs(self, executor: ExecutorId, variant: VariantName) -> bool:
        """Say whether memory allows a variant there."""
        memory = self.memories.get(executor)
        return memory is None or f"{variant}.onnx" in memory.resident

    def limited(
        self, executor: ExecutorId, known: Collection[VariantName], files: int, more: int
    ) -> MemoryLimited | None:
        """Return a limit of so many files, in memory the smallest and some `more` (a mask)."""
        stock = [each for each in STOCK if each.variants[0] in known]
        if not stock:
            return None
        drawn = [each for at, each in enumerate(stock[1:]) if more >> at & 1]
        resident = tuple(each.id for each in [stock[0], *drawn][:files])
        return MemoryLimited(executor, files * FILE_BYTES, tuple(stock), resident)

    def ended(self, executor: ExecutorId, a: int, b: int) -> WeightsLoaded | LoadFailed:
        """Return the end of the load under way; now and then of one that never was."""
        memory = self.memories.get(executor)
        weights = None if memory is None or b % 7 == 0 else memory.loading
        end = LoadFailed if b % 5 == 0 else WeightsLoaded
        return end(executor, weights or STOCK[a % len(STOCK)].id)

    def note(self, event: Event | None) -> None:
        """Take in what the core was told."""
        match event:
            case ExecutorStarted() | ExecutorStopped():
                self.memories.pop(event.executor, None)
                if isinstance(event, ExecutorStarted):
                    self.note(event.memory)
            case MemoryLimited():
                files_max = event.limit_bytes // FILE_BYTES
                self.memories[event.executor] = _Memory(files_max, set(event.resident))
            case WeightsLoaded() | LoadFailed():
                memory = self.memories.get(event.executor)
                if memory is not None and memory.loading == event.weights:
                    memory.loading = None
                    if isinstance(event, WeightsLoaded):
                        memory.resident.add(event.weights)

    def judge(
        self, order: Load | Unload, in_use: Collection[VariantName], runs: Collection[VariantName]
    ) -> None:
        """Insist that an order is possible, and carry it out.

        Args:
            order: to its executor.
            in_use: variants of live requests.
            runs: variants that the executor can run.
        """
        memory = self.memories[order.executor]
        if isinstance(order, Load):
            assert memory.loading is None
            assert order.weights not in memory.resident
            memory.loading = order.weights
            assert len(memory.resident) + 1 <= memory.files_max
        else:
            memory.resident.remove(order.weights)
            runnable = {f"{variant}.onnx" for variant in runs}
            left = memory.resident & runnable
            assert left or order.weights not in runnable, "nothing is left to run"
            assert order.weights not in {f"{variant}.onnx" for variant in in_use}
