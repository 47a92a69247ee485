"""Decides which variants one camera could be given, as if it had the box to itself. Pure.

A variant is a candidate when the camera's compute budget covers the worst case of waiting for
one batch as long as its own and then running (Jellyfish, Eq. 6), and its uplink carries the
rate. With an executor to itself a camera does not wait (`dedicated`). Above what the camera has
now, all must hold with a margin, so that advice does not flap.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, LinkState
from edgebox.planning.budgets import Budget, budget
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.planner_parameters import PlanningParameters


@dataclass(frozen=True, slots=True)
class Option:
    """One variant for one camera."""

    variant: Variant
    budget: Budget
    single_ns: int
    rate_hz: float
    """What the camera would be told to send."""
    reserve_ns: int | None = None
    """With an executor to itself: what is kept for a link that may be slower than believed; None:
    the executor is shared."""

    @property
    def dedicated(self) -> bool:
        """Say whether its camera has an executor to itself."""
        return self.reserve_ns is not None

    @property
    def slack_ns(self) -> int:
        """How long a batch in front of it may take."""
        return self.budget.compute_ns - self.single_ns

    @property
    def needed_ns(self) -> int:
        """Its own batch's time, and that of one in front as long as its own, or the reserve."""
        return self.single_ns + (self.single_ns if self.reserve_ns is None else self.reserve_ns)

    @property
    def fits(self) -> bool:
        """Say whether it meets the deadline."""
        return self.needed_ns <= self.budget.compute_ns


@dataclass(frozen=True, slots=True)
class CameraOptions:
    """What one camera could be given."""

    snapshot: CameraSnapshot
    options: tuple[Option, ...]
    """From the smallest up, at least one."""
    served: bool
    """False: nothing fits, the only level is best effort."""
    rungs: tuple[Option, ...]
    """All of its family that make sense for it, fitting or not; for reasons."""
    smallest: Option
    """The family's smallest variant, whatever accuracy was asked for."""
    current_px: int | None
    """Input pixels of the variant it has now; None: a new camera."""
    least_hz: float = 0.0
    """Below this rate it is not served."""
    held: bool = False
    """It was lowered so lately that it is not raised yet."""
    crowded: bool = False
    """Not served because the executors' time does not suffice for everybody's least rate."""

    @property
    def current(self) -> int:
        """Index of the largest level that is no larger than what the camera has; 0: none is."""
        if self.current_px is None:
            return 0
        sizes = [level.variant.pixels for level in self.options]
        return max(0, bisect_right(sizes, self.current_px) - 1)

    def best_effort(self) -> "CameraOptions":
        """Return what remains when this camera cannot be served beside the others."""
        return replace(self, options=(self.smallest,), served=False)

    def crowded_out(self, rate_hz: float) -> "CameraOptions":
        """Return what remains when the others need the time: best effort at this rate at most."""
        least = replace(self.smallest, rate_hz=min(rate_hz, self.smallest.rate_hz))
        return replace(self, options=(least,), served=False, crowded=True)

    def slowed(self, ceiling_hz: float, rate_min_hz: float) -> "CameraOptions":
        """Return this camera at its smallest level only, its rate lowered as far as it may be."""
        level = self.options[0]
        if level.rate_hz <= ceiling_hz:
            return replace(self, options=(level,))
        least_hz = self.least_hz if self.served else min(rate_min_hz, level.rate_hz)
        rate_hz = max(least_hz, round_rate(ceiling_hz))
        return replace(self, options=(replace(level, rate_hz=rate_hz),))


def all_options(
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    dedicated: bool = False,
) -> list[CameraOptions]:
    """Find what each camera could be given; those without a loaded variant are left out."""
    families = {c.camera.family for c in snapshot.cameras}
    rising = {family: rising_family(family, snapshot.variants, timing) for family in families}
    return [
        _options_of(c, rising[c.camera.family], snapshot, timing, parameters, dedicated=dedicated)
        for c in snapshot.cameras
        if rising[c.camera.family]
    ]


def dedicated_options(
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    cameras: int,
    executors: int,
) -> list[CameraOptions]:
    """Find what each of some cameras could be given with one of some executors to itself.

    Empty where none could be spared: one executor for several cameras.
    """
    if cameras > executors and executors < 2:
        return []
    return all_options(snapshot, timing, parameters, dedicated=True)


def camera_options(
    camera: CameraSnapshot,
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    dedicated: bool = False,
) -> CameraOptions | None:
    """Find what a camera could be given; None: no variant of its family is loaded."""
    family = rising_family(camera.camera.family, snapshot.variants, timing)
    if not family:
        return None
    return _options_of(camera, family, snapshot, timing, parameters, dedicated=dedicated)


