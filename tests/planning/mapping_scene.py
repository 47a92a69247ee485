"""Mapping problems for tests, judged by plain enumeration."""

import random
from itertools import product

from hypothesis import strategies as st

from benchmarks.jellyfish.instances import anything
from edgebox.planning.mapping_problem import Mapping, MappingCamera, MappingProblem


def problems(workers: int, cameras: int) -> st.SearchStrategy[MappingProblem]:
    """Return a strategy for problems of any kind, up to so many workers and cameras."""
    return st.builds(
        lambda seed, k, n: anything(random.Random(seed), k, n),
        st.integers(0, 1 << 32),
        st.integers(1, workers),
        st.integers(0, cameras),
    )


def score(problem: MappingProblem, mapping: Mapping) -> tuple[int, float]:
    """Return served cameras and objective."""
    return mapping.served, mapping.objective(problem)


def feasible(problem: MappingProblem, mapping: Mapping) -> bool:
    """Say whether a mapping meets Eq. 3 to 7, written down a second time."""
    mapped = [camera for worker in mapping.workers for camera in worker.cameras]
    if len(mapping.workers) != problem.workers or len(mapped) != len(set(mapped)):
        return False
    for worker in mapping.workers:
        latency_ms = problem.variants[worker.variant].latency_ms[worker.batch - 1]
        cameras = [problem.cameras[at] for at in worker.cameras]
        if sum(c.rate_hz for c in cameras) > 1000 * worker.batch / latency_ms + 1e-7:
            return False
        if any(2 * latency_ms > c.budget_ms[worker.variant] for c in cameras):
            return False
    return True


def best_by_enumeration(problem: MappingProblem) -> tuple[int, float]:
    """Return served cameras and objective of the best of all assignments to workers or to none."""
    best = (0, 0.0)
    for places in product(range(problem.workers + 1), repeat=len(problem.cameras)):
        value = 0.0
        for worker in range(problem.workers):
            group = [c for c, at in zip(problem.cameras, places, strict=True) if at == worker]
            worth = _group_worth(problem, group)
            if worth is None:
                break
            value += worth
        else:
            best = max(best, (sum(at < problem.workers for at in places), value))
    return best


def _group_worth(problem: MappingProblem, group: list[MappingCamera]) -> float | None:
    load_hz = sum(camera.rate_hz for camera in group)
    possible = [
        variant.accuracy * load_hz
        for at, variant in enumerate(problem.variants)
        for batch, latency_ms in enumerate(variant.latency_ms, 1)
        if load_hz <= 1000 * batch / latency_ms + 1e-7
        and all(2 * latency_ms <= camera.budget_ms[at] for camera in group)
    ]
    return max(possible, default=None)
