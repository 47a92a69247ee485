"""Splits a box into parts that have nothing to do with each other, each planned by itself. Pure.

Executors may hold different families. Two that have no family in common, directly or through
others, never run each other's frames: to plan them as one pool would count one's time as taken by
the other's cameras, and a box of two such executors as full when each is half busy.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.domain.plans import Plan, PlanningSnapshot, Resource, ResourcePrice


def parts(snapshot: PlanningSnapshot) -> list[PlanningSnapshot]:
    """Return the snapshot of each part; of a box that is one whole, just the snapshot itself.

    An executor on which nothing runs is in none. O(executors x variants).
    """
    family_of = {variant.name: variant.family for variant in snapshot.variants}
    found: list[tuple[set[FamilyName], list[ExecutorId]]] = []
    for executor, profiles in snapshot.profiles.items():
        families = {
            family_of[name]
            for name, of in profiles.items()
            if name in family_of and of.quantiles_ns
        }
        if not families:
            continue  # nothing runs there
        executors = [executor]
        for each in [part for part in found if not families.isdisjoint(part[0])]:
            found.remove(each)
            families |= each[0]
            executors = each[1] + executors
        found.append((families, executors))
    whole = len(found) == 1 and len(found[0][1]) == len(snapshot.profiles)
    if whole or not found:
        return [snapshot]
    return [_part(snapshot, families, executors) for families, executors in found]


def part_of(snapshot: PlanningSnapshot, family: FamilyName) -> PlanningSnapshot:
    """Return the part that runs a family; the whole box where none does."""
    for part in parts(snapshot):
        if any(variant.family == family for variant in part.variants):
            return part
    return snapshot


def together(snapshot: PlanningSnapshot, plans: Sequence[tuple[PlanningSnapshot, Plan]]) -> Plan:
    """Return the plan of a box from those of its parts."""
    busy = sum(plan.utilisation * len(part.profiles) for part, plan in plans)
    order = [seen.camera.id for seen in snapshot.cameras]
    assignments = {camera: given for _, plan in plans for camera, given in plan.assignments.items()}
    return Plan(
        snapshot.taken_ns,
        {camera: assignments[camera] for camera in order if camera in assignments},
        busy / sum(len(part.profiles) for part, _ in plans),
        tuple(group for _, plan in plans for group in plan.groups),
        _prices(plan for _, plan in plans),
    )


def _prices(plans: Iterable[Plan]) -> tuple[ResourcePrice, ...]:
    """Return the prices of all parts; the uplink of a site may be in several."""
    found: dict[tuple[Resource, tuple[str, ...]], ResourcePrice] = {}
    for price in (price for plan in plans for price in plan.prices):
        key = price.resource, price.of
        if (other := found.get(key)) is not None:
            count = other.cameras + price.cameras
            found[key] = ResourcePrice(*key, max(other.price, price.price), count)
        else:
            found[key] = price
    return tuple(found.values())


def _part(
    snapshot: PlanningSnapshot, families: set[FamilyName], executors: Sequence[ExecutorId]
) -> PlanningSnapshot:
    return replace(
        snapshot,
        cameras=tuple(seen for seen in snapshot.cameras if seen.camera.family in families),
        variants=tuple(variant for variant in snapshot.variants if variant.family in families),
        profiles={e: of for e, of in snapshot.profiles.items() if e in executors},
        groups=tuple(g for g in snapshot.groups if set(g.executors) <= set(executors)),
    )
