"""Owns which variants of each family are loaded, and what a new camera starts with. Pure."""

from collections.abc import Sequence

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.requests import Camera, Request
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies


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

    def is_as_planned(self, request: Request, runs_on: VariantName) -> bool:
        """Say whether a picture is what plans reckon with: a camera's, no larger than its variant.

        What decoding takes counts in every camera's plan. A photo that a program sends, or a
        camera that sends more pixels than it should, must not make it longer.
        """
        return request.variant is None and any(
            variant.name == runs_on and variant.covers(request.width_px, request.height_px)
            for variant in self._offered
        )

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
    expectations: Expectations,
    budget_ns: float,
    pixels_max: int,
) -> Variant | None:
    """Choose a modest variant for a camera whose link is not known yet.

    The largest of at most `pixels_max` whose high-quantile time, by what is known of its
    application, fits the budget, else the smallest; none above the smallest that covers the
    camera's own picture.
    """
    chosen: Variant | None = None
    for variant in ladder:
        alone = expectations.alone(variant.name, camera.app)
        fits = alone is not None and alone.high_ns <= budget_ns and variant.pixels <= pixels_max
        if chosen is not None and not fits:
            break
        chosen = variant
        if variant.covers(camera.width_px, camera.height_px):
            break
    return chosen
