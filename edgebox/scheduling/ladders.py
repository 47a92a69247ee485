"""Owns which variants of each family are loaded, and the first variant of a new camera. Pure.

What is loaded is derived from the executors' memories when it is next asked for after they changed.
"""

from collections.abc import Sequence

from edgebox.domain.model_family import FamilyName, Variant, VariantName, up_to
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.requests import Camera, Request
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies


class Ladders:
    """The loaded variants of each family, from the smallest to the largest input."""

    def __init__(self, latencies: Latencies) -> None:
        self._latencies = latencies
        self._offered: dict[VariantName, Variant] = {}
        self._by_family: dict[FamilyName, tuple[Variant, ...]] | None = None
        self._version = 0

    @property
    def offered(self) -> tuple[Variant, ...]:
        """All variants that the box has, loaded or not."""
        return tuple(self._offered.values())

    def named(self, name: VariantName) -> Variant | None:
        """Return a variant that the box has; None: it has it no more."""
        return self._offered.get(name)

    def offer(self, variants: Sequence[Variant]) -> frozenset[VariantName]:
        """Set the variants that the box has now; return those that it did not have before."""
        before = self._offered.keys()
        self._offered = {variant.name: variant for variant in variants}
        self._by_family = None
        return frozenset(self._offered.keys() - before)

    def of(self, family: FamilyName) -> tuple[Variant, ...]:
        """Return a family's loaded variants, smallest first."""
        if self._by_family is None or self._version != self._latencies.loaded_version:
            self._version = self._latencies.loaded_version
            self._by_family = self._loaded()
        return self._by_family.get(family, ())

    def allowed(self, camera: Camera) -> Sequence[Variant]:
        """Return the loaded variants of a camera's family up to its own limit, smallest first."""
        limit = camera.variant_max
        return up_to(self.of(camera.family), self.named(limit) if limit else None)

    def limited(self, variant: Variant, camera: Camera) -> Variant:
        """Return a variant, or the largest one, loaded or not, up to its camera's own limit."""
        limit = camera.variant_max
        family = [each for each in self._offered.values() if each.family == variant.family]
        family.sort(key=lambda each: each.pixels)
        allowed = up_to(family, self.named(limit) if limit else None)
        return variant if variant in allowed else allowed[-1]

    def _loaded(self) -> dict[FamilyName, tuple[Variant, ...]]:
        out: dict[FamilyName, tuple[Variant, ...]] = {}
        for variant in sorted(self._offered.values(), key=lambda v: (v.pixels, v.name)):
            if self._latencies.executors(variant.name):
                out[variant.family] = (*out.get(variant.family, ()), variant)
        return out

    def is_as_planned(
        self, request: Request, runs_on: VariantName, pipeline: Pipeline | None = None
    ) -> bool:
        """Say whether a picture is one that plans assume: a camera's, no larger than its variant.

        The decoding time counts in every camera's plan. Larger pictures, sent by a program or by a
        camera that ignores its advice, must not increase it.
        """
        variant = self._offered.get(runs_on)
        cascade = None if pipeline is None else pipeline.cascade
        if cascade is not None and cascade.small == runs_on:
            variant = self._offered.get(cascade.large)
        return (
            request.variant is None
            and request.frame is None
            and variant is not None
            and variant.covers(request.width_px, request.height_px)
        )

    def stand_in(self, variant: Variant, camera: Camera | None = None) -> Variant | None:
        """Return the variant on which frames meant for this one run: itself, if it is loaded.

        Otherwise the largest smaller one of its family, else the smallest; None: none is loaded.
        With a camera of the family, only those up to its own limit count.
        """
        chosen: Variant | None = None
        for rung in self.of(variant.family) if camera is None else self.allowed(camera):
            if rung == variant:
                return rung
            if chosen is None or rung.pixels <= variant.pixels:
                chosen = rung
        return chosen


def first_variant(
    ladder: Sequence[Variant],
    camera: Camera,
    expectations: Expectations,
    budget_ns: float,
    pixels_max: int,
) -> Variant | None:
    """Choose a modest variant for a camera whose link is not measured yet.

    The largest one of at most `pixels_max` whose high-quantile time for the camera's application
    fits the budget, else the smallest; never one above the smallest that covers the camera's own
    picture.
    """
    chosen: Variant | None = None
    for variant in ladder:
        single_request = expectations.single_request(variant.name, camera.app)
        fits = (
            single_request is not None
            and single_request.high_ns <= budget_ns
            and variant.pixels <= pixels_max
        )
        if chosen is not None and not fits:
            break
        chosen = variant
        if variant.covers(camera.width_px, camera.height_px):
            break
    return chosen
