"""Decides what every camera shall send and run on: a pure function of a snapshot.

Each camera gets the most accurate variant that its link, its SLO and the shared executors
allow; where they do not suffice for all, the cameras step down together. Executors may be given
variants of their own (`apart.py`). Limits: one variant per camera.
"""

import random
from typing import Protocol

from edgebox.domain.plans import Assignment, Plan, PlanningSnapshot
from edgebox.planning.candidates import all_candidates, lone_candidates
from edgebox.planning.capacity import Bench
from edgebox.planning.choice import choose
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.reasons import reason

DEFAULTS = PlanningParameters()


class Planner(Protocol):
    """What answers a `ComputePlan`: pure, bounded by iterations, never by wall time."""

    def __call__(self, snapshot: PlanningSnapshot, rng: random.Random, iterations_max: int) -> Plan:
        """Compute a plan."""


def plan(
    snapshot: PlanningSnapshot,
    rng: random.Random,
    iterations_max: int,
    parameters: PlanningParameters = DEFAULTS,
) -> Plan:
    """Compute a plan; see `choice.choose` for how.

    Args:
        snapshot: all there is to know.
        rng: for planners that search at random; this one does not.
        iterations_max: bound on the steps considered; a few per camera and variant are enough
            for an answer that no single step improves.
        parameters: the tunables.

    Returns:
        An assignment for each camera whose family has a loaded variant.
    """
    bench = Bench(snapshot, parameters.quantile)
    timing = bench.together
    cameras = all_candidates(snapshot, timing, parameters)
    if not cameras:
        return Plan(snapshot.taken_ns)
    lone = lone_candidates(
        snapshot, timing, parameters, cameras=len(cameras), executors=len(bench.executors)
    )
    selection = choose(cameras, timing, parameters, iterations_max, bench, lone=lone)
    executors = tuple(snapshot.profiles)
    assignments = {}
    for at, (of, level) in enumerate(zip(selection.cameras, selection.levels, strict=True)):
        camera = of.snapshot.camera
        assignments[camera.id] = Assignment(
            camera=camera.id,
            variant=level.variant.name,
            rate_hz=level.rate_hz,
            quality=parameters.quality,
            served=of.served,
            reason=reason(selection, at, executors, snapshot.fixed_ns, parameters),
        )
    return Plan(snapshot.taken_ns, assignments, selection.utilisation, selection.groups)
