"""Decides what every camera shall send and run on: a pure function of a snapshot.

Each camera gets one variant, such that all of them together are worth most (`optimisation.py`) of
what their links, their deadlines and the shared executors allow. Cameras of a site divide their
uplink first (`uplinks.py`).
"""

import random
from typing import Protocol

from edgebox.domain.plans import Assignment, Plan, PlanningSnapshot
from edgebox.planning.by_application import by_application
from edgebox.planning.disjoint import parts, together
from edgebox.planning.optimisation import optimise
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.reasons import Reasons
from edgebox.planning.uplinks import with_uplink_shares

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
    """Compute a plan; see `optimisation` for how. Parts of a box are planned apart (`disjoint`).

    Args:
        snapshot: all there is to know.
        rng: for planners that search at random; this one does not.
        iterations_max: bound on the steps considered; a few per camera and variant are enough
            for an answer that no single step improves.
        parameters: the tunables.

    Returns:
        An assignment for each camera whose family has a loaded variant.
    """
    snapshot = with_uplink_shares(snapshot, parameters)
    separate = [(part, _plan_part(part, iterations_max, parameters)) for part in parts(snapshot)]
    return separate[0][1] if len(separate) == 1 else together(snapshot, separate)


def _plan_part(
    snapshot: PlanningSnapshot, iterations_max: int, parameters: PlanningParameters
) -> Plan:
    told = by_application(snapshot)
    found = optimise(told, iterations_max, parameters)
    if found is None:
        return Plan(snapshot.taken_ns)
    reasons = Reasons(found, tuple(snapshot.profiles), snapshot.fixed_ns, parameters)
    assignments, limits = {}, {}
    for at, (of, option) in enumerate(zip(found.cameras, found.chosen, strict=True)):
        camera = of.snapshot.camera
        why = reasons.reason(at)
        if why.limit is not None:
            limits[at] = why.limit
        assignments[camera.id] = Assignment(
            camera=camera.id,
            variant=option.variant.name,
            rate_hz=option.rate_hz,
            quality=parameters.quality,
            served=of.served,
            reason=why.text,
            limit=why.limit,
        )
    prices = reasons.prices(limits)
    plain = Plan(snapshot.taken_ns, assignments, found.utilisation, found.groups, prices)
    answer = told.plan(plain)
    assert answer is not None
    return answer
