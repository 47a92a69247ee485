"""Splits a box into parts that have nothing to do with each other, each planned by itself. Pure.

Executors may hold different families. Two that have no family in common, directly or through
others, never run each other's frames: to plan them as one pool would count one's time as taken by
the other's cameras, and a box of two such executors as full when each is half busy.

Cameras of one part may share an uplink with those of another, or have their later stages there.
Such parts are decided together, as one box; all others are boxes of their own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.domain.plans import (
    CameraSnapshot,
    Plan,
    PlanningSnapshot,
    Resource,
    ResourcePrice,
)
from edgebox.domain.requests import SiteId


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


def separate_boxes(snapshot: PlanningSnapshot) -> list[PlanningSnapshot]:
    """Return the boxes that a box consists of: what is decided in one changes nothing in others.

    Each has one part, or several that share an uplink or later stages. O(cameras x parts).
    """
    every = parts(snapshot)
    run = {variant.family for part in every for variant in part.variants}
    found: list[tuple[set[FamilyName], set[SiteId], list[PlanningSnapshot]]] = []
    for part in every:
        families = {variant.family for variant in part.variants}
        families |= run & {family for c in part.cameras for family in _later_families(c)}
        sites = {c.camera.site for c in part.cameras if c.camera.site is not None}
        joined = [part]
        for box in [b for b in found if families & b[0] or sites & b[1]]:
            found.remove(box)
            families, sites, joined = families | box[0], sites | box[1], box[2] + joined
        found.append((families, sites, joined))
    return [_joined(snapshot, joined) for _, _, joined in found]


def _joined(whole: PlanningSnapshot, joined: Sequence[PlanningSnapshot]) -> PlanningSnapshot:
    """Return some parts of a box as one."""
    if len(joined) == 1:
        return joined[0]
    families = {variant.family for part in joined for variant in part.variants}
    return _part(whole, families, [executor for part in joined for executor in part.profiles])


def _later_families(camera: CameraSnapshot) -> Iterator[FamilyName]:
    """Yield the families that the later stages of a camera may run on."""
    yield from (each.variant.family for stage in camera.later for each in stage.variants)
    yield from (family for family, _ in camera.other_later_s)
    if camera.cascade is not None:
        yield camera.cascade.large.family


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
