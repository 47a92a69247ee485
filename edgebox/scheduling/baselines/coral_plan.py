"""Plans batch sizes and time slots on streams, as OctopInf's CWD and CORAL do. Pure.

Source: Nguyen et al., "OctopInf", arXiv 2502.01277, algorithms 1 (CWD) and 2 (CORAL). A stream is a
sequence of batches on one executor. It has a duty cycle; each slot of it is a part of that cycle
reserved for batches of one model. Differences from the paper:

- One box: nothing is moved to a device of the camera, so `ToEdge` is left out.
- A stage of a pipeline is planned as a model with a deadline of its own, which the core has already
  shortened by what later stages need. So slots are not ordered along a pipeline.
- The number of requests that a duty cycle must serve is their mean plus a standard deviation. With
  a coefficient of variation c of the gaps, the variance of the number of arrivals is about c^2
  times the mean. The paper uses the burstiness only as an order.
- A batch is no larger than what a duty cycle must serve, and padding that answers no more requests
  is not planned.
- A model whose smallest batch takes more than half of the SLO gets a cycle as long as that batch:
  only those of its requests are in time that come soon before a slot. The paper gives it none.
- Models are placed by rising duty cycle, because a stream takes the cycle of the first. The paper
  places them in the order of their pipelines, and may then leave a stream with too long a cycle.
- On a stream with a shorter cycle, a slot of a model serves more often, so fewer are planned.
- Where no portion is left for a batch, smaller batches are tried. The paper gives up.
- The spatial constraint (utilisation of the GPU) is replaced by the number of streams, which the
  box derives from the measured interference (`scheduling.concurrency`). Weights are placed by
  `scheduling.weight_placement`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from edgebox.domain.model_family import ExecutorId, VariantName

Batches = tuple[tuple[int, int], ...]
"""(size, time of a batch in ns) of each profiled size, rising."""


@dataclass(frozen=True, slots=True)
class ModelDemand:
    """What one model must serve."""

    variant: VariantName
    rate_hz: float
    burstiness: float
    """Coefficient of variation of the gaps between requests: 0 evenly spaced, 1 Poisson."""
    slo_ns: int
    """Time from when a request is ready to its deadline."""
    batches: Mapping[ExecutorId, Batches]
    """On each stream that can run it, with the interference of the other streams."""

    @property
    def duty_ns(self) -> int:
        """The longest time between two slots: half of the SLO, as in the paper.

        It is longer where even the smallest batch takes longer, and still less than the SLO.
        """
        least_ns = min((ns for of in self.batches.values() for _, ns in of), default=0)
        return max(1, self.slo_ns // 2, least_ns if least_ns <= self.slo_ns else 0)

    def requests(self, duration_ns: int) -> float:
        """Return the number of requests to be prepared for in a time: at least 1."""
        mean = self.rate_hz * duration_ns / 1e9
        return max(1.0, mean + self.burstiness * math.sqrt(mean))


@dataclass(frozen=True, slots=True)
class Slot:
    """A part of a stream's duty cycle in which batches of one model may run."""

    executor: ExecutorId
    variant: VariantName
    start_ns: int
    """Since the beginning of the cycle."""
    length_ns: int
    batch_size: int
    """The largest batch, at least 1."""

    @property
    def end_ns(self) -> int:
        """The end of the slot since the beginning of the cycle."""
        return self.start_ns + self.length_ns


@dataclass(slots=True)
class Stream:
    """The slots of one executor."""

    executor: ExecutorId
    duty_ns: int = 0
    """The duration of its cycle; 0: it has no slot yet."""
    slots: list[Slot] = field(default_factory=list)
    """By rising start; they do not overlap."""

    def portions(self, duty_ns: int) -> list[tuple[int, int]]:
        """Return the free parts, (start, end), for a model with this duty cycle."""
        if self.duty_ns == 0:
            return [(0, duty_ns)]
        if duty_ns < self.duty_ns:
            return []  # its requests cannot wait for the next cycle
        bounds = [0, *(at for slot in self.slots for at in (slot.start_ns, slot.end_ns))]
        bounds.append(self.duty_ns)
        return [
            (start, end)
            for start, end in zip(bounds[::2], bounds[1::2], strict=True)
            if start < end
        ]

    def add(self, slot: Slot, duty_ns: int) -> None:
        """Add a slot in a free part; the first one sets the duration of the cycle."""
        self.duty_ns = self.duty_ns or duty_ns
        self.slots.append(slot)
        self.slots.sort(key=lambda each: each.start_ns)

    def remove(self, slot: Slot) -> None:
        """Remove a slot; a stream without slots has no cycle."""
        self.slots.remove(slot)
        if not self.slots:
            self.duty_ns = 0


def batch_size(demand: ModelDemand) -> int:
    """Return the batch size of a model: algorithm 1 for a model on its own.

    It grows as long as a batch takes at most half of the SLO, answers more per second, and is not
    larger than what a duty cycle must serve.
    """
    slowest: dict[int, int] = {}
    for batches in demand.batches.values():
        for size, took_ns in batches:
            slowest[size] = max(took_ns, slowest.get(size, 0))
    wanted = demand.requests(demand.duty_ns)
    best, best_rate = min(slowest), 0.0
    for size, took_ns in sorted(slowest.items()):
        rate = min(size, wanted) / max(1, took_ns)
        if took_ns <= demand.duty_ns and rate > best_rate:
            best, best_rate = size, rate
    return best


def plan_streams(
    executors: Sequence[ExecutorId], demands: Iterable[ModelDemand]
) -> dict[ExecutorId, Stream]:
    """Return the streams with the slots of all models, as far as they fit.

    Each round places one more slot of every model that is not served yet, so that each model has
    one before any has two. O(slots^2 x streams).
    """
    streams = {executor: Stream(executor) for executor in executors}
    ordered = sorted(demands, key=lambda of: (of.duty_ns, -of.burstiness, of.variant))
    sizes = {of.variant: batch_size(of) for of in ordered if of.batches}
    missing = {of.variant: of.requests(of.duty_ns) for of in ordered if of.batches}
    while missing:
        for demand in ordered:
            if demand.variant not in missing:
                continue
            slot = place(streams.values(), demand, sizes[demand.variant])
            if slot is None:
                del missing[demand.variant]
                continue
            served = slot.batch_size * demand.duty_ns / streams[slot.executor].duty_ns
            missing[demand.variant] -= served
            if missing[demand.variant] <= 0:
                del missing[demand.variant]
    return streams


def place(streams: Iterable[Stream], demand: ModelDemand, size_max: int) -> Slot | None:
    """Add a slot in the portion that fits best, and return it: algorithm 2 for one instance.

    The largest batch up to `size_max` that fits anywhere is placed; None: not even the smallest
    fits.
    """
    streams = list(streams)
    sizes = {size for batches in demand.batches.values() for size, _ in batches}
    for wanted in sorted((size for size in sizes if size <= size_max), reverse=True):
        best: tuple[int, Stream, Slot] | None = None
        for stream in streams:
            took_ns = dict(demand.batches.get(stream.executor, ())).get(wanted)
            if took_ns is None or took_ns > demand.duty_ns:
                continue
            for start_ns, end_ns in stream.portions(demand.duty_ns):
                left_ns = end_ns - start_ns - took_ns
                if left_ns >= 0 and (best is None or left_ns < best[0]):
                    slot = Slot(stream.executor, demand.variant, start_ns, took_ns, wanted)
                    best = left_ns, stream, slot
        if best is not None:
            best[1].add(best[2], demand.duty_ns)
            return best[2]
    return None
