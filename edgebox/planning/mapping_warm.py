"""Decides what of a mapping in force is kept when the problem has changed. Pure."""

from collections.abc import Sequence

from edgebox.planning.mapping_problem import (
    Mapping,
    MappingProblem,
    WorkerMapping,
    fits,
    rate_units,
    worthwhile,
)


def kept_mapping(problem: MappingProblem, previous: Mapping) -> Mapping:
    """Return what remains of a mapping under new budgets and rates.

    Every worker keeps its variant if its cameras then still fit, at the smallest batch that does;
    else it takes the most accurate variant that does. If none does, the cameras that fit least are
    left out.
    """
    workers = [_kept(problem, worker) for worker in previous.workers[: problem.workers]]
    workers += [WorkerMapping(0, 1)] * (problem.workers - len(workers))
    return Mapping(tuple(workers))


def settled(
    problem: MappingProblem, kept: Mapping, others: Sequence[Mapping], better_by: float
) -> Mapping:
    """Return the first mapping that no later one beats clearly.

    Args:
        problem: what is mapped.
        kept: what remains of the mapping in force.
        others: what could replace it, from the most alike and least good to the best.
        better_by: an objective larger by this factor is clearly better; so are more cameras.

    Returns:
        That mapping, with its workers as they were where possible.
    """
    best = others[-1]
    for mapping in (kept, *others[:-1]):
        as_many = mapping.served >= best.served
        if as_many and best.objective(problem) <= better_by * mapping.objective(problem):
            return _aligned(kept, mapping)
    return _aligned(kept, best)


def _kept(problem: MappingProblem, worker: WorkerMapping) -> WorkerMapping:
    cameras = [c for c in worker.cameras if c < len(problem.cameras)]
    order = sorted(range(len(problem.variants)), key=lambda j: -problem.variants[j].accuracy)
    while cameras:
        for variant in (worker.variant, *order):
            for configuration in worthwhile(problem.variants[variant]):
                as_is = WorkerMapping(variant, configuration.batch, tuple(cameras))
                if fits(problem, as_is):
                    return as_is
        cameras.remove(_odd_one(problem, cameras))
    return WorkerMapping(worker.variant, 1)


def _odd_one(problem: MappingProblem, cameras: list[int]) -> int:
    """Return the camera with the least budgets, or the highest rate among equals."""

    def ease(camera: int) -> tuple[float, int]:
        of = problem.cameras[camera]
        return sum(of.budget_ms), -rate_units(of.rate_hz)

    return min(cameras, key=ease)


def _aligned(kept: Mapping, found: Mapping) -> Mapping:
    """Put the new groups onto the workers that have most of their cameras and their variant."""
    pairs = sorted(
        (
            -len(set(old.cameras) & set(new.cameras)),
            old.variant != new.variant,
            at,
            to,
        )
        for at, new in enumerate(found.workers)
        for to, old in enumerate(kept.workers)
    )
    place: dict[int, int] = {}
    for _, _, at, to in pairs:
        if at not in place.values() and to not in place:
            place[to] = at
    return Mapping(tuple(found.workers[place[to]] for to in range(len(kept.workers))))
