"""Decides which variants share one accelerator in turn, and which camera uses which. Pure.

One variant per worker (`mapping_problem`) lets one weak camera drag all others down where there is
one accelerator, the usual edge box. Here the accelerator runs batches of its active variants in
turn, and a camera is safe if it can miss its batch's start and wait a whole cycle for the next.
With one variant this is exactly Jellyfish's Eq. 6 and 7, so nothing that is feasible there is lost.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from edgebox.planning.mapping_fast import fast_mapping
from edgebox.planning.mapping_problem import RATE_UNITS_PER_HZ, MappingProblem, rate_units
from edgebox.planning.mapping_table import Floats, Ints

_CAPS = (1, 2, 4, 8, 12, 16, 32)
_STARTS = 6
_SLOTS = 3
"""How many variants a first answer may use; improvements may bring in more."""
_NODES = 2000
"""How many partial assignments are looked at in search of a better one."""

Score = tuple[int, float]


@dataclass(frozen=True, slots=True)
class CyclePlan:
    """A variant for each camera, by its number, and how large batches may have to be."""

    variant_of: dict[int, int]
    """Camera to variant; who is missing is not served."""
    batch_of: dict[int, int]
    """Active variant to the largest batch that a cycle must take."""
    cycle_ms: float


def cycle(problem: MappingProblem, variant_of: dict[int, int]) -> CyclePlan | None:
    """Say how one accelerator serves these cameras on these variants; None: it cannot.

    With R for the sum of the batches' times over the active variants: R plus a variant's own batch
    time is within the budget of each of its cameras, and a batch holds what comes in R. Larger
    batches make R longer and longer R makes batches larger, so the least fixed point is the best
    there is. O(v B) for v active variants.
    """
    load: dict[int, int] = {}
    budget_ms: dict[int, float] = {}
    for camera, variant in variant_of.items():
        of = problem.cameras[camera]
        load[variant] = load.get(variant, 0) + rate_units(of.rate_hz)
        least = budget_ms.get(variant, float("inf"))
        budget_ms[variant] = min(least, of.budget_ms[variant])
    time_ms = {variant: _shortest(problem.variants[variant].latency_ms) for variant in load}
    batch = dict.fromkeys(load, 1)
    while True:
        cycle_ms = sum(time_ms[variant][batch[variant] - 1] for variant in load)
        if any(cycle_ms + time_ms[v][batch[v] - 1] > budget_ms[v] for v in load):
            return None
        # A request is a request: what is above a whole number by less than rounding is not one.
        needed = {
            v: max(1, int(np.ceil(of * cycle_ms / (1000 * RATE_UNITS_PER_HZ) - 1e-9)))
            for v, of in load.items()
        }
        if any(size > problem.max_batch for size in needed.values()):
            return None
        if needed == batch:
            return CyclePlan(dict(variant_of), batch, cycle_ms)
        batch = {v: max(size, batch[v]) for v, size in needed.items()}


def cycle_score(problem: MappingProblem, plan: CyclePlan) -> Score:
    """Return how many cameras are served, and the sum of accuracy times rate."""
    return _score(problem, plan.variant_of)


def shared_in_turn(problem: MappingProblem) -> CyclePlan:
    """Choose variants for one accelerator: most cameras, then most accuracy; workers are ignored.

    All sets of up to three variants with batch sizes of a few steps are tried at once (the cycle is
    then fixed): every camera gets the most accurate variant that it bears and that has room. The
    best of these, and the best with one variant, are improved by moving and swapping cameras under
    the exact test. Then branch and bound looks for anything better, within a number of tests: with
    few cameras the answer is the best there is. O(V^3 n) in numpy for V variants, then
    O(n (n + V)) tests a round.
    """
    single = MappingProblem(1, problem.max_batch, problem.variants, problem.cameras)
    [worker] = fast_mapping(single, random.Random(0), should_stop=lambda: False).workers
    starts = [dict.fromkeys(worker.cameras, worker.variant), *_first_answers(problem)]
    best = starts[0]
    for start in starts:
        if cycle(problem, start) is None:
            continue
        improved = _improved(problem, start)
        if _score(problem, improved) > _score(problem, best):
            best = improved
    plan = cycle(problem, _searched(problem, best))
    return plan if plan is not None else CyclePlan({}, {}, 0.0)


def _score(problem: MappingProblem, variant_of: dict[int, int]) -> Score:
    return len(variant_of), sum(
        problem.variants[variant].accuracy * problem.cameras[camera].rate_hz
        for camera, variant in sorted(variant_of.items())
    )


def _shortest(latency_ms: tuple[float, ...]) -> list[float]:
    """Return the time of a batch of each size, run padded to a larger one where that is faster."""
    shortest = list(latency_ms)
    for at in range(len(shortest) - 2, -1, -1):
        shortest[at] = min(shortest[at], shortest[at + 1])
    return shortest


def _first_answers(problem: MappingProblem) -> list[dict[int, int]]:
    """Return the best of the answers with few variants and batch sizes of a few steps."""
    if not problem.cameras:
        return []
    active, cap, time_ms = _choices(problem)
    cycle_ms = time_ms.sum(axis=1)
    room = np.where(active >= 0, cap / cycle_ms[:, None], 0.0)  # requests per ms
    rates = np.array([camera.rate_hz for camera in problem.cameras]) / 1000
    budgets = np.array([(*camera.budget_ms, 0.0) for camera in problem.cameras])
    accuracy = np.array([*(variant.accuracy for variant in problem.variants), 0.0])
    ease = (budgets > 0).sum(axis=1) + budgets.mean(axis=1) / max(1.0, budgets.max())
    answers = []
    for order in (np.argsort(rates, kind="stable"), np.argsort(ease, kind="stable")):
        given = np.full((len(active), len(rates)), -1)
        left = room * (1 + 1e-12)
        for camera in order.tolist():
            free = np.ones(len(active), np.bool_)
            for slot in range(_SLOTS):
                bears = budgets[camera, active[:, slot]] >= cycle_ms + time_ms[:, slot]
                takes = free & bears & (left[:, slot] >= rates[camera])
                given[takes, camera] = active[takes, slot]
                left[takes, slot] -= rates[camera]
                free &= ~takes
        served = given >= 0
        worth = served.sum(axis=1) * 1e9 + (accuracy[given] * rates * served).sum(axis=1)
        rows = given[np.argsort(-worth, kind="stable")[:_STARTS]].tolist()
        answers += [{c: v for c, v in enumerate(row) if v >= 0} for row in rows]
    return [answer for at, answer in enumerate(answers) if answer not in answers[:at]]


def _choices(problem: MappingProblem) -> tuple[Ints, Ints, Floats]:
    """Return (c, slots) variants by falling accuracy, batch sizes and their times, -1: none."""
    caps = [cap for cap in _CAPS if cap <= problem.max_batch]
    time_ms = np.array([_shortest(variant.latency_ms) for variant in problem.variants])
    ranked = sorted(range(len(time_ms)), key=lambda v: -problem.variants[v].accuracy)
    sizes = range(1, min(_SLOTS, len(ranked)) + 1)
    rows = [(*of, *(-1,) * (_SLOTS - n)) for n in sizes for of in combinations(ranked, n)]
    grid = np.stack(np.meshgrid(*[caps] * _SLOTS, indexing="ij"), axis=-1).reshape(-1, _SLOTS)
    active = np.repeat(np.array(rows), len(grid), axis=0)
    cap = np.tile(grid, (len(rows), 1))
    # Of those that differ only in the batch size of no variant, one is enough.
    wanted = ((active >= 0) | (cap == caps[0])).all(axis=1)
    active, cap = active[wanted], cap[wanted]
    return active, cap, np.where(active >= 0, time_ms[active, cap - 1], 0.0)


def _improved(problem: MappingProblem, variant_of: dict[int, int]) -> dict[int, int]:
    """Change one or two cameras at a time as long as that brings anything."""
    best, score = variant_of, _score(problem, variant_of)
    found = True
    while found:
        found = False
        for changed in _changes(problem, best):
            new = _score(problem, changed)
            better = new[0] > score[0] or (new[0] == score[0] and new[1] > score[1] + 1e-9)
            if better and cycle(problem, changed) is not None:
                best, score, found = changed, new, True
                break
    return best


def _searched(problem: MappingProblem, best: dict[int, int]) -> dict[int, int]:
    """Go through the assignments that may be better, depth first, as far as `_NODES` go.

    One more camera only makes a cycle longer, so nothing is to be found below what does not fit.
    """
    ranked = sorted(range(len(problem.variants)), key=lambda v: -problem.variants[v].accuracy)
    usable = [[v for v in ranked if c.budget_ms[v] > 0] for c in problem.cameras]
    hoped = [(0, 0.0)]  # the most that the last cameras may add
    for last, of in reversed(list(zip(problem.cameras, usable, strict=True))):
        most = problem.variants[of[0]].accuracy * last.rate_hz if of else 0.0
        hoped.append((hoped[-1][0] + bool(of), hoped[-1][1] + most))
    hoped.reverse()
    score, nodes = _score(problem, best), 0
    waiting: list[tuple[int, dict[int, int]]] = [(0, {})]
    while waiting and nodes < _NODES:
        camera, chosen = waiting.pop()
        served, worth = _score(problem, chosen)
        if (served + hoped[camera][0], worth + hoped[camera][1]) <= (score[0], score[1] + 1e-9):
            continue
        nodes += 1
        if cycle(problem, chosen) is None:
            continue
        if (served, worth) > score:
            best, score = chosen, (served, worth)
        if camera < len(usable):
            waiting.append((camera + 1, chosen))
            waiting += [(camera + 1, {**chosen, camera: v}) for v in reversed(usable[camera])]
    return best


def _changes(problem: MappingProblem, variant_of: dict[int, int]) -> Iterator[dict[int, int]]:
    cameras = range(len(problem.cameras))
    usable = {
        c: [v for v, budget_ms in enumerate(problem.cameras[c].budget_ms) if budget_ms > 0]
        for c in cameras
    }
    for camera in cameras:
        for variant in usable[camera]:
            if variant_of.get(camera) != variant:
                yield {**variant_of, camera: variant}
    active = sorted(set(variant_of.values()))
    for old in active:  # a whole variant's cameras to another one
        for new in range(len(problem.variants)):
            if new != old:
                yield {c: new if v == old else v for c, v in variant_of.items()}
    for one, two in combinations(cameras, 2):
        a, b = variant_of.get(one), variant_of.get(two)
        if a != b:
            swapped = {c: v for c, v in variant_of.items() if c not in (one, two)}
            yield {
                **swapped,
                **({one: b} if b is not None else {}),
                **({two: a} if a is not None else {}),
            }
