"""Decides what every camera shall send and run on: a pure function of a snapshot.

Each camera gets one variant, such that all of them together are worth most of what their links,
their deadlines and the shared executors allow (`optimised_part`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from edgebox.domain.plans import Assignment, Plan, PlanningSnapshot
from edgebox.planning.cascade_shares import filled_shares
from edgebox.planning.disjoint import together
from edgebox.planning.optimised_part import OptimisedPart, Parts, optimised_parts, utilisations
from edgebox.planning.planner_parameters import PlanningParameters

DEFAULTS = PlanningParameters()


class Planner(Protocol):
    """What answers a `ComputePlan`: pure, bounded by iterations, never by wall time."""

    def __call__(self, snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        """Compute a plan."""


def plan(
    snapshot: PlanningSnapshot,
    iterations_max: int,
    parameters: PlanningParameters = DEFAULTS,
) -> Plan:
    """Compute a plan; see `optimised_part` for how.

    Args:
        snapshot: all there is to know.
        iterations_max: bound on the steps considered; a few per camera and variant are enough
            for an answer that no single step improves.
        parameters: the tunables.

    Returns:
        An assignment for each camera whose family has a loaded variant.
    """
    parts = optimised_parts(snapshot, iterations_max, parameters)
    used = utilisations(parts)
    planned = [
        (
            part,
            replace(Plan(snapshot.taken_ns) if found is None else _plan_of(found), utilisation=u),
        )
        for (part, found), u in zip(parts, used, strict=True)
    ]
    whole = planned[0][1] if len(planned) == 1 else together(snapshot, planned)
    return _with_cascades(whole, parts, used, parameters)


def _with_cascades(
    whole: Plan, parts: Parts, used: Sequence[float], parameters: PlanningParameters
) -> Plan:
    """Return a plan whose cascades take the time that is left."""
    chosen = [
        (of.snapshot, option)
        for _, found in parts
        if found is not None
        for of, option in zip(found.allocation.cameras, found.allocation.chosen, strict=True)
    ]
    if all(camera.cascade is None for camera, _ in chosen):
        return whole
    assignments = dict(whole.assignments)
    for (part, _), taken in zip(parts, used, strict=True):
        spare_s = (parameters.utilisation_slow - taken) * part.batches_at_once
        families = {variant.family for variant in part.variants}
        for camera, share in filled_shares(chosen, families, spare_s).items():
            assignments[camera] = replace(assignments[camera], cascade_share=share)
    return replace(whole, assignments=assignments)


def _plan_of(part: OptimisedPart) -> Plan:
    found, reasons, taken_ns = part.allocation, part.reasons, part.snapshot.taken_ns
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
            quality=part.parameters.quality,
            served=of.served,
            reason=why.text,
            limit=why.limit,
            remedies=why.remedies,
            later=option.later.variants,
            cascade_share=option.later.cascade_share,
            cascade_reserved=option.later.cascade_share,
        )
    prices = reasons.prices(limits)
    by_app = Plan(taken_ns, assignments, found.utilisation, found.groups, prices)
    answer = part.by_app.plan(by_app)
    assert answer is not None
    return answer
