"""Owns problem P1 of Jellyfish: which cameras share which worker, on which variant. Pure.

Source: Jellyfish, section 4.1, Eq. 2 to 7, with one difference: where not all cameras can be
served, P1 has no solution; here as many as possible are, and only then does accuracy count.
Cameras, variants and workers are numbers here, by their place in the problem.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

RATE_UNITS_PER_HZ = 1_000_000_000
"""Rates are added up as whole numbers of these, so that no sum depends on its order."""


@dataclass(frozen=True, slots=True)
class MappingVariant:
    """One variant as the mapping sees it."""

    name: str
    input_px: int
    accuracy: float
    latency_ms: tuple[float, ...]
    """For batches of 1, 2, ... up to the problem's largest."""


@dataclass(frozen=True, slots=True)
class MappingCamera:
    """One camera as the mapping sees it."""

    id: str
    rate_hz: float
    budget_ms: tuple[float, ...]
    """Its compute budget for each variant; 0: it cannot use that one."""


@dataclass(frozen=True, slots=True)
class MappingProblem:
    """Workers that are alike, and the cameras to be mapped to them."""

    workers: int
    max_batch: int
    variants: tuple[MappingVariant, ...]
    cameras: tuple[MappingCamera, ...]


@dataclass(frozen=True, slots=True)
class WorkerMapping:
    """What one worker runs, and for whom. Without cameras it is idle."""

    variant: int
    batch: int
    cameras: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """An answer to a problem: one entry per worker; cameras that are in none are not served."""

    workers: tuple[WorkerMapping, ...]

    @property
    def served(self) -> int:
        """How many cameras are mapped."""
        return sum(len(worker.cameras) for worker in self.workers)

    def objective(self, problem: MappingProblem) -> float:
        """Return the sum of accuracy times rate over the served cameras (Eq. 2)."""
        return math.fsum(
            problem.variants[worker.variant].accuracy * problem.cameras[camera].rate_hz
            for worker in self.workers
            for camera in worker.cameras
        )

    def worker_of(self) -> dict[int, int]:
        """Return the worker of each served camera."""
        return {c: at for at, worker in enumerate(self.workers) for c in worker.cameras}


def rate_units(rate_hz: float) -> int:
    """Return a rate in whole units; what is finer than a unit is rounded up."""
    units = rate_hz * RATE_UNITS_PER_HZ
    return round(units) if _is_whole(units) else math.ceil(units)


def capacity_units(batch: int, latency_ms: float) -> int:
    """Return the rate that back-to-back batches serve (Eq. 7), in whole units rounded down."""
    units = 1000 * batch / latency_ms * RATE_UNITS_PER_HZ
    return round(units) if _is_whole(units) else math.floor(units)


def _is_whole(units: float) -> bool:
    """Say whether a number is whole but for the errors of a few operations on floats."""
    return abs(units - round(units)) <= 1e-15 * abs(units)


def fits(problem: MappingProblem, worker: WorkerMapping) -> bool:
    """Say whether a worker's cameras meet Eq. 6 and 7 on its variant at its batch size."""
    latency_ms = problem.variants[worker.variant].latency_ms[worker.batch - 1]
    cameras = [problem.cameras[camera] for camera in worker.cameras]
    load = sum(rate_units(camera.rate_hz) for camera in cameras)
    return load <= capacity_units(worker.batch, latency_ms) and all(
        2 * latency_ms <= camera.budget_ms[worker.variant] for camera in cameras
    )


def violations(problem: MappingProblem, mapping: Mapping) -> list[str]:
    """Say what is wrong with a mapping, a sentence each; nothing if it is feasible."""
    wrong = []
    if len(mapping.workers) != problem.workers:
        wrong.append(f"{len(mapping.workers)} workers instead of {problem.workers}")
    if mapping.served != len(mapping.worker_of()):
        wrong.append("a camera is mapped twice")
    wrong += [
        f"worker {at} cannot serve its cameras in time"
        for at, worker in enumerate(mapping.workers)
        if not fits(problem, worker)
    ]
    return wrong


@dataclass(frozen=True, slots=True)
class Configuration:
    """One batch size of one variant that is worth choosing."""

    batch: int
    latency_ms: float
    capacity: int
    """In rate units."""


def worthwhile(variant: MappingVariant) -> list[Configuration]:
    """Return a variant's batch sizes that no other one beats in both latency and capacity."""
    rising = sorted(
        (latency_ms, -capacity_units(batch, latency_ms), batch)
        for batch, latency_ms in enumerate(variant.latency_ms, 1)
    )
    kept: list[Configuration] = []
    for latency_ms, negative, batch in rising:
        if not kept or -negative > kept[-1].capacity:
            kept.append(Configuration(batch, latency_ms, -negative))
    return kept


def mapping_of(
    problem: MappingProblem, groups: Sequence[tuple[int, int, Sequence[int]]]
) -> Mapping:
    """Make a mapping from (variant, batch, cameras) of the busy workers; the others are idle."""
    busy = [WorkerMapping(v, batch, tuple(sorted(cameras))) for v, batch, cameras in groups]
    idle = [WorkerMapping(0, 1)] * (problem.workers - len(busy))
    return Mapping((*busy, *idle))
