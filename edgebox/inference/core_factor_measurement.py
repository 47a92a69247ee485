"""Measures how much longer batches take with fewer CPU threads than with all of an executor's.

Blocks; run it off the event loop. Runs with each thread count alternate, so that a machine that
becomes slower meanwhile does not look like a thread count. Limits: only the smallest and the
largest batch size are measured; `edgebox.app.core_profiles` fits the others.
"""

import time
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from edgebox.domain.core_factors import MeasuredCoreFactor
from edgebox.domain.model_family import Variant, VariantName
from edgebox.inference.executor import Executor, come_back

_ROUNDS_MIN = 5
_ROUNDS_MAX = 200


def measure_core_factors(
    executor: Executor,
    variants: Mapping[VariantName, tuple[Variant, Sequence[int]]],
    budget_s: float,
) -> list[MeasuredCoreFactor]:
    """Measure the factors of each thread count below all.

    Args:
        executor: idle, with several thread counts; what is measured must be in memory and warm.
        variants: what to measure, each with its batch sizes, rising.
        budget_s: when to stop, after five rounds at least.

    Returns:
        The ratio of the medians with few and with all threads, at least 1, of each variant's
        smallest and largest batch.

    Raises:
        ModelError: a batch failed, or the executor was closed meanwhile.
    """
    counts = executor.thread_counts
    points = [
        (variant, size) for variant, sizes in variants.values() for size in {sizes[0], sizes[-1]}
    ]
    took_ns: list[dict[int, list[int]]] = [{threads: [] for threads in counts} for _ in points]
    for rounds in range(_ROUNDS_MAX + 1):
        if rounds == 1:  # the first round only warms
            for of in took_ns:
                for times in of.values():
                    times.clear()
            started_s = time.monotonic()
        elif rounds > _ROUNDS_MIN and time.monotonic() - started_s >= budget_s:
            break
        for (variant, size), of in zip(points, took_ns, strict=True):
            for threads in counts:
                of[threads].append(_took_ns(executor, variant, size, threads))
    return [
        MeasuredCoreFactor(
            variant.name, size, threads, max(1.0, median(of[threads]) / median(of[counts[-1]]))
        )
        for (variant, size), of in zip(points, took_ns, strict=True)
        for threads in counts[:-1]
    ]


def _took_ns(executor: Executor, variant: Variant, size: int, threads: int) -> int:
    shape = (variant.height_px, variant.width_px, 3)
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    future = executor.submit(variant.name, [picture] * size, size, threads)
    return come_back(future, executor, f"a batch of {variant.name}").took_ns
