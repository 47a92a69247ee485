"""Measures how much longer batches take on an executor while the box's others run.

Blocks; run it off the event loop. Executors share cores, caches, memory and buses, in ways that
a machine's description does not contain. So the times are measured beside one other executor,
beside two, and beside all, which run the same family; and beside one that runs another family.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import numpy as np

from edgebox.domain.errors import ModelError
from edgebox.domain.interference import MeasuredInterference
from edgebox.domain.model_family import Variant, VariantName
from edgebox.inference.executor import THREADS, Executor, come_back
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.tensors import Canvas

_ROUNDS_MIN = 3
_BURST_NS = 30_000_000
"""Batches are run in bursts that last this long at least, as under load: the system prefers a
thread that has slept, so that a short batch by itself would seem to cost nothing."""
_BURST_MAX = 32
_NUMBERS = (1, 2)
"""The numbers of others that are measured, besides all of them."""
_POINTS_MAX = 3
"""The smallest variant, the largest, and one between: the others lie between these."""


@dataclass(frozen=True, slots=True)
class Load:
    """A batch that keeps an executor busy."""

    executor: Executor
    variant: Variant
    canvases: Sequence[Canvas]

    def run(self) -> Future[BatchResult]:
        """Submit it."""
        return self.executor.submit(self.variant.name, self.canvases, len(self.canvases))

    def result_of_run(self, future: Future[BatchResult]) -> BatchResult:
        """Wait for it.

        Raises:
            ModelError: it failed, or does not come back.
        """
        return come_back(future, self.executor, f"a batch of {self.variant.name}")


def load_of(executor: Executor, variant: Variant, batch_size: int) -> Load:
    """Return a full batch of noise, so that something reaches the decoder."""
    shape = (variant.height_px, variant.width_px, 3)
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    return Load(executor, variant, [picture] * batch_size)


def interference(
    executor: Executor,
    variants: Mapping[VariantName, tuple[Variant, int]],
    beside: Sequence[Sequence[Load]],
    budget_s: float,
) -> list[MeasuredInterference]:
    """Measure by what factor an executor's batches take longer while others run.

    Rounds alternate between the others at rest and some of them busy, so that a machine that
    becomes slower meanwhile does not look like interference.

    Args:
        executor: idle, as are the others; what is measured must be in memory and warm.
        variants: what to measure, with the batch size for it.
        beside: what keeps other executors busy, one load for each. Of the first sequence one load,
            then two, then all run at once; of each further one, which has another family, the first
            load only.
        budget_s: when to stop, after three rounds at least.

    Returns:
        The factors of each variant for each set of loads; those of variants between the measured
        ones are of the nearest in pixels.

    Raises:
        ModelError: a batch failed, or an executor was closed meanwhile.
    """
    ordered = sorted(variants.values(), key=lambda each: each[0].pixels)
    points = _spread([load_of(executor, variant, size) for variant, size in ordered])
    settings = _settings(beside)
    alone: list[list[int]] = [[] for _ in points]
    slowed: list[list[list[int]]] = [[[] for _ in points] for _ in settings]
    started_s = time.monotonic()
    counts = [_count(point.result_of_run(point.run()).took_ns) for point in points]
    rounds = 0
    while rounds < _ROUNDS_MIN or time.monotonic() - started_s < budget_s:
        for point, count, times_ns in zip(points, counts, alone, strict=True):
            times_ns.append(_burst_ns(point, count))
        for loads, of in zip(settings, slowed, strict=True):
            with kept_busy(loads):
                for point, count, times_ns in zip(points, counts, of, strict=True):
                    times_ns.append(_burst_ns(point, count))
        rounds += 1
    found = []
    for loads, of in zip(settings, slowed, strict=True):
        factors = [
            (point.variant.pixels, max(1.0, median(slow) / median(fast)))
            for point, fast, slow in zip(points, alone, of, strict=True)
        ]
        for variant, _ in ordered:
            nearest = min(factors, key=lambda each: abs(each[0] - variant.pixels))
            family = loads[0].variant.family
            found.append(MeasuredInterference(variant.name, family, len(loads), factor=nearest[1]))
    return found


def _settings(beside: Sequence[Sequence[Load]]) -> list[Sequence[Load]]:
    """Return the sets of loads that run at once."""
    first, *others = beside
    numbers = sorted({n for n in _NUMBERS if n < len(first)} | {len(first)})
    return [first[:n] for n in numbers] + [loads[:1] for loads in others]


def _count(single_ns: int) -> int:
    return min(_BURST_MAX, -(-_BURST_NS // max(1, single_ns)))


def _burst_ns(point: Load, count: int) -> int:
    """Return the time of this many batches, run one right after the other."""
    runs = [point.run() for _ in range(count)]
    return sum(point.result_of_run(done).took_ns for done in runs)


@contextmanager
def kept_busy(loads: Sequence[Load]) -> Iterator[None]:
    """Keep executors busy, one batch after the other; begins and ends when each has done one.

    Raises:
        ModelError: a batch failed.
    """
    ended = threading.Event()
    failures: list[ModelError] = []
    busy = [threading.Event() for _ in loads]

    def work(load: Load, begun: threading.Event) -> None:
        try:
            while not ended.is_set():
                done = load.run()
                begun.set()
                load.result_of_run(done)
        except ModelError as error:
            failures.append(error)
            begun.set()

    threads = [
        threading.Thread(target=work, args=(load, begun), name=f"{THREADS}load", daemon=True)
        for load, begun in zip(loads, busy, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        for begun in busy:
            begun.wait()
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def _spread(points: Sequence[Load]) -> list[Load]:
    """Return a few of the points, from the first to the last."""
    if len(points) <= _POINTS_MAX:
        return list(points)
    step = (len(points) - 1) / (_POINTS_MAX - 1)
    return [points[round(at * step)] for at in range(_POINTS_MAX)]