def _options_of(
    camera: CameraSnapshot,
    family: Sequence[Variant],
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    dedicated: bool,
) -> CameraOptions:
    """Find what a camera could be given of its family's variants, from the smallest up."""
    smallest = option_of(
        camera, family[0], snapshot.fixed_ns, timing, parameters, dedicated=dedicated
    )
    # Best effort is what is left when its least rate is out of reach: only the box's counts then.
    box_least_hz = min(parameters.rate_min_hz, camera.camera.rate_hz)
    smallest = replace(smallest, rate_hz=_reduced(camera, smallest, box_least_hz))
    least_hz = least_rate(camera.camera, parameters)
    rungs = tuple(
        option_of(camera, variant, snapshot.fixed_ns, timing, parameters, dedicated=dedicated)
        for variant in sensible_variants(camera, family)
    )
    current_px = current_pixels(camera, family)
    held = current_px is not None and is_held(camera, snapshot.taken_ns, parameters)
    links = camera.link
    if links.bandwidth_bps is not None:
        links = replace(links, bandwidth_bps=links.bandwidth_bps / parameters.link_upgrade)
    levels = []
    for rung in rungs:
        above = current_px is not None and rung.variant.pixels > current_px
        if _carried(camera, rung) and (
            not above or (not held and _holds(camera, links, rung, snapshot.fixed_ns, parameters))
        ):
            levels.append(rung)
    if levels:
        return CameraOptions(
            camera, tuple(levels), True, rungs, smallest, current_px, least_hz, held
        )
    for rung in rungs:
        if rung.fits and rung.budget.rate_hz >= least_hz:
            slower = replace(rung, rate_hz=_reduced(camera, rung, least_hz))
            return CameraOptions(camera, (slower,), True, rungs, smallest, current_px, least_hz)
    return CameraOptions(camera, (smallest,), False, rungs, smallest, current_px, least_hz)


def least_rate(camera: Camera, parameters: PlanningParameters) -> float:
    """Return the rate below which a camera is not served: its own least, or the box's."""
    return min(camera.rate_hz, max(parameters.rate_min_hz, camera.min_rate_hz))


def is_held(camera: CameraSnapshot, taken_ns: int, parameters: PlanningParameters) -> bool:
    lowered_ns = camera.lowered_ns
    return lowered_ns is not None and taken_ns - lowered_ns < parameters.upgrade_hold_ns


def rising_family(
    family: FamilyName, variants: Sequence[Variant], timing: Mapping[VariantName, BatchTimes]
) -> list[Variant]:
    """Return the loaded variants of a family, without those that are larger but no better."""
    rising: list[Variant] = []
    for variant in sorted(variants, key=lambda v: (v.pixels, v.name)):
        if variant.family != family or variant.name not in timing:
            continue
        if not rising or variant.accuracy > rising[-1].accuracy:
            rising.append(variant)
    return rising


def sensible_variants(camera: CameraSnapshot, family: Sequence[Variant]) -> list[Variant]:
    """Return what is accurate enough, up to the first that covers the camera's own picture."""
    sensible = []
    for variant in family:
        if variant.accuracy >= camera.camera.min_accuracy:
            sensible.append(variant)
            if variant.covers(camera.camera.width_px, camera.camera.height_px):
                break
    return sensible


def option_of(
    camera: CameraSnapshot,
    variant: Variant,
    fixed_ns: int,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    dedicated: bool = False,
) -> Option:
    """Return what one loaded variant would be for a camera, sensible or not."""
    of = budget(camera.camera, camera.link, variant, fixed_ns, parameters, share=camera.share)
    single_ns = timing[variant.name].single_ns
    reserve_ns = _reserve_ns(camera, of, single_ns) if dedicated else None
    return Option(variant, of, single_ns, camera.camera.rate_hz, reserve_ns)


def _reserve_ns(camera: CameraSnapshot, of: Budget, single_ns: int) -> int:
    """Return what bad luck costs a frame; no more than a batch in front would.

    A bad second of its link, and what its frames take longer than planned otherwise. Who shares an
    executor rarely waits for as long as it may have to, which makes up for such things; who is
    alone has nothing of that kind.
    """
    link = camera.link
    if not link.bandwidth_bps or not link.throughput_stability or camera.overrun_ns is None:
        return single_ns
    others_bits = camera.share.others_bits if camera.share else 0.0
    transmission_ns = (of.frame_bits + others_bits) / link.bandwidth_bps * 1e9
    bad_second_ns = round(transmission_ns * (1 / link.throughput_stability - 1))
    return min(single_ns, bad_second_ns + camera.overrun_ns)


def _carried(camera: CameraSnapshot, level: Option) -> bool:
    return level.fits and level.budget.rate_hz >= camera.camera.rate_hz


def _holds(
    camera: CameraSnapshot,
    weaker: LinkState,
    level: Option,
    fixed_ns: int,
    parameters: PlanningParameters,
) -> bool:
    fixed_ns += parameters.latency_upgrade_ns
    left = budget(camera.camera, weaker, level.variant, fixed_ns, parameters, share=camera.share)
    return _carried(camera, replace(level, budget=left))


def current_pixels(camera: CameraSnapshot, family: Sequence[Variant]) -> int | None:
    now = camera.current
    return next((v.pixels for v in family if now is not None and v.name == now.variant), None)


def _reduced(camera: CameraSnapshot, level: Option, least_hz: float) -> float:
    """Return the rate that the uplink carries at this level, a round figure."""
    if level.budget.rate_hz >= camera.camera.rate_hz:
        return camera.camera.rate_hz
    return max(least_hz, round_rate(level.budget.rate_hz))


def round_rate(rate_hz: float) -> float:
    """Round down to a step of 0.1 or, from 2 Hz, 0.5, so that an estimate's noise is not news."""
    steps_per_hz = 10 if rate_hz < 2 else 2
    return int(rate_hz * steps_per_hz) / steps_per_hz
