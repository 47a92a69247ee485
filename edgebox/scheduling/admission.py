"""Decides which variant a frame runs on, and whether it has any chance. Pure."""

from collections.abc import Sequence

from edgebox.domain.models import FamilyName, Variant, VariantName
from edgebox.domain.plans import Assignment
from edgebox.domain.requests import Camera, Request
from edgebox.scheduling.latencies import Latencies


class Ladders:
    """The loaded variants of each family from the smallest to the largest input."""

    def __init__(self, latencies: Latencies) -> None:
        self._latencies = latencies
        self._offered: tuple[Variant, ...] = ()
        self._by_family: dict[FamilyName, tuple[Variant, ...]] = {}

    @property
    def offered(self) -> tuple[Variant, ...]:
        """What the zoo holds, loaded or not."""
        return self._offered

    def offer(self, variants: Sequence[Variant]) -> None:
        """Take in what the zoo holds now."""
        self._offered = tuple(variants)
        self.refresh()

    def refresh(self) -> None:
        """Look again which variants are loaded."""
        self._by_family = {}
        for variant in sorted(self._offered, key=lambda v: (v.pixels, v.name)):
            if self._latencies.best(variant.name) is not None:
                rungs = self._by_family.get(variant.family, ())
                self._by_family[variant.family] = (*rungs, variant)

    def of(self, family: FamilyName) -> tuple[Variant, ...]:
        """Return a family's loaded variants, smallest first."""
        return self._by_family.get(family, ())

    def stand_in(self, variant: Variant) -> Variant | None:
        """Return what frames meant for a variant run on: itself, where it is loaded.

        Otherwise the largest of its family that is smaller, else the smallest; None: none is.
        """
        chosen: Variant | None = None
        for rung in self.of(variant.family):
            if rung == variant:
                return rung
            if chosen is None or rung.pixels <= variant.pixels:
                chosen = rung
        return chosen


def first_variant(
    ladder: Sequence[Variant],
    camera: Camera,
    latencies: Latencies,
    budget_ns: float,
    pixels_max: int,
) -> Variant | None:
    """Choose a modest variant for a camera whose link is not known yet.

    The largest of at most `pixels_max` whose high-quantile time fits the budget, else the
    smallest; none above the smallest that covers the camera's own picture.
    """
    chosen: Variant | None = None
    for variant in ladder:
        row = latencies.best(variant.name)
        fits = row is not None and row.high_ns[0] <= budget_ns and variant.pixels <= pixels_max
        if chosen is not None and not fits:
            break
        chosen = variant
        if variant.covers(camera.width_px, camera.height_px):
            break
    return chosen


def choose_variant(
    request: Request,
    camera: Camera,
    assigned: VariantName,
    ladder: Sequence[Variant],
    *,
    latencies: Latencies,
    time_left_ns: int,
) -> VariantName | None:
    """Choose what a camera's frame runs on; None: nothing fits.

    The assigned variant, or a smaller one that already covers the picture as it was sent
    (enlarging it buys nothing), or else the largest smaller one whose usual time still fits.
    Smaller ones count only if they are as accurate as the camera asked for, or as what the
    plan gave it, if that is less.

    Args:
        request: the frame.
        camera: what it asked for.
        assigned: what the plan gives its camera; need not be loaded (any more).
        ladder: the loaded variants of the camera's family, smallest first.
        latencies: expected times.
        time_left_ns: until the deadline, decoding taken off.
    """
    top = len(ladder)
    for at, variant in enumerate(ladder):
        if variant.name == assigned:
            top = at
            break
    else:
        top -= 1
    if top < 0:
        return None
    floor = min(camera.min_accuracy, ladder[top].accuracy)
    chosen: VariantName | None = None
    for variant in ladder[: top + 1]:
        row = latencies.best(variant.name)
        if row is None or variant.accuracy < floor:
            continue
        if row.median_ns[0] <= time_left_ns:
            chosen = variant.name
        if variant.covers(request.width_px, request.height_px):
            break
    return chosen


def choose_for_deadlines(
    request: Request,
    camera: Camera,
    assignment: Assignment | None,
    ladder: Sequence[Variant],
    *,
    latencies: Latencies,
    ready_ns: int,
) -> VariantName | None:
    """Choose the variant for the first of the deadlines that any variant fits; None: none.

    A frame that left before its camera knew of the plan in force finishes on the variant it was
    made for, if that is still there.
    """
    if assignment is None:
        return None
    assigned = assignment.variant
    if any(variant.name == request.advised for variant in ladder):
        assigned = request.advised or assigned
    for deadline_ns in (request.deadline_ns, *(step.by_ns for step in request.steps)):
        variant = choose_variant(
            request,
            camera,
            assigned,
            ladder,
            latencies=latencies,
            time_left_ns=deadline_ns - ready_ns,
        )
        if variant is not None:
            return variant
    return None
