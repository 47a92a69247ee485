"""Decides which cameras count as using variants of their own, because of what they look at. Pure.

A planner that is told of variants, and what batches of each take, need not know of applications.
So cameras of an application that takes longer or shorter than the profiles say are planned for as
if they used a family of their own: the same variants, with the times that were learned. Their
batches are planned apart from the others', as the batching policy forms them where times differ.
Applications of nearly the same times count as one, so that who could share batches does. Where
nothing was learned, nothing changes. O(applications x variants), once a plan.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.plans import Assignment, CameraSnapshot, Group, Plan, PlanningSnapshot

_STEP = math.log(1.25)
"""Applications whose times differ by less than about this count as one."""

_COMPARED = (QUANTILES.index(0.5), QUANTILES.index(0.9))
_Likeness = tuple[tuple[VariantName, int, int], ...]


@dataclass(frozen=True, slots=True)
class ByApplication:
    """A snapshot in which applications that differ have families of their own."""

    snapshot: PlanningSnapshot
    real: Mapping[VariantName, Variant]
    """The variants that exist, by the names of those that do not."""

    def variant(self, variant: Variant) -> Variant:
        """Return the variant that exists."""
        return self.real.get(variant.name, variant)

    def name(self, variant: VariantName) -> VariantName:
        """Return the name of the variant that exists."""
        of = self.real.get(variant)
        return variant if of is None else of.name

    def assigned(self, given: Assignment) -> Assignment:
        """Return an assignment to a variant that exists."""
        return replace(given, variant=self.name(given.variant))

    def groups(self, groups: Sequence[Group]) -> tuple[Group, ...] | None:
        """Return the groups by the variants that exist; None: one would be in two of them."""
        renamed = tuple(
            replace(g, variants=tuple(dict.fromkeys(self.name(v) for v in g.variants)))
            for g in groups
        )
        names = [name for group in renamed for name in group.variants]
        return renamed if len(names) == len(set(names)) else None

    def plan(self, plan: Plan) -> Plan | None:
        """Return a plan by the variants that exist; None: one variant would be in two groups."""
        if not self.real:
            return plan
        groups = self.groups(plan.groups)
        if groups is None:
            return None
        given = {camera: self.assigned(each) for camera, each in plan.assignments.items()}
        return replace(plan, assignments=given, groups=groups)


def by_application(snapshot: PlanningSnapshot) -> ByApplication:
    """Give applications that differ from the profiles families of their own."""
    classes = _classes(snapshot)
    if not classes:
        return ByApplication(snapshot, {})
    real: dict[VariantName, Variant] = {}
    variants = list(snapshot.variants)
    profiles = {executor: dict(of) for executor, of in snapshot.profiles.items()}
    numbers: dict[tuple[str, FamilyName], int] = {}
    for number, ((family, _), apps) in enumerate(classes.items()):
        numbers |= {(app, family): number for app in apps}
        for variant in (v for v in snapshot.variants if v.family == family):
            own = replace(
                variant, name=_own(variant.name, number), family=_own_family(family, number)
            )
            variants.append(own)
            real[own.name] = variant
            for executor, of in snapshot.profiles.items():
                if variant.name in of:
                    base = of[variant.name]
                    profiles[executor][own.name] = _slowest(snapshot, apps, executor, base)
    own_names: dict[VariantName, list[VariantName]] = {}
    for name, variant in real.items():
        own_names.setdefault(variant.name, []).append(name)
    renamed = replace(
        snapshot,
        cameras=tuple(_own_camera(camera, numbers) for camera in snapshot.cameras),
        variants=tuple(variants),
        profiles=profiles,
        groups=tuple(
            replace(g, variants=tuple(n for v in g.variants for n in (v, *own_names.get(v, ()))))
            for g in snapshot.groups
        ),
    )
    return ByApplication(renamed, real)


def _own(variant: VariantName, number: int) -> VariantName:
    return VariantName(f"{variant} ({number})")


def _own_family(family: FamilyName, number: int) -> FamilyName:
    return FamilyName(f"{family} ({number})")


def _classes(snapshot: PlanningSnapshot) -> dict[tuple[FamilyName, _Likeness], list[str]]:
    """Return the applications in use by family and by how they differ from its profiles."""
    classes: dict[tuple[FamilyName, _Likeness], list[str]] = {}
    used = dict.fromkeys((c.camera.app, c.camera.family) for c in snapshot.cameras)
    for app, family in used:
        if app not in snapshot.applications:
            continue
        likeness = _likeness(snapshot, app, family)
        if any(steps for _, *both in likeness for steps in both):
            classes.setdefault((family, likeness), []).append(app)
    return classes


def _likeness(snapshot: PlanningSnapshot, app: str, family: FamilyName) -> _Likeness:
    """Say how an application differs, in steps, from the profile of each variant of a family."""
    found: list[tuple[VariantName, int, int]] = []
    for variant in snapshot.variants:
        if variant.family != family:
            continue
        for executor, learned in snapshot.applications[app].items():
            base = snapshot.profiles.get(executor, {}).get(variant.name)
            mine = learned.get(variant.name)
            if base is None or mine is None:
                continue
            size = base.batch_sizes[0]
            median, high = (_steps(mine, base, size, at) for at in _COMPARED)
            found.append((variant.name, median, high))
            break
    return tuple(found)


def _steps(mine: LatencyProfile, base: LatencyProfile, size: int, at: int) -> int:
    ratio = max(1, mine.quantiles_ns[size][at]) / max(1, base.quantiles_ns[size][at])
    return round(math.log(ratio) / _STEP)


def _slowest(
    snapshot: PlanningSnapshot, apps: Sequence[str], executor: ExecutorId, base: LatencyProfile
) -> LatencyProfile:
    """Return the profile of applications that count as one: the longest time of any of them."""
    own = (snapshot.applications[app].get(executor, {}).get(base.variant, base) for app in apps)
    slowest = next(own)
    for other in own:
        rows = {
            size: tuple(map(max, times, other.quantiles_ns[size]))
            for size, times in slowest.quantiles_ns.items()
        }
        slowest = replace(slowest, quantiles_ns=rows)
    return slowest


def _own_camera(
    camera: CameraSnapshot, numbers: Mapping[tuple[str, FamilyName], int]
) -> CameraSnapshot:
    asked, current, cascade = camera.camera, camera.current, camera.cascade
    number = numbers.get((asked.app, asked.family))
    if number is None:
        return camera
    if current is not None:
        current = replace(current, variant=_own(current.variant, number))
    if cascade is not None:
        cascade = replace(cascade, small=_own(cascade.small, number))
    asked = replace(asked, family=_own_family(asked.family, number))
    return replace(camera, camera=asked, current=current, cascade=cascade)
